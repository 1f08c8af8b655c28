package console

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

// The questions on the start page.

func (b liveBody) questions() g.Node {
	if len(b.Waiting)+len(b.Resolved) == 0 {
		when := "your answer"
		if b.Closed != "" {
			when += " – once commands are contained"
		}
		return nothing("questions", "Nothing waits. When a rule asks and the agent's client cannot, the call waits "+
			"here for "+when+". Keep this page open.")
	}
	waiting := g.Group{}
	for i, q := range b.Waiting {
		waiting = append(waiting, b.question(q, i > 0 && len(b.Waiting) > manyQuestions))
	}
	return g.Group{g.Map(b.Resolved, resolvedQuestion), waiting}
}

func resolvedQuestion(o outcome) g.Node {
	return h.Li(h.ID(fmt.Sprintf("question-%d", o.ID)), h.Data("v", "settled"), h.Class("settled"),
		h.Strong(text(o.Tool)), after(" ", o.Gist), text(" "+o.Text+"."))
}

// manyQuestions is up to how many questions are shown in full. If there are more, all but the first are folded to one
// line each.
const manyQuestions = 3

// question shows a question. If it is folded, only its summary is visible until a person opens it.
func (b liveBody) question(q question, folded bool) g.Node {
	id := fmt.Sprintf("question-%d", q.ID)
	asked := q.Asked
	if asked.Form != nil {
		return b.formOf(id, q)
	}
	whole := b.wholeQuestion(id, q)
	if folded {
		return h.Li(h.ID(id), h.Data("v", "folded"), h.Class("question folded"),
			h.Details(h.Summary(h.Span(h.Class("tool"), text(asked.Tool)),
				after(" ", strings.TrimPrefix(asked.Gist, asked.Tool+": ")), unusual(asked.Unusual)), whole))
	}
	return h.Li(h.ID(id), h.Data("v", "waiting"), h.Class("question"), whole)
}

func (b liveBody) wholeQuestion(id string, q question) g.Node {
	asked := q.Asked
	return h.Article(h.Aria("labelledby", id+"-what"),
		h.H3(h.ID(id+"-what"), h.Span(h.Class("tool"), text(asked.Tool)), g.Text(" wants to run")),
		askedBy(q, " · refused at "),
		unusual(asked.Unusual),
		effects(asked.Question),
		h.P(h.Class("why"), text(asked.Verdict.Reason), withNote("Rule:", asked.Verdict.Rule),
			withNote("from", from(asked.Verdict.Source))),
		wholeInput(q),
		b.answers(id, q),
		whatAlways(id, asked),
	)
}

// askedBy says who has made the call, when the question was asked, and when it ends by itself, if it does.
func askedBy(q question, ends string) g.Node {
	by := "by " + strings.TrimPrefix(clip(q.Asked.Client, 2*maxClient)+", "+q.Asked.Principal, ", ") + ", " +
		q.Asked.Scope
	var until g.Node
	if !q.Until.IsZero() {
		until = g.Group{g.Text(ends), timestamp(q.Until), g.Text(" if no one answers")}
	}
	return meta(text(by), g.Text(" · since "), timestamp(q.Since), until)
}

// unusual returns a box with what a person should know first.
func unusual(texts []string) g.Node {
	if len(texts) == 0 {
		return nil
	}
	return h.Ul(h.Class("note bad unusual"), g.Map(texts, func(s string) g.Node { return h.Li(text(clip(s, maxField))) }))
}

// effects shows everything that the call would do: its command, and each effect with the rule that applies to it.
// Effects that are already allowed are folded.
func effects(q *mcpserver.Question) g.Node {
	if len(q.Items) == 0 && q.Text == "" {
		return nil
	}
	command := g.If(q.Text != "", argument(g.Text("command"), rows(plain("", clip(q.Text, maxField))), cutNote(q.Text)))
	var asked, allowed []g.Node
	for _, i := range q.Items {
		if i.Rule == q.Verdict.Rule {
			i.Rule, i.Source = "", "" // shown below
		}
		switch {
		case i.Action == guard.Allow:
			allowed = append(allowed, effect(i))
		case len(q.Items) > 1 || i.What != "run "+q.Text || i.Rule != "": // otherwise the command above says it
			asked = append(asked, effect(i))
		}
	}
	return h.Div(h.Class("input"), h.TabIndex("0"), h.Role("group"), h.Aria("label", "What the call would do"),
		command,
		g.If(q.Says != "", h.P(h.Class("says"), g.Text("The agent says: "), text(q.Says))),
		g.If(q.Dir != "", argument(g.Text("runs in"), text(q.Dir), nil)),
		g.If(len(asked) > 0, h.Ul(h.Class("parts"), g.Group(asked))),
		g.Map(q.Scripts, func(s guard.Script) g.Node { return script(s, q.Dir) }),
		g.Iff(len(allowed) > 0, func() g.Node {
			return h.Details(h.Class("parts"), h.Summary(g.Textf("%d more that rules allow", len(allowed))),
				h.Ul(g.Group(allowed)))
		}),
		g.Map(q.Notes, func(note string) g.Node { return meta(text(note)) }),
	)
}

