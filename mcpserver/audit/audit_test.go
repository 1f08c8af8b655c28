package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "audit.jsonl")
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := Record{Time: time.Unix(1, 0).UTC(), Principal: "local", Tool: "Bash", Command: "a\nb", Verdict: "deny",
		Rule: "Bash(rm:*)"}
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

// Whatever a caller makes up is one line of bounded length that a terminal can show, and that says what it was.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 10*maxText)
	paths := make([]string, 10*maxPaths)
	for i := range paths {
		paths[i] = "p"
	}
	for _, tt := range []struct {
		name string
		rec  Record
		want string // the command as it is read again; "" where it is clipped
	}{
		{"lines", Record{Command: "a\nb\r\n"}, "a\nb\r\n"},
		{"escape sequences", Record{Command: "\x1b[2J\x07\x7f\u009b2J"}, "\x1b[2J\x07\x7f\u009b2J"},
		{"turned text and no room", Record{Command: "\u202egpj.exe\u2066\u200b\ufeff\u2028"}, "\u202egpj.exe\u2066\u200b\ufeff\u2028"},
		{"beyond the basic plane", Record{Command: "😀\U000e0041"}, "😀\U000e0041"},
		{"words of any language", Record{Command: "äöü 日本"}, "äöü 日本"},
		{"no UTF-8", Record{Command: "a\xffb"}, "a\ufffdb"},
		{"forged JSON", Record{Command: `","verdict":"allow","x":"`}, `","verdict":"allow","x":"`},
		{"long texts", Record{Principal: long, Scope: long, Tool: long, Rule: long, Source: long, Error: long, Reads: []string{long}, Writes: []string{long}}, ""},
		{"many paths", Record{Reads: paths, Writes: paths}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if once := tt.rec.Clipped(); !reflect.DeepEqual(once, once.Clipped()) {
				t.Errorf("%+v is clipped again", once)
			}
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l, err := Open(Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.Write(tt.rec); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			line, ended := strings.CutSuffix(string(raw), "\n")
			if !ended || len(line) > 9*maxText || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%d bytes: %.200q", len(raw), raw)
			}
			var got Record
			if err := json.Unmarshal(raw, &got); err != nil || tt.want != "" && got.Command != tt.want ||
				got.Verdict != "" {
				t.Errorf("%q is read as %+v, %v", line, got, err)
			}
			if n := len(got.Reads); n > maxPaths+1 || n > 1 && got.Reads[n-1] != "… and 576 more" {
				t.Errorf("%d paths, the last is %s", n, got.Reads[n-1])
			}
		})
	}
}

func TestClip(t *testing.T) {
	for _, s := range []string{strings.Repeat("x", maxText), strings.Repeat("ä", maxText/2)} {
		if got := Clip(s); got != s {
			t.Errorf("%d bytes are clipped", len(s))
		}
	}
	got := Clip("x" + strings.Repeat("ä", maxText) + "--force")
	if !strings.HasPrefix(got, "xää") || !strings.HasSuffix(got, "ä--force") ||
		!strings.Contains(got, "bytes left out") || len(got) > maxText || !utf8.ValidString(got) {
		t.Errorf("%d bytes, it ends with %q", len(got), got[len(got)-60:])
	}
	if got := Clip(strings.Repeat("\x80", 2*maxText)); len(got) > maxText+len("…") {
		t.Errorf("%d bytes", len(got))
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

// Calls that ran concurrently share a look at the file's name. What was done to the file before a call came in, or longer ago
// than a moment, is seen by its record.
func TestSharedLook(t *testing.T) {
	for _, tt := range []struct {
		name           string
		arrived, rests time.Duration // of the second call: after the first one's arrival, and its end after the first record
		moved          bool          // its record goes to where the file was moved
	}{
		{"under way when the file was moved", 0, sharedLook, true},
		{"came in behind the look", 2, 0, false},
		{"ended later", 0, sharedLook + 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				path, earlier := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "earlier")
				l, err := Open(Config{Path: path})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				began := time.Now()
				time.Sleep(time.Nanosecond)
				first := l.Write(Record{Time: began, Tool: "Read"})
				renamed := os.Rename(path, earlier)
				time.Sleep(tt.rests)
				if err := errors.Join(first, renamed,
					l.Write(Record{Time: began.Add(tt.arrived), Tool: "Edit"})); err != nil {
					t.Fatal(err)
				}
				raw, err := os.ReadFile(earlier)
				if got := strings.Contains(string(raw), "Edit"); err != nil || got != tt.moved {
					t.Errorf("the second record went to the moved file: %v, want %v (%v)\n%s", got, tt.moved, err, raw)
				}
				if _, err := os.Stat(path); (err == nil) == tt.moved {
					t.Errorf("the path names a file: %v", err)
				}
			})
		})
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

func TestClosedLogStaysClosed(t *testing.T) {
	l, err := Open(Config{Path: filepath.Join(t.TempDir(), "audit.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.Ready() == nil || l.Write(Record{}) == nil || l.file != nil {
		t.Error("a closed log is opened again")
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

// TestOptional: a log that calls go on without is not looked for before each of them, and its file is made again by the next record.
func TestOptional(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed here")
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Config{Path: path, Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tool := range []string{"Read", "Edit"} {
		if err := errors.Join(l.Ready(), l.Write(Record{Tool: tool})); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), tool) || strings.Count(string(text), "\n") != 1 {
			t.Errorf("the log holds %q, error %v", text, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
