//go:build slow && unix

package shell

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLoginPath starts runners as a desktop program would, with nearly no PATH,
// and with login shells of all sorts.
func TestLoginPath(t *testing.T) {
	dir := t.TempDir()
	tag := newTag()
	for name, test := range map[string]struct {
		script string
		want   bool
		bound  time.Duration // of those that do not end; 0: a minute, so that a machine under load may take its time
	}{
		"answers":           {`PATH=/opt/mine:$PATH; exec /bin/bash --norc --noprofile -c "$4"`, true, 0},
		"talks as well":     {`echo welcome; echo 'toolhost-path'; PATH=/opt/mine:$PATH; /bin/bash --norc --noprofile -c "$4"; echo bye`, true, 0},
		"leaves a child":    {`sleep TAG & PATH=/opt/mine:$PATH; eval "$4"`, true, 0},
		"leaves a daemon":   {`(setsid sleep TAG &); PATH=/opt/mine:$PATH; eval "$4"`, true, 0},
		"fails":             {`exit 1`, false, 0},
		"asks":              {`read -p 'update? ' x || exit 1`, false, 0},
		"hangs":             {`trap '' TERM; (setsid sleep TAG &); sleep TAG`, false, 2 * time.Second},
		"talks without end": {`yes`, false, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			sh := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			script := "#!/bin/bash\n" + strings.ReplaceAll(test.script, "TAG", tag) + "\n"
			if err := os.WriteFile(sh, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, Config{
				Env:         []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "SHELL=" + sh},
				PathTimeout: cmp.Or(test.bound, time.Minute), PathWait: 2 * time.Minute,
			})
			got := run(t, r, Command{Text: "echo $PATH"})
			want := "/usr/bin:/bin\n"
			if test.want {
				want = "/opt/mine:/usr/bin:/bin\n"
			}
			if got.Text != want {
				t.Errorf("PATH is %q, want %q", got.Text, want)
			}
			checkGone(t, tag)
		})
	}
}
