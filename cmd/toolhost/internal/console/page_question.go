package console

import (
	"fmt"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

// The questions of the first page.

func (b liveBody) questions() g.Node {
	if len(b.Waiting)+len(b.Resolved) == 0 {
		when := "your answer"
		if b.Closed != "" {
			when += " – once commands are contained"
		}
		return nothing("questions", "Nothing waits. When a rule asks and the agent's client cannot, the call waits here for "+when+". Keep this page open.")
	}
	return g.Group{g.Map(b.Resolved, resolvedQuestion), g.Map(b.Waiting, b.question)}
}

func resolvedQuestion(o outcome) g.Node {
	return h.Li(h.ID(fmt.Sprintf("question-%d", o.ID)), h.Data("v", "settled"), h.Class("settled"),
		h.Strong(text(o.Tool)), after(" ", o.Gist), text(" "+o.Text+"."))
}

func (b liveBody) question(q question) g.Node {
	id := fmt.Sprintf("question-%d", q.ID)
	asked := q.Asked
	if asked.Form != nil {
		return b.formOf(id, q)
	}
	return h.Li(h.ID(id), h.Data("v", "waiting"), h.Class("question"),
		h.Article(h.Aria("labelledby", id+"-what"),
			h.H3(h.ID(id+"-what"), h.Span(h.Class("tool"), text(asked.Tool)), g.Text(" asks to be allowed")),
			askedBy(q, " · refused at "),
			h.P(h.Class("why"), text(asked.Verdict.Reason), withNote("Rule", asked.Verdict.Rule), withNote("from", from(asked.Verdict.Source))),
			effects(asked.Question),
			wholeInput(q),
			b.answers(id, q),
			whatAlways(id, asked),
		),
	)
}

// askedBy says whose call waits since when, and when it ends by itself if it does.
func askedBy(q question, ends string) g.Node {
	by := "by " + strings.TrimPrefix(clip(q.Asked.Client, 2*maxClient)+", "+q.Asked.Principal, ", ") + ", " + q.Asked.Scope
	var until g.Node
	if !q.Until.IsZero() {
		until = g.Group{g.Text(ends), timestamp(q.Until), g.Text(" if no one answers")}
	}
	return meta(text(by), g.Text(" · since "), timestamp(q.Since), until)
}

// effects shows everything that the call would do: its command, and each effect with the rule that
// applies to it.
func effects(q *mcpserver.Question) g.Node {
	if len(q.Items) == 0 && q.Text == "" {
		return nil
	}
	command := g.If(q.Text != "", argument(g.Text("command"), rows(plain("", clip(q.Text, maxField))), cutNote(q.Text)))
	return h.Div(h.Class("input"), h.TabIndex("0"), h.Role("group"), h.Aria("label", "What the call would do"),
		command,
		g.If(q.Dir != "", argument(g.Text("runs in"), text(q.Dir), nil)),
		h.Ul(h.Class("parts"), g.Map(q.Items, func(i guard.Item) g.Node {
			if i.Rule == q.Verdict.Rule {
				i.Rule, i.Source = "", "" // said above
			}
			return effect(i)
		})),
		g.Map(q.Notes, func(note string) g.Node { return meta(text(note)) }),
	)
}

func effect(i guard.Item) g.Node {
	changes := append(plainIf("del", i.Removed), plainIf("add", i.Added)...)
	return h.Li(verdict(i.Action.String()), after(" ", clip(i.What, maxField)), withNote("by", i.Rule), withNote("from", from(i.Source)),
		g.If(len(changes) > 0, h.Pre(rows(changes))), cutNote(i.What), cutNote(i.Removed), cutNote(i.Added))
}

func plainIf(kind, text string) []line {
	if text == "" {
		return nil
	}
	return plain(kind, clip(text, maxField))
}

// cutNote says how much of a text is not shown, if something is not.
func cutNote(whole string) g.Node {
	if len(whole) <= maxField {
		return nil
	}
	return h.P(h.Class("note warn"), g.Textf("%d more bytes are not shown.", len(whole)-maxField))
}

// wholeInput is the input of the call that is asked about, as it came.
func wholeInput(q question) g.Node {
	inputs := g.Map(q.Input, func(f field) g.Node {
		return argument(text(f.Name), rows(f.Lines),
			g.If(f.Cut > 0, h.P(h.Class("note warn"), g.Textf("%d more characters are not shown.", f.Cut))))
	})
	return h.Details(h.Class("parts"), g.If(len(q.Asked.Items) == 0, g.Attr("open")), h.Summary(g.Text("The whole input, as it came")), inputs)
}

func argument(name, value, note g.Node) g.Node {
	return h.Div(h.Class("field"), h.Span(h.Class("name"), name), h.Pre(value), note)
}

// answers are the forms that answer a question.
func (b liveBody) answers(id string, q question) g.Node {
	number := hidden("question", fmt.Sprint(q.ID))
	closed := g.If(b.Closed != "", h.Disabled())
	decides := func(decision string) g.Node {
		return g.Group{h.Name("decision"), h.Value(decision), closed}
	}
	always := h.Button(decides(mcpserver.AlwaysAllow), h.Aria("describedby", id+"-always"), g.Text("Always allow"))
	return h.Div(h.Class("answers"),
		post("/answer", b.Token, number,
			button("main", "Allow once", decides(mcpserver.AllowOnce)),
			g.If(len(q.Asked.Always) > 0, always),
		),
		post("/answer", b.Token, h.Class("deny"), number, hidden("decision", mcpserver.DenyIt),
			h.Label(h.For(id+"-reason"), h.Class("unseen"), g.Text("What the agent should know or do instead")),
			h.Input(h.ID(id+"-reason"), h.Name("reason"), h.Placeholder("What to do instead (optional)"), h.AutoComplete("off"), h.MaxLength("2000")),
			button("danger", "Deny", closed),
		),
	)
}

// whatAlways says which rules “Always allow” would remember, or why it is not offered.
func whatAlways(id string, asked mcpserver.OperatorQuestion) g.Node {
	if len(asked.Always) == 0 {
		return meta(g.Text("“Always allow” is not offered: "), text(asked.NoAlways+"."))
	}
	remembers := "“Always allow” remembers, for this workspace:"
	if asked.ScopeOnly {
		remembers = "“Always allow” remembers:"
	}
	return meta(h.ID(id+"-always"), g.Text(remembers),
		g.Map(asked.Always, func(rule string) g.Node { return after(" ", rule) }))
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
		section("questions", g.Text("Waiting for you"), "questions", b.live.warning(), b.live.questions(), h.Data("query", url.Values{"id": {b.ID}}.Encode())),
	}
}
