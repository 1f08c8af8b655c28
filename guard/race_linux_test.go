package guard

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestSwapRace exchanges a directory of the workspace with a link to one outside
// as fast as it can while files are resolved, opened and created in it.
func TestSwapRace(t *testing.T) {
	top := realTemp(t)
	ws := filepath.Join(top, "ws")
	tree(t, top, "ws/sub/f", "out/f", "ws/link -> "+top+"/out")
	p := policy(t, ws, nil)
	rounds := samples.Raced(3000)
	var stop atomic.Bool
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, ws+"/sub", unix.AT_FDCWD, ws+"/link", unix.RENAME_EXCHANGE)
		}
	})
	opened := 0
	for n := 0; n < rounds || opened == 0 && n < 100*rounds; n++ { // the link may be there for all of them
		path, err := p.Resolve("sub/f")
		if err != nil || !pathname.Within(path.Real(), ws) {
			continue // judged as what it is: outside
		}
		if f, err := path.Open(); err == nil {
			b, _ := io.ReadAll(f)
			f.Close()
			opened++
			if string(b) != "ws/sub/f" {
				t.Fatalf("read %q from outside", b)
			}
		} else if !errors.Is(err, ErrSwapped) && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("Open: %v", err)
		}
		if dir, base, err := path.OpenParent(); err == nil {
			_ = dir.WriteFile(base+".new", []byte("x"), 0o644)
			dir.Close()
		}
		if fresh, err := p.Resolve("sub/new/deep/file"); err == nil && pathname.Within(fresh.Real(), ws) {
			_, _ = fresh.MakeParents(0o755)
		}
	}
	stop.Store(true)
	swaps.Wait()
	if opened == 0 {
		t.Error("the race never let an open through; it shows nothing")
	}
	left, err := os.ReadDir(filepath.Join(top, "out"))
	if err != nil || len(left) != 1 || content(t, top, "out/f") != "out/f" {
		t.Errorf("outside holds %v, %v", left, err)
	}
}
