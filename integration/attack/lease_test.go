//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestOwnLeases edits and reads one file in several hosts at once. Edit holds a lease of its own for a moment: no one is busy for that.
func TestOwnLeases(t *testing.T) {
	g := host.NewGround(t)
	ctx, cancel := host.Patient()
	defer cancel()
	file := filepath.Join(g.WS, "a.txt")
	host.Must(t, os.WriteFile(file, []byte("0\n"), 0o644))
	var all sync.WaitGroup
	for range 3 {
		h, err := host.StartHost(ctx, host.StdioModern, g.WS, host.CleanEnv(g.Home), "--state-dir", g.State)
		host.Must(t, err)
		defer h.Stop()
		all.Go(func() {
			for i := range 30 {
				for _, call := range [][2]string{{"Read", `{"file_path":"a.txt"}`},
					{"Write", fmt.Sprintf(`{"file_path":"a.txt","content":"%d\n"}`, i)}, {"Grep", `{"pattern":"[0-9]"}`}} {
					if r, err := h.Call(ctx, call[0], call[1]); err != nil || strings.Contains(r.Text(), "lease") {
						t.Errorf("%s: %v %s", call[0], err, r.Text())
						return
					}
				}
			}
		})
	}
	all.Wait()
}