func effect(i guard.Item) g.Node {
	changes, whole := append(plainIf("del", i.Removed), plainIf("add", i.Added)...), i.Removed+i.Added
	if i.Diff != "" {
		changes, whole = numbered(clip(i.Diff, maxField)), i.Diff
	}
	return h.Li(verdict(i.Action.String()), after(" ", clip(i.What, maxField)), withNote("rule:", i.Rule),
		withNote("from", from(i.Source)),
		g.If(len(changes) > 0, h.Pre(h.Class("diff"), rows(changes))), cutNote(i.What), cutNote(whole))
}

// script shows the script file that the command in question runs. Its name is relative to the directory of the
// command. A long script is folded.
func script(s guard.Script, dir string) g.Node {
	head := g.Group{code(strings.TrimPrefix(s.File, dir+"/")), g.If(s.Digest != "",
		h.Span(h.Class("meta"), g.Textf(" SHA-256 %s", clip(s.Digest, shownDigest)))),
		g.If(s.Note != "", h.Span(h.Class("by"), text(" "+s.Note)))}
	if s.Text == "" {
		return h.P(h.Class("parts"), g.Text("Runs "), head)
	}
	return h.Details(h.Class("parts"), g.If(strings.Count(s.Text, "\n") <= openScript, g.Attr("open")),
		h.Summary(g.Text("Runs "), head),
		h.Pre(h.Class("diff"), rows(plain("", s.Text))),
		g.If(s.Cut > 0, h.P(h.Class("note warn"), g.Textf("%d more bytes are not shown.", s.Cut))))
}

// openScript is up to how many lines a script is shown unfolded, and shownDigest how many digits of its digest are
// shown.
const openScript, shownDigest = 40, 12

func plainIf(kind, text string) []line {
	if text == "" {
		return nil
	}
	return plain(kind, clip(text, maxField))
}

// cutNote says how much of a text is not shown. It returns nil if all is.
func cutNote(whole string) g.Node {
	if len(whole) <= maxField {
		return nil
	}
	return h.P(h.Class("note warn"), g.Textf("%d more bytes are not shown.", len(whole)-maxField))
}

// wholeInput shows the input of the call as it was received.
func wholeInput(q question) g.Node {
	inputs := g.Map(q.Input, func(f field) g.Node {
		return argument(text(f.Name), rows(f.Lines),
			g.If(f.Cut > 0, h.P(h.Class("note warn"), g.Textf("%d more characters are not shown.", f.Cut))))
	})
	return h.Details(h.Class("parts"), g.If(len(q.Asked.Items) == 0, g.Attr("open")),
		h.Summary(g.Text("The whole input, as it came")), inputs)
}

func argument(name, value, note g.Node) g.Node {
	return h.Div(h.Class("field"), h.Span(h.Class("name"), name), h.Pre(value), note)
}

// answerAt returns the address that takes answers.
func (b liveBody) answerAt() string { return cmp.Or(b.answersTo, "/answer") }

// answers returns the forms for answering a question.
func (b liveBody) answers(id string, q question) g.Node {
	number := hidden("question", fmt.Sprint(q.ID))
	closed := g.If(b.Closed != "", h.Disabled())
	decides := func(decision string) g.Node {
		return g.Group{h.Name("decision"), h.Value(decision), closed}
	}
	always := h.Button(decides(mcpserver.AlwaysAllow), h.Aria("describedby", id+"-always"), g.Text("Always allow"))
	return h.Div(h.Class("answers"),
		post(b.answerAt(), b.Token, number,
			button("main", "Allow once", decides(mcpserver.AllowOnce)),
			g.If(len(q.Asked.Always) > 0, always),
			g.If(q.Asked.AllPrograms != "", h.Button(decides(mcpserver.AllowHost), g.Text("Allow for all programs"))),
		),
		post(b.answerAt(), b.Token, h.Class("deny"), number, hidden("decision", mcpserver.DenyIt),
			h.Label(h.For(id+"-reason"), h.Class("unseen"), g.Text("What the agent should know or do instead")),
			h.Input(h.ID(id+"-reason"), h.Name("reason"), h.Placeholder("What to do instead (optional)"),
				h.AutoComplete("off"), h.MaxLength("2000")),
			button("danger", "Deny", closed),
		),
	)
}

// whatAlways says which rules “Always allow” would add, or why it is not offered.
func whatAlways(id string, asked mcpserver.OperatorQuestion) g.Node {
	if len(asked.Always) == 0 {
		return meta(g.Text("“Always allow” is not offered: "), text(asked.NoAlways+"."))
	}
	remembers := "“Always allow” remembers, for this workspace:"
	if asked.Fixed {
		remembers = "“Always allow” remembers:"
	}
	return meta(h.ID(id+"-always"), g.Text(remembers),
		g.Map(asked.Always, func(rule string) g.Node { return after(" ", rule) }),
		g.If(asked.AllPrograms != "", after(" “Allow for all programs” remembers: ", asked.AllPrograms)))
}

// An approvalBody is the page of one question.
type approvalBody struct {
	live liveBody
	ID   string
}

func (b approvalBody) show(layout) g.Node {
	return g.Group{
		h.P(h.Class("crumb"), h.A(h.Href("/"), g.Text("Live")), g.Text(" / question")),
		h.H1(h.Class("unseen"), g.Text("Question")),
		section("questions", g.Text("Waiting for you"), "questions", b.live.warning(), b.live.questions(),
			h.Data("query", url.Values{"id": {b.ID}}.Encode())),
	}
}
