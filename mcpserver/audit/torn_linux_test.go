package audit

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limited is set in the environment of the process in which TestTornLine limits the size of files.
const limited = "TOOLHOST_AUDIT_LIMITED"

// A line that was cut short, as a full disk does it, spoils no other. The limit is one of a process, so the test is run again in its own.
func TestTornLine(t *testing.T) {
	if os.Getenv(limited) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTornLine$")
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write := func(tool string) error {
		return l.Write(Record{Tool: tool, Command: strings.Repeat("x", lineOfAbout)})
	}
	if err := write("first"); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: lineOfAbout * 3 / 2, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	torn := write("torn")
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if torn == nil || l.Failures() != 1 {
		t.Fatalf("the file had no room, and yet: %v, %d failures", torn, l.Failures())
	}
	for _, tool := range []string{"second", "third"} {
		if err := write(tool); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole []string
	for line := range strings.Lines(string(raw)) {
		var r Record
		if json.Unmarshal([]byte(line), &r) == nil {
			whole = append(whole, r.Tool)
		}
	}
	if got := strings.Join(whole, " "); got != "first second third" || strings.Count(string(raw), "\n") != 4 {
		t.Errorf("the log holds %s: %s", got, raw)
	}
}
