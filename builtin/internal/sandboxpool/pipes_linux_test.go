package sandboxpool

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A directory that holds more than the look takes does not keep it from pipes in the others.
func TestPipesAfterLargeDirectories(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for i := range 8 {
		dirs = append(dirs, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.Mkdir(dirs[i], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		for _, much := range dirs[:5] {
			if err := os.MkdirAll(filepath.Join(much, fmt.Sprint(i), "below"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe := filepath.Join(dirs[7], "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &pipeLook{pipes: map[string]*coveredFile{}}
	l.in(append(dirs, pipe), map[string]bool{}, 100)
	if l.pipes[pipe] == nil {
		t.Errorf("%d directories were looked at, and the pipe was not found", len(l.dirs))
	}
}
