//go:build slow && linux

package fault

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestFaultKillUndo kills undo, which is a process of its own.
func TestFaultKillUndo(t *testing.T) {
	g := newGround(t)
	v := victims()[1]
	path := g.Put(v.name, v.content(0))
	s := g.start(host.StdioModern)
	s.MustCall("Read", host.Args{"file_path": path})
	s.MustCall(v.tool, v.change(path, 1))
	s.End()
	took, _ := g.undoLast(t, path, time.Hour)
	killed := 0
	for range samples.Rounds(12) {
		if _, dead := g.undoLast(t, path, took/4+rand.N(took)); dead {
			killed++
		}
		g.checkHistory(t, path, "--limit", fmt.Sprint(lately))
		if n, err := v.number(host.Get(t, path)); err != nil || n > 1 {
			t.Errorf("%s holds number %d, %v", v.name, n, err)
		}
		g.Tidy()
	}
	t.Logf("%d undos were killed; one takes %v", killed, took)
}

// undoLast undoes the last change of a file, kills that after a time, and returns how long it took and whether it was killed.
func (g *ground) undoLast(t *testing.T, path string, after time.Duration) (took time.Duration, killed bool) {
	t.Helper()
	last := ""
	for _, c := range g.history("--path", path, "--limit", fmt.Sprint(lately)) {
		if c.State == "done" {
			last = c.ID
			break
		}
	}
	cmd := exec.Command(host.Binary, "undo", last, "--state-dir", g.State)
	cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
	var out host.LockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
	err := cmd.Wait()
	killed = cmd.ProcessState.ExitCode() == -1
	if err != nil && !killed {
		t.Errorf("undo: %v\n%s", err, &out)
	}
	return time.Since(start), killed
}

// TestFaultKillSpill kills the host while results go to the disk. A result that was told of stays whole, and of the others nothing is left.
func TestFaultKillSpill(t *testing.T) {
	g := newGround(t)
	total := 0
	for range samples.Rounds(6) {
		s := g.start(host.StdioModern)
		var mu sync.Mutex
		kept := map[string]int{} // path of an acknowledged result → its lines
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				lines := spillLines * (i + 1)
				err := s.spill(fmt.Sprint("spill ", i), lines, func(path string) {
					mu.Lock()
					defer mu.Unlock()
					kept[path] = lines
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.AfterFunc(150*time.Millisecond+rand.N(250*time.Millisecond), func() { _ = s.Cmd.Process.Kill() })
		callers.Wait()
		s.Kill()
		host.Eventually(t, func() string { // the next start tidies up; see tidy for why it may take one more
			g.start(host.StdioModern).End()
			return g.halfSpilled()
		})
		g.checkSpilled(t, kept)
		g.Tidy()
		total += len(kept)
	}
	t.Logf("%d results were kept whole", total)
}

// spillLines is what the lengths of long results are multiples of.
const spillLines = 100_000

// spill makes long results until the host is gone, and tells where each is.
func (s *session) spill(name string, lines int, told func(path string)) error {
	for {
		p, err := s.Start(s.Ctx, "Bash", host.Args{"command": fmt.Sprintf("seq %d", lines)}.String(),
			host.Conversation(name))
		if err != nil {
			return nil
		}
		r, err := p.Result(s.Ctx)
		if err != nil {
			return nil
		}
		var out struct {
			OutputPath string `json:"output_path"`
		}
		if err := json.Unmarshal(r.Structured, &out); err != nil || out.OutputPath == "" {
			return fmt.Errorf("no result was kept: %w: %.300s", err, r.Text())
		}
		told(out.OutputPath)
	}
}

// checkSpilled holds that the kept results are whole, and takes them away to make room in the quota.
func (g *ground) checkSpilled(t *testing.T, kept map[string]int) {
	t.Helper()
	for path, lines := range kept {
		if n := strings.Count(host.Get(t, path), "\n"); n != lines {
			t.Errorf("the kept result %s has %d lines, want %d", path, n, lines)
		}
	}
	for _, path := range g.results() {
		host.Must(t, os.Remove(path))
	}
}

// halfSpilled tells of a result that is kept and is not whole. One more than were told of can be whole in each conversation: its answer
// got lost.
func (g *ground) halfSpilled() string {
	g.T.Helper()
	for _, path := range g.results() {
		if n := strings.Count(host.Get(g.T, path), "\n"); n == 0 || n%spillLines != 0 {
			return fmt.Sprintf("the result %s has %d lines and was kept", path, n)
		}
	}
	return ""
}

// results are the files of the results that are kept of commands.
func (g *ground) results() []string {
	g.T.Helper()
	files, err := filepath.Glob(filepath.Join(g.State, "results", "*", "bash-*"))
	host.Must(g.T, err)
	return files
}
