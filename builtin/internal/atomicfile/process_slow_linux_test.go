//go:build slow

package atomicfile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func isVersion(b []byte) bool {
	return len(b) >= versionSize && bytes.Count(b, b[:1]) == len(b)
}

// TestKill kills a writer again and again. The file is always one version,
// and after Recover nothing else is left. ATOMICFILE_KILLS sets how often.
func TestKill(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	if n, err := strconv.Atoi(os.Getenv("ATOMICFILE_KILLS")); err == nil {
		rounds = n
	}
	for _, inPlace := range []bool{false, true} {
		t.Run(fmt.Sprintf("in place %v", inPlace), func(t *testing.T) {
			path, journal := memoryRoom(t)
			file := filepath.Join(path, "f")
			names := []string{"f"}
			put(t, file, string(versionOf(0)), 0o640)
			if inPlace {
				names = append(names, "g")
				link(t, file, filepath.Join(path, "g"))
			}
			removed, restored := 0, 0
			for i := range rounds {
				killWriter(t, path, journal, i)
				report, err := Recover(context.Background(), journal)
				if err != nil || len(report.Saved) > 0 {
					t.Fatalf("%+v, %v", report, err)
				}
				removed += len(report.Removed)
				restored += len(report.Restored)
				if got := content(t, file); !isVersion([]byte(got)) {
					t.Fatalf("round %d: the file is torn: %d bytes", i, len(got))
				}
				tidy(t, path, journal, names...)
			}
			t.Logf("%d kills: %d temporary files removed, %d files restored", rounds, removed, restored)
		})
	}
}

// killWriter starts a writer and kills it at a moment that differs by round.
func killWriter(t *testing.T, path, journal string, round int) {
	t.Helper()
	cmd := child("write", path, journal)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error("the writer failed")
	}
	for range round * 997 % 5000 { // some work, so that the moments differ
		_, _ = os.Lstat(path)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
