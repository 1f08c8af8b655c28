//go:build slow

package resultstore

import (
	"path/filepath"
	"testing"
	"time"
)

// TestRoomIsMadeAfterResults holds that what other processes have put in a directory meanwhile is counted, and goes, without a result waiting
// for that.
func TestRoomIsMadeAfterResults(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	sh := s.For("p")
	keep(t, sh, 1, 0)
	s.work.Wait()
	fill(t, sh, maxResults+5)
	u := s.usageOf(filepath.Base(sh.Dir()))
	u.mu.Lock()
	u.measured = time.Now().Add(-2 * measuredFor)
	u.mu.Unlock()
	if !u.hasRoom(1, DefaultQuota) {
		t.Error("a result would wait for the directory to be measured")
	}
	keep(t, sh, 1, 0)
	s.work.Wait()
	want := maxResults - maxResults/freeRoom
	if got := len(everything(t, sh.Dir())); got != want || u.files != want {
		t.Errorf("%d results, %d counted, want %d", got, u.files, want)
	}
}
