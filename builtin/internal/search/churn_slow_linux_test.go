//go:build slow

package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestChurn makes engines, asks them everything at once and closes them, while
// files come and go and every processor is busy: whatever order locks are taken
// in, nothing may wait for ever, and nothing may be left. -samples=100 makes it
// last.
func TestChurn(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("d%d/e%d/f%d.txt", i%3, i%5, i)] = "needle\n"
	}
	root := writeTree(t, files)
	other := writeTree(t, files)
	before := descriptors(t, "inotify")
	var over atomic.Bool
	var around sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		around.Go(func() { // load
			for n := 0; !over.Load(); n++ {
				if n%(1<<20) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	around.Go(func() { meddle(root, &over) })
	rounds := samples.Raced(25)
	for round := range rounds {
		e := New(Config{GlobalIgnore: os.DevNull, MaxRoots: 1 + round%2, MaxMemory: int64(1+round%3) << 12,
			Idle: time.Duration(1+round%4) * 5 * time.Millisecond})
		ask(t, e, root, other)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if n := e.texts.kept(); n != 0 {
			t.Fatalf("%d bytes are still counted", n)
		}
	}
	over.Store(true)
	around.Wait()
	if after := descriptors(t, "inotify"); after > before {
		t.Errorf("%d queues are open, %d were before", after, before)
	}
}

// ask makes queries of every kind at the same time.
func ask(t *testing.T, e *Engine, roots ...string) {
	var wg sync.WaitGroup
	for k := range 6 {
		root := roots[k%len(roots)]
		scope := Scope{Base: root, Path: root}
		if k%3 == 1 {
			scope.Hidden = func(real string, _ bool) bool { return strings.HasSuffix(real, "7.txt") }
			scope.HiddenTag = fmt.Sprint(k)
		}
		wg.Go(func() {
			for n := range 5 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				var err error
				switch (k + n) % 4 {
				case 0:
					_, err = e.Glob(ctx, GlobQuery{Scope: scope, Pattern: "*.txt"})
				case 1:
					_, err = e.Grep(ctx, GrepQuery{Scope: scope, Pattern: "nothing"})
				case 2:
					cancel() // whatever is under way
					if _, err = e.Grep(ctx, GrepQuery{Scope: scope, Pattern: "needle"}); errors.Is(err,
						context.Canceled) {
						err = nil
					}
				default:
					_, err = e.Grep(ctx, GrepQuery{Scope: scope, Pattern: "needle", Mode: Count})
				}
				cancel()
				if err != nil {
					t.Error(err)
				}
				e.Stats(root)
			}
		})
	}
	wg.Wait()
}

// meddle changes files and directories.
func meddle(root string, over *atomic.Bool) {
	for n := 0; !over.Load(); n++ {
		dir := filepath.Join(root, fmt.Sprintf("d%d/e%d", rand.IntN(3), rand.IntN(5)))
		name := filepath.Join(dir, fmt.Sprintf("f%d.txt", rand.IntN(60)))
		switch n % 5 {
		case 0:
			_ = os.MkdirAll(dir, 0o755)
		case 1:
			_ = os.Rename(dir, filepath.Join(root, fmt.Sprintf("d%d/e%d", rand.IntN(3), rand.IntN(5))))
		case 2:
			_ = os.Remove(name)
		case 3:
			_ = os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("f1*\n"), 0o644)
		default:
			_ = os.WriteFile(name, []byte("needle\n"), 0o644)
		}
		runtime.Gosched()
	}
}
