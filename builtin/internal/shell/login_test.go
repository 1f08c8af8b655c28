//go:build unix

package shell

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEnvironmentReachesNothing runs bash with the variables that would make it do
// something else than it was told.
func TestEnvironmentReachesNothing(t *testing.T) {
	rc := filepath.Join(t.TempDir(), "rc")
	if err := os.WriteFile(rc, []byte("echo rc ran\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{InheritPath: true, Env: append(os.Environ(),
		"BASH_ENV="+rc, "ENV="+rc, "BASH_FUNC_ls%%=() { echo function; }", "BASH_FUNC_/bin/echo%%=() { builtin echo function; }", "SHELLOPTS=xtrace:braceexpand", "PS4=$(echo ps4 >&2)",
		"BASHOPTS=extglob", "PROMPT_COMMAND=echo prompt", "TOOLHOST_TOKEN=secret")})
	got := run(t, r, Command{Text: `type -t ls; env | grep -c -e TOKEN -e BASH_ENV; shopt -q extglob; /bin/echo $?`})
	if got.Text != "file\n0\n1\n" {
		t.Errorf("got %q", got.Text)
	}
}

// TestLoginPath starts runners as a desktop program would, with nearly no PATH,
// and with login shells of all sorts.
func TestLoginPath(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
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

// TestLoginPathDoesNotHold: commands do not wait longer than PathWait.
func TestLoginPathDoesNotHold(t *testing.T) {
	sh := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(sh, []byte("#!/bin/bash\nsleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{Env: []string{"PATH=/usr/bin:/bin", "SHELL=" + sh}, PathTimeout: time.Hour, PathWait: 10 * time.Millisecond})
	if got := run(t, r, Command{Text: "echo on"}); got.Text != "on\n" {
		t.Errorf("got %+v", got)
	}
}
