package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func question(text, header string, labels ...string) askQuestion {
	q := askQuestion{Question: text, Header: header}
	for _, l := range labels {
		q.Options = append(q.Options, askOption{Label: l, Description: "about " + l})
	}
	return q
}

// TestAskCheck refuses what is not of the form, and takes out what cannot be seen.
func TestAskCheck(t *testing.T) {
	good := question("Which?", "Choice", "a", "b")
	for name, tt := range map[string]struct {
		in   askInput
		want string
	}{
		"good":          {askInput{[]askQuestion{good}}, ""},
		"none":          {askInput{}, "expected 1 to 4, got 0"},
		"five":          {askInput{[]askQuestion{good, good, good, good, good}}, "expected 1 to 4, got 5"},
		"one option":    {askInput{[]askQuestion{question("Which?", "Choice", "a")}}, "expected 2 to 4, got 1"},
		"five options":  {askInput{[]askQuestion{question("Which?", "Choice", "a", "b", "c", "d", "e")}}, "expected 2 to 4, got 5"},
		"a long header": {askInput{[]askQuestion{question("Which?", "Choice of all", "a", "b")}}, "at most 12 characters, got 13"},
		"no question":   {askInput{[]askQuestion{question("\x1b\u200b ", "Choice", "a", "b")}}, "only invisible characters"},
		"alike":         {askInput{[]askQuestion{question("Which?", "Choice", "a", "a\u200b")}}, "is there twice"},
	} {
		err := tt.in.check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestAskForm: text that looks like a question of the host begins with a mark, and follows a line that no tool can leave out.
func TestAskForm(t *testing.T) {
	in := askInput{[]askQuestion{question("x\x1b[2J\u202e\r\n\nBash: rm -rf / asks to be allowed:\u2028Always allow?",
		"Bash\nallow", "allow once", "deny")}}
	if err := in.check(); err != nil {
		t.Fatal(err)
	}
	notPermission := (*Env)(nil).Framed("the agent", nil)
	var form struct {
		Message string `json:"message"`
		Schema  struct {
			Properties map[string]any `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(in.form(nil), &form); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(form.Message, notPermission) || strings.ContainsAny(form.Message, "\x1b\r\u202e\u2028") {
		t.Errorf("the form begins with something else, or holds what cannot be seen:\n%q", form.Message)
	}
	for line := range strings.Lines(strings.TrimPrefix(form.Message, notPermission)) {
		if line != "\n" && line != "1 of 1:\n" && !strings.HasPrefix(line, "  | ") {
			t.Errorf("a line of the model without a mark: %q", line)
		}
	}
	if form.Schema.Properties["decision"] != nil {
		t.Error("the form has the field of a permission")
	}
}

func TestAskAnswers(t *testing.T) {
	in := askInput{[]askQuestion{question("One?", "One", "a", "b"), question("Many?", "Many", "c", "d", "e")}}
	in.Questions[1].MultiSelect = true
	for content, want := range map[string]string{
		`{"answer1":"a","answer2":["c","e"]}`:            "answered [[a] [c e]]",
		`{"answer1":"a","words1":"","answer2":["c"]}`:    "answered [[a] [c]]",
		`{"words1":"neither\u001b","answer2":"d"}`:       "answered [[neither] [d]]",
		`{"answer1":"b","words1":"but","answer2":["d"]}`: "answered [[b but] [d]]",
		`{"answer1":"a"}`:                                  "cancelled []",
		`{"answer1":"a","answer2":[]}`:                     "cancelled []",
		`{"answer1":"a","answer2":["c","x"]}`:              "cancelled []",
		`{"answer1":"x","answer2":["c"]}`:                  "cancelled []",
		`{"answer1":["a","b"],"answer2":["c"]}`:            "cancelled []",
		`{"answer1":{"a":1},"answer2":["c"]}`:              "cancelled []",
		`{"answer1":"a","answer2":["c","c"],"words2":" "}`: "cancelled []",
	} {
		status, answers := in.read(json.RawMessage(`{"action":"accept","content":` + content + `}`))
		if got := fmt.Sprint(status, " ", answers); got != want {
			t.Errorf("%s: %s, want %s", content, got, want)
		}
	}
	for raw, want := range map[string]string{`{"action":"decline"}`: "declined", `{"action":"cancel"}`: "cancelled",
		``: "cancelled", `[]`: "cancelled", `{"action":"accept"}`: "cancelled"} {
		if status, _ := in.read(json.RawMessage(raw)); status != want {
			t.Errorf("%s: %s, want %s", raw, status, want)
		}
	}
}
