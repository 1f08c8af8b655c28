//go:build slow

package journal

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// start runs a child. Its lines come out of the reader.
func start(t *testing.T, dir string, count int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	if count > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", childCount, count))
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// room makes the directories of a child.
func room(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKill kills a host while it changes files, again and again, and looks whether the journal tells the truth.
func TestKill(t *testing.T) {
	dir := room(t)
	files := filepath.Join(dir, "files")
	settled := 0
	kills := samples.Rounds(8)
	for range kills {
		cmd, lines := start(t, dir, 0)
		for range 1 + rand.IntN(12) {
			lines.Scan()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
		}
		_ = cmd.Wait() // killed
		pending := 0
		x, err := (&section{dir: filepath.Join(dir, "history", sectionName("p")),
			owner: &owner{dir: filepath.Join(dir, "history")}}).load()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range x.records {
			if r.State == Pending {
				pending++
			}
		}
		if pending > 1 {
			t.Errorf("%d changes are open after a kill, want one at most", pending)
		}
		settled += pending
		s := open(t, Config{Dir: filepath.Join(dir, "history")})
		checkTruth(t, s)
	}
	t.Logf("%d of %d kills left a change open", settled, kills)
	s := open(t, Config{Dir: filepath.Join(dir, "history")})
	u, made := undo(t, s, Selection{Principal: "p", Path: files})
	if len(u.Refused) > 0 {
		t.Errorf("refused: %+v", u.Refused)
	}
	if left, err := os.ReadDir(files); err != nil || len(left) > 0 {
		t.Errorf("after undoing all, %v are left, %v", left, err)
	}
	if len(made) > 0 {
		if u, _ := undo(t, s, Selection{Principal: "p", IDs: made}); len(u.Files) != len(made) {
			t.Errorf("the undo was undone for %d files, want %d", len(u.Files), len(made))
		}
		checkTruth(t, s)
	}
}

// checkTruth holds that every change has ended, that all contents are there, that the changes of a file are a chain whose end the file
// holds, and that nothing is left of what was not finished.
func checkTruth(t *testing.T, s *Journal) {
	t.Helper()
	last := make(map[string]Blob)
	all := list(t, s, Filter{})
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		if c.State == Failed {
			continue
		}
		if c.State != Done || c.Before != last[c.Path] {
			t.Errorf("change %s of %s: %s from %v, want it done from %v", c.ID, c.Path, c.State, c.Before, last[c.Path])
		}
		for _, b := range []Blob{c.Before, c.After} {
			if _, err := s.Content("p", b); err != nil && !b.IsZero() {
				t.Error(err)
			}
		}
		last[c.Path] = c.After
	}
	for path, want := range last {
		if got, err := NodeAt(path); err != nil || got.Blob != want {
			t.Errorf("%s holds %v, %v, the journal says %v", path, got, err, want)
		}
	}
	for _, name := range stored(t, s, packsName) {
		if !packNames.MatchString(name) {
			t.Errorf("left behind: %s", name)
		}
	}
}

// TestProcessesShareADirectory lets two processes change files and this one tidy meanwhile.
func TestProcessesShareADirectory(t *testing.T) {
	each := 60
	if testing.Short() {
		each = 15
	}
	dir := room(t)
	s := open(t, Config{Dir: filepath.Join(dir, "history")})
	var running sync.WaitGroup
	for range 2 {
		cmd, lines := start(t, dir, each)
		running.Go(func() {
			n := 0
			for lines.Scan() {
				n++
				if err := s.tidyAll(); err != nil {
					t.Error(err)
				}
			}
			if err := cmd.Wait(); err != nil || n != each {
				t.Errorf("%d changes, %v, want %d", n, err, each)
			}
		})
	}
	running.Wait()
	if n := len(list(t, s, Filter{})); n != 2*each {
		t.Errorf("%d changes, want %d", n, 2*each)
	}
	if aside := stored(t, s, asideName); len(aside) > 0 {
		t.Errorf("damaged: %q", aside)
	}
	checkTruth(t, s)
}
