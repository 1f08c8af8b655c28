//go:build slow

package fault

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestFaultApplyKilled kills toolhost try --apply while it applies many changes, and the undo of them. The history has exactly those that were made,
// the undo leads back, and no temporary file stays.
func TestFaultApplyKilled(t *testing.T) {
	testenv.NeedsProgram(t, "git")
	testenv.NeedsNamespaces(t)
	g := newGround(t)
	const many = 300
	for i := range many {
		g.Put(fmt.Sprintf("d%d/f%d", i%7, i), "old\n")
	}
	if out, err := exec.Command("sh", "-ec", "cd "+g.WS+
		`; git init -q; git config user.email a@b; git config user.name a; git add .; git commit -qm 1`).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for round := range samples.Rounds(samples.Rounds(6)) {
		before := g.shape()
		g.killAfter(before, "try", "--apply", "--", "sh", "-c",
			"for f in d*/f*; do echo new > $f; done; mkdir n; for i in $(seq 50); do echo new > n/$i; done; rm d1/f1")
		host.Eventually(t, func() string {
			if _, err := g.Run("history", "--path", g.State); err != nil { // settles what was killed
				return err.Error()
			}
			raw, err := g.Run("history", "--limit", "1", "--json")
			host.Must(t, err)
			var calls []struct {
				State string
				Files []struct{ Path string }
			}
			host.Must(t, json.Unmarshal(raw, &calls))
			made, files := changedPaths(before, g.shape()), 0
			if len(calls) > 0 && calls[0].State == "done" {
				files = len(calls[0].Files)
			}
			if len(made) > 0 && files != len(made) {
				return fmt.Sprintf("round %d: the history has %d changed paths, on disk are %d", round,
					files, len(made))
			}
			return ""
		})
		if len(changedPaths(before, g.shape())) > 0 {
			g.killAfter(g.shape(), "undo", "--yes")
			host.Eventually(t, func() string {
				out, err := g.Run("rewind", g.ids()[0], "--yes")
				if diff := cmp.Diff(before, g.shape()); diff != "" {
					return fmt.Sprintf("%v %s\n(-before +rewound)\n%s", err, out, diff)
				}
				return ""
			})
		}
		g.Tidy()
		if _, err := g.Run("history", "purge", "--yes"); err != nil || t.Failed() {
			t.Fatal(err)
		}
	}
}

// killAfter runs a command of the binary, and kills it some time after the tree has begun to change.
func (g *ground) killAfter(before map[string]string, args ...string) {
	g.T.Helper()
	cmd := exec.Command(host.Binary, append([]string{args[0], "--state-dir", g.State}, args[1:]...)...)
	cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
	var out host.LockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	host.Must(g.T, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for len(changedPaths(before, g.shape())) == 0 {
		select {
		case err := <-ended:
			if err != nil {
				g.T.Fatalf("%v: %s", err, &out)
			}
			return
		default:
		}
	}
	<-time.After(time.Duration(rand.IntN(20)) * time.Millisecond)
	_ = cmd.Process.Kill()
	<-ended
}

// changedPaths are the paths that differ, without temporary files.
func changedPaths(before, after map[string]string) (paths []string) {
	for path := range after {
		if after[path] != before[path] && !isTemp(path) {
			paths = append(paths, path)
		}
	}
	for path := range before {
		if _, there := after[path]; !there {
			paths = append(paths, path)
		}
	}
	return paths
}

func isTemp(path string) bool { return strings.HasPrefix(filepath.Base(path), ".toolhost-") }
