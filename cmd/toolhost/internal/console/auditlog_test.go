package console

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

// writeLog writes records to a file, oldest first, with what a crash may leave at its end.
func writeLog(t *testing.T, path string, records []audit.Record, tail string) {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(raw, '\n'))
	}
	if err := os.WriteFile(path, []byte(b.String()+tail), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSearchAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	now := time.Now()
	at := func(ago time.Duration, tool, verdict, text string) audit.Record {
		return audit.Record{Time: now.Add(-ago), Tool: tool, Verdict: verdict, Reads: []string{text}}
	}
	writeLog(t, path+".1", []audit.Record{at(4*time.Hour, "Read", "deny", "/ws/.env"), at(3*time.Hour, "Read", "allow", "/ws/Oldest")}, "")
	writeLog(t, path, []audit.Record{at(2*time.Hour, "Bash", "allow", "/ws/x"),
		at(time.Hour, "Read", "deny", "/ws/.ENV")}, `{"time":"2026`)
	tests := []struct {
		name string
		q    query
		want []string
	}{
		{"all", query{}, []string{"/ws/.ENV", "/ws/x", "/ws/Oldest", "/ws/.env"}},
		{"text, whatever its case", query{Text: ".env"}, []string{"/ws/.ENV", "/ws/.env"}},
		{"tool", query{Tool: "Bash"}, []string{"/ws/x"}},
		{"verdict and text", query{Verdict: "allow", Text: "old"}, []string{"/ws/Oldest"}},
		{"since", query{Since: 150 * time.Minute}, []string{"/ws/.ENV", "/ws/x"}},
		{"none", query{Text: "nothing"}, nil},
	}
	for _, tt := range tests {
		found, err := searchAudit(path, tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range found.Records {
			got = append(got, r.Reads...)
		}
		if !slices.Equal(got, tt.want) || found.More || found.Truncated {
			t.Errorf("%s: got %q, want %q (more: %v, limited: %v)", tt.name, got, tt.want, found.More, found.Truncated)
		}
	}
	if found, err := searchAudit(filepath.Join(t.TempDir(), "none"), query{}); err != nil || len(found.Records) != 0 {
		t.Errorf("a log that does not exist: %+v, %v", found, err)
	}
}

func TestSearchAuditIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all []audit.Record
	for n := range maxFound + 50 {
		all = append(all, audit.Record{Time: time.Now(), Command: fmt.Sprint(n, strings.Repeat("x", 3000))})
	}
	writeLog(t, path, all, "")
	found, err := searchAudit(path, query{})
	if err != nil || len(found.Records) != maxFound || !found.More {
		t.Fatalf("%d found, more: %v, %v", len(found.Records), found.More, err)
	}
	for i, r := range found.Records {
		if want := all[len(all)-1-i].Command; r.Command != want {
			t.Fatalf("record %d is %.10s, want %.10s", i, r.Command, want)
		}
	}
}

// FuzzBackwards compares with splitting the whole.
func FuzzBackwards(f *testing.F) {
	f.Add("a\nbb\n\nccc", uint8(0))
	f.Add("\n\n", uint8(1))
	f.Add(strings.Repeat("long line ", 40_000)+"\nlast\n", uint8(0))
	f.Fuzz(func(t *testing.T, text string, cut uint8) {
		from := min(int64(cut), int64(len(text)))
		var got []string
		if err := backwards(strings.NewReader(text), from, int64(len(text)), func(line []byte) bool {
			got = append(got, string(line))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		var want []string
		rows := strings.Split(text[from:], "\n")
		for i, row := range slices.Backward(rows) {
			if row = strings.TrimSpace(row); row != "" && (i > 0 || from == 0) {
				want = append(want, row)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
