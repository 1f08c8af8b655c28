//go:build unix

package shell

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestLoginFiles has start-up files of bash set PATH where people set it.
func TestLoginFiles(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	const set = "PATH=/opt/mine:$PATH\n"
	all := map[string]map[string]string{
		"bashrc alone":              {".bashrc": set},
		"profile alone":             {".profile": set},
		"profile without bashrc":    {".bash_profile": "true\n", ".bashrc": set},
		"profile with bashrc":       {".bash_profile": ". ~/.bashrc\n", ".bashrc": set},
		"interactive part":          {".bashrc": "case $- in *i*) ;; *) return ;; esac\n" + set},
		"another shell at the end":  {".bashrc": set + "exec false\n"},
		"a failure":                 {".bashrc": "set -e\n" + set + "false\n"},
		"an exit":                   {".bashrc": set + "exit 3\n"},
		"a return":                  {".bashrc": set + "return 3\n"},
		"redirections and a syntax": {".bashrc": set + "exec 3>&1\nfi\n"},
	}
	for _, what := range samples.Of(slices.Sorted(maps.Keys(all)), 1) {
		t.Run(what, func(t *testing.T) {
			home := t.TempDir()
			for name, text := range all[what] {
				if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := newRunner(t, Config{
				Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home, "SHELL=" + bash}, PathTimeout: time.Minute,
				PathWait: 2 * time.Minute,
			})
			if got := run(t, r, Command{Text: "echo $PATH"}); !strings.HasPrefix(got.Text, "/opt/mine:") {
				t.Errorf("PATH is %q", got.Text)
			}
		})
	}
}
