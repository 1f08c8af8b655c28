//go:build unix

package attack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackUndo changes a file with the tools, then lays a trap in its place, and has the owner undo the change: what is
// outside of the workspace has to stay as it is.
func TestAttackUndo(t *testing.T) {
	for _, tt := range []struct {
		name string
		trap func(dir, outside string) error // dir holds a.txt, which was changed, and b.txt, which was made
	}{
		{"the directory is a link to outside", func(dir, outside string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink(outside, dir))
		}},
		{"a directory above is a link", func(dir, outside string) error {
			up := filepath.Dir(dir)
			return errors.Join(os.RemoveAll(up), os.Symlink(filepath.Dir(outside), up))
		}},
		{"the file is a link to outside", func(dir, outside string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a.txt")), os.Remove(filepath.Join(dir, "b.txt")),
				os.Symlink(filepath.Join(outside, "a.txt"),
					filepath.Join(dir, "a.txt")), os.Symlink(filepath.Join(outside, "b.txt"), filepath.Join(dir, "b.txt")))
		}},
	} {
		for _, force := range []bool{false, true} {
			t.Run(strings.ReplaceAll(fmt.Sprint(tt.name, " ", force), " ", "-"), func(t *testing.T) {
				w := newWorld(t)
				dir, outside := filepath.Join(w.ws, "up", "trap"), filepath.Join(w.root, "beyond", "trap")
				for path, text := range map[string]string{dir + "/a.txt": "evil\n", outside + "/a.txt": "known\n",
					outside + "/b.txt": "known\n"} {
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
						os.WriteFile(path, []byte(text), 0o644)); err != nil {
						t.Fatal(err)
					}
				}
				h := w.host(t, host.StdioModern, "--root", w.ws)
				for i, call := range [][2]string{
					{"Read", `{"file_path":"up/trap/a.txt"}`}, {"Write", `{"file_path":"up/trap/a.txt","content":"known\n"}`}, {"Write", `{"file_path":"up/trap/b.txt","content":"known\n"}`},
				} {
					if said := h.call(t, call[0], call[1], fmt.Sprint(i)); !said.ok {
						t.Fatalf("%s: %s", call, said.text)
					}
				}
				w.end(t, h)
				if err := tt.trap(dir, outside); err != nil {
					t.Fatal(err)
				}
				args := []string{"undo", "--since", "1h", "--yes"}
				if force {
					args = append(args, "--force")
				}
				cmd := exec.Command(host.Binary, args...)
				cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
				w.as(cmd)
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), "left ") {
					t.Errorf("the owner is not told: %s, %v", out, err)
				}
				for _, name := range []string{"a.txt", "b.txt"} {
					if text, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(text) != "known\n" {
						t.Errorf("%s outside holds %q, %v: %s", name, text, err, out)
					}
				}
			})
		}
	}
}
