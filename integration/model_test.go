package integration

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
)

// A modelCall is what the model of a test calls, and what it must be shown then.
type modelCall struct{ tool, args, want string }

var modelCalls = []modelCall{
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

// firstRequests are words that the first request of a client which offers tools must hold: of our schemas, or of the instructions that
// name our tools to a model that has to search for them.
var (
	schemas = []string{"file_path", "old_string", "run_in_background", "output_mode", "content"}
	naming  = []string{"Read (read a file)", "Edit (edit a file)", "Write (write a file)", "Bash (run a shell command)", "Glob (find files)", "Grep (search files)"}
)

// A scripted model makes calls one after the other.
type scripted struct {
	calls []modelCall

	mu    sync.Mutex
	shown []string // what it was shown of the results, in the last request
	first string   // the first request that offers tools
}

// next notes what the model is shown, and returns the call to be answered with; none after the last.
func (m *scripted) next(turn fakemodel.Turn) *fakemodel.Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == "" && len(turn.Tools) > 0 {
		m.first = string(turn.Body)
	}
	if len(turn.Results) > len(m.shown) {
		m.shown = turn.Results
	}
	n := len(turn.Results)
	if n >= len(m.calls) || len(turn.Tools) == 0 {
		return nil
	}
	return &fakemodel.Call{Tool: turn.Named("toolhost", m.calls[n].tool), Arguments: m.calls[n].args}
}

func (m *scripted) check(t testing.TB) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.shown) != len(m.calls) {
		t.Fatalf("the model was shown %d results of %d: %q", len(m.shown), len(m.calls), m.shown)
	}
	for i, call := range m.calls {
		if !strings.Contains(strings.ToLower(m.shown[i]), strings.ToLower(call.want)) {
			t.Errorf("%s %s: the model was not shown %q but\n%s", call.tool, call.args, call.want, m.shown[i])
		}
		if cut := regexp.MustCompile(`(?i)truncated|too large|persisted`).FindString(m.shown[i]); cut != "" {
			t.Errorf("%s %s: the client cut the result (%s)\n%s", call.tool, call.args, cut, m.shown[i])
		}
		if strings.Contains(m.shown[i], "SECRET") {
			t.Errorf("%s %s shows what is denied", call.tool, call.args)
		}
	}
}
