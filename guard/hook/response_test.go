package hook

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/guard/settings"
)

func TestClip(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{" short\n", 10, "short"},
		{"0123456789", 10, "0123456789"},
		{"0123456789a", 10, "0123456789… [1 bytes cut]"},
		{"ééé", 3, "é… [4 bytes cut]"},
		{"\xff", 10, "\ufffd"},
	} {
		if got := clip(test.text, test.limit); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestParseByteOrderMark(t *testing.T) {
	a, err := parse(settings.PreToolUse, []byte("\ufeff{\"decision\": \"block\"}\r\n"))
	if err != nil || a.action != Deny {
		t.Errorf("got %v, %v, want a refusal", a.action, err)
	}
}

// Whatever a hook prints, its answer is a failure or can be acted on; and what
// has no line that begins as JSON decides nothing.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "text", "{}", "x\n{", "[", `{"decision":"block"}`, `{"continue":false}`, `{"decision":1}`, `{"hookSpecificOutput":{"updatedInput":{"a":1}}}`,
		`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r","updatedInput":[]}}`,
		`{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{}}}}`, `{"hookSpecificOutput":{"updatedToolOutput":"\ud800"}}`,
	} {
		f.Add([]byte(seed))
	}
	events := []string{settings.PreToolUse, settings.PostToolUse, settings.PostToolUseFailure,
		settings.PermissionRequest, settings.PermissionDenied}
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, event := range events {
			a, err := parse(event, output)
			if err != nil {
				if a.action != none || a.input != nil || a.output != nil {
					t.Fatalf("%s: an answer %+v beside the error %v", event, a, err)
				}
				continue
			}
			if !strings.Contains(string(output), "{") &&
				(a.action != none || a.input != nil || a.output != nil || a.context != "") {
				t.Fatalf("%s: text decided %+v", event, a)
			}
			if a.input != nil && (a.input[0] != '{' || !json.Valid(a.input)) || a.output != nil &&
				!json.Valid(a.output) {
				t.Fatalf("%s: input %q, output %q", event, a.input, a.output)
			}
			if a.action == Ask && event != settings.PreToolUse {
				t.Fatalf("%s: asks", event)
			}
			if text := clip(a.reason, 50); !utf8.ValidString(text) || len(text) > 100 {
				t.Fatalf("clipped to %q", text)
			}
		}
	})
}
