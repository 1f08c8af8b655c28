//go:build unix

package attack

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestAttackPlantedOwnFile starts hosts where something else is in the place of a file that they open by name: they say so, and do not
// start. What lies where no tool writes is followed.
func TestAttackPlantedOwnFile(t *testing.T) {
	for name, tt := range map[string]struct {
		plant func(w *world, path string) error
		says  string
		write bool // only what is written is refused
	}{
		"a link":                  {func(w *world, path string) error { return os.Symlink("other/f.txt", path) }, "symbolic link", false},
		"a link out of the root":  {func(w *world, path string) error { return os.Symlink(filepath.Join(w.home, ".bashrc"), path) }, "symbolic link", false},
		"a link to nothing":       {func(w *world, path string) error { return os.Symlink("nothing", path) }, "symbolic link", false},
		"a link to a link":        {func(w *world, path string) error { return os.Symlink("other/link", path) }, "symbolic link", false},
		"a pipe":                  {func(w *world, path string) error { return syscall.Mkfifo(path, 0o600) }, "regular file", true},
		"a directory":             {func(w *world, path string) error { return os.Mkdir(path, 0o700) }, "", true},
		"another name of a file":  {func(w *world, path string) error { return os.Link(filepath.Join(w.home, ".bashrc"), path) }, "hard links", true},
		"another user's, by root": {func(w *world, path string) error { return chownedFile(path) }, "another user", true},
	} {
		if strings.Contains(name, "by root") && !testenv.HasUsers(t) {
			continue
		}
		for _, flag := range []string{"--audit-log", "--token-file", "--tokens", "--tls-key", "--metrics-token-file"} {
			if flag != "--audit-log" && (tt.write || name != "a link" && samples.Step(1) > 1) {
				continue
			}
			w := controlLayout{}.put(t)
			host.Must(t, os.WriteFile(filepath.Join(w.home, ".bashrc"), []byte("# rc\n"), 0o600))
			host.Must(t, os.Symlink("f.txt", filepath.Join(w.ws, "other", "link")))
			path := filepath.Join(w.ws, "planted")
			host.Must(t, tt.plant(w, path))
			args := []string{"http", "--root", w.ws, "--listen", "127.0.0.1:0", flag, path}
			if flag == "--audit-log" {
				args = []string{"stdio", "--root", w.ws, flag, path}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			cmd := exec.CommandContext(ctx, host.Binary, args...)
			cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
			out, err := cmd.CombinedOutput()
			cancel()
			if err == nil || ctx.Err() == context.DeadlineExceeded || flag == "--audit-log" &&
				!strings.Contains(string(out), tt.says) {
				t.Errorf("%s as %s: %v: %s, want %q", name, flag, err, out, tt.says)
			}
			if text, err := os.ReadFile(filepath.Join(w.home, ".bashrc")); err != nil || string(text) != "# rc\n" {
				t.Errorf("%s as %s: ~/.bashrc holds %q, %v", name, flag, text, err)
			}
		}
	}
	w := controlLayout{}.put(t)
	host.Must(t, os.Mkdir(filepath.Join(w.root, "var"), 0o700))
	host.Must(t, os.Symlink(filepath.Join(w.root, "var", "a.jsonl"), filepath.Join(w.root, "log")))
	host.Must(t, os.WriteFile(filepath.Join(w.root, "var", "a.jsonl"), nil, 0o600))
	h := w.host(t, host.StdioModern, "--root", w.ws, "--audit-log", filepath.Join(w.root, "log"))
	if said := h.call(t, "Read", `{"file_path":"other/f.txt"}`, "outside"); !said.ok {
		t.Errorf("a link outside of the root: %s", said.text)
	}
	host.Must(t, h.Stop())
}

func chownedFile(path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Chown(path, ordinaryUser, ordinaryUser)
}
