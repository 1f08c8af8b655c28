//go:build unix

package attack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// mostMemory is what no workspace makes a host take, in bytes: a host that has searched a usual one takes a fifteenth of that.
const mostMemory = 600 << 20

// peak is the most memory that a process has had, in bytes; 0 where no one tells.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	host.Must(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	host.Must(t, err)
	return kb << 10
}

// TestAttackIgnoreBombs opens repositories whose ignore files take little of the disk and much of the memory.
func TestAttackIgnoreBombs(t *testing.T) {
	for _, bomb := range samples.Of([]struct{ name, text string }{
		{"alternatives", strings.Repeat(strings.Repeat("{a,b}", 10)+strings.Repeat("?x", 50)+"\n", 3000)},
		{"short-rules", strings.Repeat("x y: z\n", 140_000)},
	}, 1) {
		t.Run(bomb.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			host.Must(t, err)
			ws := filepath.Join(dir, "ws")
			host.Must(t, os.MkdirAll(filepath.Join(ws, ".git"), 0o755))
			host.Must(t, os.WriteFile(filepath.Join(ws, "rules"), []byte(bomb.text), 0o644))
			for i := range 30 {
				sub := filepath.Join(ws, fmt.Sprint(i))
				host.Must(t, os.Mkdir(sub, 0o755))
				host.Must(t, os.WriteFile(filepath.Join(sub, "f.txt"), []byte("needle\n"), 0o644))
				host.Must(t, os.Symlink("../rules", filepath.Join(sub, ".gitignore")))
			}
			ctx, cancel := host.Patient()
			defer cancel()
			h, err := host.StartHost(ctx, host.StdioModern, ws, host.CleanEnv(filepath.Join(dir, "home")))
			host.Must(t, err)
			for range 3 {
				for tool, args := range map[string]string{"Glob": `{"pattern":"**/*.txt"}`,
					"Grep": `{"pattern":"needle"}`} {
					r, err := h.Call(ctx, tool, args)
					if err != nil || r.IsError || strings.Count(r.Text(), "f.txt") != 30 ||
						!strings.Contains(r.Text(), "Some ignore files") {
						t.Fatalf("%s: %v, %+v", tool, err, r)
					}
				}
			}
			if host.Contained(t) { // it waits until the tree is known
				r, err := h.Call(ctx, "Bash", `{"command":"touch new"}`)
				if err != nil || r.IsError {
					t.Fatalf("Bash: %v, %+v", err, r)
				}
			}
			if most := peak(t, h.Cmd.Process.Pid); most > mostMemory {
				t.Errorf("the host has taken %d MiB", most>>20)
			}
			host.Must(t, h.Stop())
		})
	}
}
