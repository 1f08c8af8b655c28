package walk

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
)

func TestParallelVisitsEachOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		var seen [1 << 12]atomic.Int32
		Parallel(context.Background(), workers, 1, func(_, n int) []int {
			seen[n].Add(1)
			if 2*n+1 >= len(seen) {
				return nil
			}
			return []int{2 * n, 2*n + 1}
		})
		for n := 1; n < len(seen); n++ {
			if seen[n].Load() != 1 {
				t.Fatalf("%d workers: item %d visited %d times", workers, n, seen[n].Load())
			}
		}
	}
}

func TestParallelStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var n atomic.Int32
	Parallel(ctx, 4, 0, func(_, _ int) []int {
		if n.Add(1) == 100 {
			cancel()
		}
		return []int{0, 0}
	})
	if n.Load() < 100 {
		t.Errorf("stopped after %d", n.Load())
	}
}

// open opens a root twice: as the system allows, and element by element.
func open(t *testing.T) (string, []*Root) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "root", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"out", "root/sub/f"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"root/up": "../out", "root/dir": "sub", "root/in": "sub/f",
		"linked": "root"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	return dir, roots(t, filepath.Join(dir, "root"))
}

func TestRoot(t *testing.T) {
	_, roots := open(t)
	for i, r := range roots {
		for _, bad := range []string{"up", "in", "dir/f", "sub/../../out", "../out", "sub/gone", "gone/f"} {
			if h, err := r.Open(bad); err == nil {
				h.Close()
				t.Errorf("root %d: opened %s", i, bad)
			}
		}
		h, err := r.Open("sub/f")
		if err != nil {
			t.Fatalf("root %d: %v", i, err)
		}
		buf := make([]byte, 20)
		n, err := h.ReadAt(buf, 0)
		if err != io.EOF || string(buf[:n]) != "root/sub/f" {
			t.Errorf("root %d: read %q, %v", i, buf[:n], err)
		}
		h.Close()
		if h, err := r.OpenWithin("up"); err == nil {
			h.Close()
			t.Errorf("root %d: followed a link outside", i)
		}
		if _, err := r.List("dir", new(Buffer)); err == nil {
			t.Errorf("root %d: listed through a link", i)
		}
		entries, err := r.List("", new(Buffer))
		names := map[Kind][]string{}
		for _, e := range entries {
			names[e.Kind] = append(names[e.Kind], e.Name)
		}
		slices.Sort(names[Other])
		if err != nil || !slices.Equal(names[Dir], []string{"sub"}) ||
			!slices.Equal(names[Other], []string{"dir", "in", "up"}) {
			t.Errorf("root %d: listed %v, %v", i, names, err)
		}
		if info, err := r.Stat("sub/f"); err != nil || info.Kind != File || info.Size != 10 {
			t.Errorf("root %d: %+v, %v", i, info, err)
		}
		if info, err := r.Stat("in"); err != nil || info.Kind != Other {
			t.Errorf("root %d: a link is %+v, %v", i, info, err)
		}
		r.Close()
	}
}
