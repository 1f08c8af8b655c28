package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/guard"
)

// Limits of questions to a person.
const (
	// askWait is how long a person has to answer.
	askWait = 10 * time.Minute
	// maxUnanswered is the number of consecutive unanswered questions after which a conversation may ask no more.
	maxUnanswered = 3
	// maxHeader, maxQuestion, maxOption and maxWords are the longest texts, in characters.
	maxHeader, maxQuestion, maxOption, maxWords = 12, 1000, 300, 2000
)

type (
	// askInput is the input of [askUserTool].
	askInput struct {
		Questions []askQuestion `json:"questions" jsonschema:"1 to 4 questions, shown together"`
	}
	askQuestion struct {
		Question    string      `json:"question"`
		Header      string      `json:"header" jsonschema:"a label of at most 12 characters"`
		Options     []askOption `json:"options" jsonschema:"2 to 4 answers to choose from"`
		MultiSelect bool        `json:"multiSelect,omitempty" jsonschema:"several answers may be chosen"`
	}
	askOption struct {
		Label       string `json:"label"`
		Description string `json:"description,omitempty"`
	}
	// askOutput is the structured output.
	askOutput struct {
		Status  string              `json:"status"` // answered, declined, cancelled
		Answers map[string][]string `json:"answers,omitempty"`
	}
)

// askUserTool asks the person at the client. The answer is text for the model and allows nothing.
var askUserTool = declare(Tool[askInput]{
	Name: "AskUserQuestion", Title: "Ask the user", Brief: "questions to the user with answers to choose from",
	OptIn: true, NeedsForm: true, Hints: Hints{ReadOnly: true}, Permission: guard.ToRead, MaxResult: 12_000,
	SkipQueue: true,
	Refine: func(s *jsonschema.Schema) {
		questions := s.Properties["questions"]
		questions.Types, questions.Type = nil, "array"
		questions.MinItems, questions.MaxItems = jsonschema.Ptr(1), jsonschema.Ptr(4)
		options := questions.Items.Properties["options"]
		options.Types, options.Type = nil, "array"
		options.MinItems, options.MaxItems = jsonschema.Ptr(2), jsonschema.Ptr(4)
	},
	Plan: func(_ context.Context, env *Env, in askInput) (Plan, error) {
		if env.Elicit == nil && !env.Repeats {
			return Plan{}, errors.New("the client cannot show questions to a person: ask in the text of your answer")
		}
		if err := in.check(); err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Compute{}}},
			Run:    func(ctx context.Context) (Result, error) { return in.ask(ctx, env) },
		}, nil
	},
})

// check makes the texts safe to show, and returns an error if the questions are wrong.
func (in askInput) check() error {
	if n := len(in.Questions); n < 1 || n > 4 {
		return fmt.Errorf("questions: expected 1 to 4, got %d", n)
	}
	for i := range in.Questions {
		q, at := &in.Questions[i], fmt.Sprintf("questions[%d]", i)
		q.Question, q.Header = plainText(q.Question), strings.Join(strings.Fields(plainText(q.Header)), " ")
		if err := errors.Join(textOf(at+".question", q.Question, maxQuestion),
			textOf(at+".header", q.Header, maxHeader)); err != nil {
			return err
		}
		if n := len(q.Options); n < 2 || n > 4 {
			return fmt.Errorf("%s.options: expected 2 to 4, got %d", at, n)
		}
		labels := map[string]bool{}
		for j := range q.Options {
			o := &q.Options[j]
			o.Label, o.Description = strings.Join(strings.Fields(plainText(o.Label)), " "), plainText(o.Description)
			if err := textOf(fmt.Sprintf("%s.options[%d].label", at, j), o.Label, maxOption); err != nil {
				return err
			}
			if utf8.RuneCountInString(o.Description) > maxQuestion {
				return fmt.Errorf("%s.options[%d].description: expected at most %d characters", at, j, maxQuestion)
			}
			if labels[o.Label] {
				return fmt.Errorf("%s.options: %q is there twice: give each option a label of its own", at, o.Label)
			}
			labels[o.Label] = true
		}
	}
	return nil
}

func textOf(name, s string, most int) error {
	switch n := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("%s: expected text, got only invisible characters", name)
	case n > most:
		return fmt.Errorf("%s: expected at most %d characters, got %d", name, most, n)
	}
	return nil
}

// plainText removes invisible characters: control characters, and those that change the direction or the place of
// other characters.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
}

// Framed returns the message of a form with lines of text from asker, which is another program. Each line has a mark,
// and the message begins unlike this host's questions about permissions.
func (*Env) Framed(asker string, lines []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "A question of %s. It is no request for permission: no answer to it allows anything.\n", asker)
	for _, line := range lines {
		b.WriteString(marked("", line))
	}
	return b.String()
}

// marked returns a text with a mark before each line.
func marked(indent, text string) string {
	return "  | " + indent + strings.ReplaceAll(text, "\n", "\n  | "+indent) + "\n"
}

