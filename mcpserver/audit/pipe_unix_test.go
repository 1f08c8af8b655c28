//go:build unix

package audit

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipe records into a named pipe: without a reader the log is refused at once, with one it gets the lines.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Path: path}); err == nil || !strings.Contains(err.Error(), "without a reader") {
		t.Fatalf("without a reader: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Write(Record{Tool: "Read"}); err != nil {
		t.Error(err)
	}
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || !strings.Contains(line, `"tool":"Read"`) {
		t.Errorf("the reader got %q, %v", line, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
