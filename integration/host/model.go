package host

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
)

// A ModelCall is what the model of a test calls, and what it must be shown then.
type ModelCall struct{ Tool, Args, Want string }

// ModelCalls are calls of every kind on the files of WriteModelFiles.
var ModelCalls = []ModelCall{
	{"Read", `{"file_path":"a.txt"}`, "     1→first line"},
	{"Edit", `{"file_path":"a.txt","old_string":"first","new_string":"edited"}`, "+edited line"},
	{"Bash", `{"command":"cat a.txt; exit 3"}`, "edited line"},
	{"Bash", `{"command":"cat .env"}`, "Read(.env)"},
	{"Grep", `{"pattern":"edited","output_mode":"content"}`, "a.txt:1:edited line"},
	{"Glob", `{"pattern":"**/*.txt"}`, "a.txt"},
	{"Write", `{"file_path":"b.txt","content":"b\n"}`, "Created"},
	{"Read", `{"file_path":".env"}`, "Read(.env)"},
	{"Write", `{"file_path":".env","content":"changed\n"}`, "Read(.env)"},
	{"Read", `{"file_path":"long.txt"}`, "Go on with offset="},
	{"Bash", `{"command":"seq 5000; echo the end; exit 1"}`, "the end"},
}

// A Scripted model makes calls one after the other.
type Scripted struct {
	Calls []ModelCall

	mu    sync.Mutex
	shown []string // what it was shown of the results, in the last request
	First string   // the first request that offers tools
}

// Next notes what the model is shown, and returns the call to be answered with; none after the last.
func (m *Scripted) Next(turn fakemodel.Turn) *fakemodel.Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.First == "" && len(turn.Tools) > 0 {
		m.First = string(turn.Body)
	}
	if len(turn.Results) > len(m.shown) {
		m.shown = turn.Results
	}
	n := len(turn.Results)
	if n >= len(m.Calls) || len(turn.Tools) == 0 {
		return nil
	}
	return &fakemodel.Call{Tool: turn.Named("toolhost", m.Calls[n].Tool), Arguments: m.Calls[n].Args}
}

// Check fails the test unless the model was shown what it must be shown, uncut.
func (m *Scripted) Check(t testing.TB) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.shown) != len(m.Calls) {
		t.Fatalf("the model was shown %d results of %d: %q", len(m.shown), len(m.Calls), m.shown)
	}
	for i, call := range m.Calls {
		if !strings.Contains(strings.ToLower(m.shown[i]), strings.ToLower(call.Want)) {
			t.Errorf("%s %s: the model was not shown %q but\n%s", call.Tool, call.Args, call.Want, m.shown[i])
		}
		if cut := regexp.MustCompile(`(?i)truncated|too large|persisted`).FindString(m.shown[i]); cut != "" {
			t.Errorf("%s %s: the client cut the result (%s)\n%s", call.Tool, call.Args, cut, m.shown[i])
		}
		if strings.Contains(m.shown[i], "SECRET") {
			t.Errorf("%s %s shows what is denied", call.Tool, call.Args)
		}
	}
}