// form returns the params of the elicitation.
func (in askInput) form(env *Env) json.RawMessage {
	var b strings.Builder
	b.WriteString(env.Framed("the agent", nil))
	fields := map[string]any{}
	mark := func(indent, text string) { b.WriteString(marked(indent, text)) }
	for i, q := range in.Questions {
		fmt.Fprintf(&b, "\n%d of %d:\n", i+1, len(in.Questions))
		mark("", q.Question)
		var labels []string
		for _, o := range q.Options {
			labels = append(labels, o.Label)
			mark("  ", strings.TrimSuffix(o.Label+": "+o.Description, ": "))
		}
		choice := map[string]any{"type": "string", "title": q.Header, "enum": labels}
		if q.MultiSelect {
			choice = map[string]any{"type": "array", "title": q.Header,
				"items": map[string]any{"type": "string", "enum": labels}}
		}
		fields[answerField(i)] = choice
		fields[wordsField(i)] = map[string]any{"type": "string", "title": q.Header + ", in your own words",
			"maxLength": maxWords}
	}
	raw, _ := json.Marshal(map[string]any{ // strings encode
		"mode": "form", "message": b.String(), "requestedSchema": map[string]any{"type": "object", "properties": fields},
	})
	return raw
}

func answerField(i int) string { return fmt.Sprintf("answer%d", i+1) }
func wordsField(i int) string  { return fmt.Sprintf("words%d", i+1) }

// An openQuestions counts the questions of each conversation.
type openQuestions struct {
	mu     sync.Mutex
	scopes map[string]askedScope
}

type askedScope struct {
	until      time.Time // until when the open question waits; zero: there is none
	unanswered int       // in a row
}

// begin opens a question, one at a time.
func (a *openQuestions) begin(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.scopes[key]
	switch {
	case time.Now().Before(s.until):
		return errors.New("a question of this conversation waits for its answer: ask one at a time, or all of them in " +
			"one call")
	case s.unanswered >= maxUnanswered:
		return fmt.Errorf("the last %d questions of this conversation were not answered, so no more are asked: go on by "+
			"your own judgement, and say what you assumed", maxUnanswered)
	}
	if a.scopes == nil {
		a.scopes = map[string]askedScope{}
	}
	a.scopes[key] = askedScope{time.Now().Add(askWait), s.unanswered + 1}
	return nil
}

// end closes a question.
func (a *openQuestions) end(key string, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.scopes[key]; !answered {
		a.scopes[key] = askedScope{unanswered: s.unanswered}
	} else {
		delete(a.scopes, key)
	}
}

// ask puts the questions to the person, and returns the result.
func (in askInput) ask(ctx context.Context, env *Env) (Result, error) {
	key := env.Principal + "\x00" + env.Scope
	if err := env.Runtime.questions.begin(key); err != nil {
		return Result{}, err
	}
	answered := func(raw json.RawMessage) Result {
		status, answers := in.read(raw)
		env.Runtime.questions.end(key, status != "cancelled")
		return in.result(status, answers)
	}
	if env.Elicit == nil {
		return Result{Text: "A person is asked.", Asks: &ExecAsked{
			Question: ExecQuestion{Text: "questions of the agent"}, Task: "AskUserQuestion", Elicit: in.form(env),
			Answer: func(_ context.Context, raw json.RawMessage) (Result, error) { return answered(raw), nil },
		}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	raw, err := env.Elicit(ctx, in.form(env))
	if err != nil {
		raw = nil // no answer
	}
	return answered(raw), nil
}

// read returns the status of the questions, and the answers to each. A partial answer counts as no answer.
func (in askInput) read(raw json.RawMessage) (status string, answers [][]string) {
	var r struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if json.Unmarshal(raw, &r) != nil || r.Action != "accept" {
		if r.Action == "decline" {
			return "declined", nil
		}
		return "cancelled", nil
	}
	for i, q := range in.Questions {
		chosen, ok := q.chosen(r.Content[answerField(i)])
		words, _ := r.Content[wordsField(i)].(string)
		if words = strings.TrimSpace(plainText(words)); words != "" {
			chosen = append(chosen, string([]rune(words)[:min(maxWords, utf8.RuneCountInString(words))]))
		}
		if !ok || len(chosen) == 0 {
			return "cancelled", nil
		}
		answers = append(answers, chosen)
	}
	return "answered", answers
}

// chosen returns the labels in an answer. ok is false if one was not offered.
func (q askQuestion) chosen(answer any) (labels []string, ok bool) {
	var all []any
	switch a := answer.(type) {
	case nil:
		return nil, true
	case string:
		if a == "" {
			return nil, true
		}
		all = []any{a}
	case []any:
		all = a
	default:
		return nil, false
	}
	if len(all) > 1 && !q.MultiSelect {
		return nil, false
	}
	for _, one := range all {
		label, isText := one.(string)
		if !isText || slices.Contains(labels, label) || !slices.ContainsFunc(q.Options,
			func(o askOption) bool { return o.Label == label }) {
			return nil, false
		}
		labels = append(labels, label)
	}
	return labels, true
}

// result returns the result for the model.
func (in askInput) result(status string, answers [][]string) Result {
	out := askOutput{Status: status}
	text := map[string]string{
		"answered":  "The person answered:\n",
		"declined":  "The person declined to answer. Go on by your own judgement, or end your turn.\n",
		"cancelled": "No answer: the person closed the question, left a part of it open, or did not answer in time. Do not take it for an agreement.\n",
	}[status]
	for i, a := range answers {
		if out.Answers == nil {
			out.Answers = map[string][]string{}
		}
		out.Answers[in.Questions[i].Question] = a
		text += fmt.Sprintf("- %q: %s\n", in.Questions[i].Question, strings.Join(a, "; "))
	}
	return Result{Text: text, Structured: out, Summary: status}
}
