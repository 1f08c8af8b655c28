//go:build unix

package search

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// oddEntries adds what is not a regular file, and a name that is not UTF-8.
func oddEntries(tb testing.TB, root string) {
	tb.Helper()
	for _, err := range []error{
		os.Symlink("crlf.ts", filepath.Join(root, "link.ts")),
		os.Symlink(".", filepath.Join(root, "loop")),
		os.Symlink("../..", filepath.Join(root, "src", "up")),
		os.Symlink("nowhere", filepath.Join(root, "dangling")),
		syscall.Mkfifo(filepath.Join(root, "fifo.ts"), 0o644),
	} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	// Some file systems refuse such names.
	_ = os.WriteFile(filepath.Join(root, "name-\xff.ts"), []byte("foo bar\n"), 0o644)
}
