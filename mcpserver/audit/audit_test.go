package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "audit.jsonl")
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := Record{Time: time.Unix(1, 0).UTC(), Principal: "local", Tool: "Bash", Command: "a\nb", Verdict: "deny", Rule: "Bash(rm:*)"}
	for range 2 {
		if err := l.Ready(); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(want); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2:\n%s", len(lines), raw)
	}
	var got Record
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Command != want.Command || got.Rule != want.Rule || !got.Time.Equal(want.Time) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the log is readable by others: %v", info.Mode())
	}
}

func TestLongTextIsClipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Write(Record{Command: strings.Repeat("x", 10*MaxText)}); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Size() > 2*MaxText {
		t.Errorf("a record of %d bytes", info.Size())
	}
}

func TestRotatedLogIsReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(Record{Tool: "Read"}); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || len(raw) == 0 {
		t.Errorf("the new file holds %q, %v", raw, err)
	}
}

func TestUnwritable(t *testing.T) {
	if _, err := Open(Config{Path: t.TempDir()}); err == nil {
		t.Error("a directory was taken for a log file")
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("/dev/full does not exist here")
	}
	l, err := Open(Config{Path: "/dev/full"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Ready(); err == nil {
		t.Error("a log on a full device is ready")
	}
}

func TestNilLogRecordsNothing(t *testing.T) {
	var l *Log
	if err := l.Ready(); err != nil {
		t.Error(err)
	}
	if err := l.Write(Record{}); err != nil {
		t.Error(err)
	}
}
