package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A form is a question of an agent that is not about permissions: AskUserQuestion.
type form struct {
	Message string // begins with a line that the agent cannot leave out
	Diff    string // what the question is about, or ""; if set, each label of the only choice is a button
	Choices []formChoice
}

// maxDiff bounds the diff on the page, in bytes.
const maxDiff = 1 << 20

// A formChoice is one question, with fields for the chosen labels and for other words.
type formChoice struct {
	Name, Words, Title string
	Labels             []string
	Several            bool // several labels may be chosen
	Longest            int  // the greatest length of the words, in characters
}

// formActions are the answers to a form, and the messages about them.
var formActions = map[string]string{"accept": "was answered", "decline": "was declined",
	"cancel": "was closed without an answer"}

// newForm reads the params of an elicitation.
func newForm(params json.RawMessage) (f form) {
	var p struct {
		Message, Diff   string
		RequestedSchema struct {
			Properties map[string]struct {
				Title     string
				Enum      []string
				Items     struct{ Enum []string }
				MaxLength int
			}
		}
	}
	_ = json.Unmarshal(params, &p) // they come from the host; a form without questions can be declined
	f.Message, f.Diff = p.Message, p.Diff
	for n := 1; ; n++ {
		c := formChoice{Name: fmt.Sprint("answer", n), Words: fmt.Sprint("words", n)}
		field, ok := p.RequestedSchema.Properties[c.Name]
		if !ok {
			return f
		}
		c.Title, c.Several, c.Longest = field.Title, len(field.Items.Enum) > 0,
			p.RequestedSchema.Properties[c.Words].MaxLength
		c.Labels = append(field.Enum, field.Items.Enum...)
		f.Choices = append(f.Choices, c)
	}
}

// answer returns the result of the elicitation. If only some of the questions are answered, it returns an error, and
// nothing is sent.
func (f form) answer(action string, values url.Values) (string, error) {
	result := map[string]any{"action": action}
	if action == "accept" {
		content := map[string]any{}
		for n, c := range f.Choices {
			chosen, words := values[c.Name], strings.TrimSpace(values.Get(c.Words))
			switch {
			case len(chosen) == 0 && words == "":
				return "", fmt.Errorf("nothing was sent: question %d has no answer yet", n+1)
			case len(chosen) > 1 && !c.Several:
				return "", fmt.Errorf("nothing was sent: question %d takes one choice", n+1)
			case slices.ContainsFunc(chosen, func(label string) bool { return !slices.Contains(c.Labels, label) }):
				return "", errors.New("nothing was sent: an answer was not offered")
			case c.Several:
				content[c.Name] = chosen
			case len(chosen) == 1:
				content[c.Name] = chosen[0]
			}
			content[c.Words] = words
		}
		result["content"] = content
	}
	raw, err := json.Marshal(result)
	return string(raw), err
}

// formOf shows the form of a question.
func (b liveBody) formOf(id string, q question) g.Node {
	act := func(label, action string, class g.Node) g.Node {
		return h.Button(class, h.Name("decision"), h.Value(action), g.If(b.Closed != "", h.Disabled()), g.Text(label))
	}
	if q.Form.Diff != "" {
		return b.diffOf(id, q)
	}
	return h.Li(h.ID(id), h.Data("v", "waiting"), h.Class("question"),
		h.Article(h.Aria("labelledby", id+"-what"),
			h.H3(h.ID(id+"-what"), h.Span(h.Class("tool"), text(q.Asked.Tool)), g.Text(" asks you")),
			askedBy(q, " · ends at "),
			h.Div(h.Class("input"), h.TabIndex("0"), h.Role("group"), h.Aria("label", "What the agent asks"),
				h.Pre(rows(plain("", q.Form.Message)))),
			post(b.answerAt(), b.Token, h.Class("ask"), hidden("question", fmt.Sprint(q.ID)),
				g.Map(q.Form.Choices, func(c formChoice) g.Node { return c.fields(id) }),
				act("Answer", "accept", h.Class("main")), g.Text(" "), act("Decline to answer", "decline", nil),
				g.Text(" "), act("Close", "cancel", nil),
			),
		),
	)
}

// diffOf shows the form of a question about a diff.
func (b liveBody) diffOf(id string, q question) g.Node {
	shown := clip(q.Form.Diff, maxDiff)
	return h.Li(h.ID(id), h.Data("v", "waiting"), h.Class("question"),
		h.Article(h.Aria("labelledby", id+"-what"),
			h.H3(h.ID(id+"-what"), h.Span(h.Class("tool"), text(q.Asked.Tool)), text(" "+q.Form.Message)),
			askedBy(q, " · ends at "),
			scroller("result tall", "The whole diff", diffLines(shown)),
			g.If(len(shown) < len(q.Form.Diff), h.P(h.Class("note warn"), g.Textf("%d more bytes are not shown here; the "+
				"terminal has them.", len(q.Form.Diff)-len(shown)))),
			h.Div(h.Class("answers"), g.Map(q.Form.Choices, func(c formChoice) g.Node {
				return post(b.answerAt(), b.Token, hidden("question", fmt.Sprint(q.ID)), hidden("decision", "accept"),
					g.Map(c.Labels, func(label string) g.Node {
						return g.Group{h.Button(h.Name(c.Name), h.Value(label), g.If(b.Closed != "", h.Disabled()),
							text(label)), g.Text(" ")}
					}))
			})),
		),
	)
}

// fields shows the fields of one choice.
func (c formChoice) fields(id string) g.Node {
	kind, words := "radio", id+"-"+c.Words
	if c.Several {
		kind = "checkbox"
	}
	return h.FieldSet(h.Legend(text(c.Title)),
		g.Map(c.Labels, func(label string) g.Node {
			return h.Label(h.Input(h.Type(kind), h.Name(c.Name), h.Value(label)), g.Text(" "), text(label))
		}),
		h.Label(h.For(words), g.Text("In your own words")),
		h.Textarea(h.ID(words), h.Name(c.Words), h.Rows("2"), h.MaxLength(fmt.Sprint(c.Longest))),
	)
}
