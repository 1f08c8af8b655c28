//go:build unix

package sandboxpool

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A seed is written into the layer only, whatever a program has put in its place there.
func TestSeedStaysInLayer(t *testing.T) {
	for name, plant := range map[string]func(outside, to string) error{
		"nothing":     func(string, string) error { return nil },
		"a file":      func(_, to string) error { return os.WriteFile(to, []byte("old"), 0o600) },
		"a link":      os.Symlink,
		"a hard link": func(outside, to string) error { return os.Link(outside, to) },
		"a pipe":      func(_, to string) error { return unix.Mkfifo(to, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			layer, from, outside := filepath.Join(dir, "layer"), filepath.Join(dir,
				"from"), filepath.Join(dir, "outside")
			to := filepath.Join(layer, "from")
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(os.Mkdir(layer, 0o700))
			check(os.WriteFile(outside, []byte("kept"), 0o600))
			check(os.WriteFile(from, []byte("new"), 0o600))
			check(plant(outside, to))
			later := time.Now().Add(time.Hour)
			check(os.Chtimes(from, later, later))
			seed(from, to, func(string, bool) bool { return false })
			for path, want := range map[string]string{outside: "kept", to: "new"} {
				if got, err := os.ReadFile(path); string(got) != want {
					t.Errorf("%s holds %q, %v", path, got, err)
				}
			}
			if info, err := os.Lstat(to); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s is %v, %v", to, info, err)
			}
		})
	}
}
