package baseline

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkCommand measures what a command costs in a small repository and in a tree of 100,000 files.
func BenchmarkCommand(b *testing.B) {
	for _, size := range []int{3, 100} {
		b.Run(fmt.Sprintf("%d directories", size*size), func(b *testing.B) {
			dir := b.TempDir()
			if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
				b.Skipf("no git: %v %s", err, out)
			}
			for i := range size {
				for j := range size {
					if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(i), fmt.Sprint(j)), 0o755); err != nil {
						b.Fatal(err)
					}
				}
			}
			k := Open(b.TempDir(), slog.New(slog.DiscardHandler))
			defer k.Close()
			for b.Loop() {
				k.Begin([]string{dir}, nil)
				if err := k.Check(); err != nil {
					b.Fatal(err)
				}
				k.End([]string{dir})
			}
		})
	}
}
