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
	traps := []struct {
		name string
		lay  func(dir, outside string) error // dir holds a.txt, which was changed, and b.txt, which was made
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
	}
	for _, force := range []bool{false, true} {
		t.Run(fmt.Sprint("force-", force), func(t *testing.T) {
			w := newWorld(t)
			h := w.host(t, host.StdioModern, "--root", w.ws)
			places := func(trap int) (dir, outside string) {
				in := fmt.Sprint("up", trap, "/trap")
				return filepath.Join(w.ws, in), filepath.Join(w.root, "beyond", in)
			}
			for i := range traps {
				dir, outside := places(i)
				host.MustWrite(t, dir+"/a.txt", "evil\n")
				host.MustWrite(t, outside+"/a.txt", "known\n")
				host.MustWrite(t, outside+"/b.txt", "known\n")
				for j, call := range [][2]string{
					{"Read", `{"file_path":"DIR/a.txt"}`}, {"Write", `{"file_path":"DIR/a.txt","content":"known\n"}`}, {"Write", `{"file_path":"DIR/b.txt","content":"known\n"}`},
				} {
					if said := h.call(t, call[0], strings.ReplaceAll(call[1], "DIR", dir), fmt.Sprint(i, j)); !said.ok {
						t.Fatalf("%s: %s", call, said.text)
					}
				}
			}
			w.end(t, h)
			for i, trap := range traps {
				host.Must(t, trap.lay(places(i)))
			}
			cmd := exec.Command(host.Binary, "undo", "--since", "1h", "--yes", fmt.Sprint("--force=", force))
			cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
			w.as(cmd)
			out, err := cmd.CombinedOutput()
			for i, trap := range traps {
				dir, outside := places(i)
				if err == nil || !strings.Contains(string(out), "left "+dir) {
					t.Errorf("%s: the owner is not told: %s, %v", trap.name, out, err)
				}
				for _, name := range []string{"a.txt", "b.txt"} {
					if text, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(text) != "known\n" {
						t.Errorf("%s: %s outside holds %q, %v: %s", trap.name, name, text, err, out)
					}
				}
			}
		})
	}
}
