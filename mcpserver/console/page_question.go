package console

import (
	"fmt"

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
		h.Strong(text(o.Tool)), text(" "+o.Text+"."))
}

func (b liveBody) question(q question) g.Node {
	id := fmt.Sprintf("question-%d", q.ID)
	asked := q.Asked
	return h.Li(h.ID(id), h.Data("v", "waiting"), h.Class("question"),
		h.Article(h.Aria("labelledby", id+"-what"),
			h.H3(h.ID(id+"-what"), h.Span(h.Class("tool"), text(asked.Tool)), g.Text(" asks to be allowed")),
			meta(text("by "+asked.Principal+", "+asked.Scope), g.Text(" · since "), timestamp(q.Since), refusedAt(q)),
			questionInput(q),
			h.P(h.Class("why"), text(asked.Verdict.Reason), withNote("Rule", asked.Verdict.Rule), withNote("from", from(asked.Verdict.Source))),
			wouldDo(asked.Verdict.Parts),
			b.answers(id, q),
			whatAlways(id, asked),
		),
	)
}

// refusedAt says when a question ends by itself, if it does.
func refusedAt(q question) g.Node {
	if q.Until.IsZero() {
		return nil
	}
	return g.Group{g.Text(" · refused at "), timestamp(q.Until), g.Text(" if no one answers")}
}

// questionInput is the whole input of the call that is asked about.
func questionInput(q question) g.Node {
	inputs := g.Map(q.Input, func(f field) g.Node {
		return argument(text(f.Name), rows(f.Lines),
			g.If(f.Cut > 0, h.P(h.Class("note warn"), g.Textf("%d more characters are not shown.", f.Cut))))
	})
	return h.Div(h.Class("input"), h.TabIndex("0"), h.Role("group"), h.Aria("label", "Input of the call"),
		inputs, g.If(q.Asked.Dir != "", argument(g.Text("runs in"), text(q.Asked.Dir), nil)))
}

func argument(name, value, note g.Node) g.Node {
	return h.Div(h.Class("field"), h.Span(h.Class("name"), name), h.Pre(value), note)
}

// wouldDo lists what the call would do, part by part.
func wouldDo(parts []guard.Part) g.Node {
	if len(parts) == 0 {
		return nil
	}
	return h.Details(h.Class("parts"),
		h.Summary(g.Textf("What it would do, and which rule speaks of it (%d)", len(parts))),
		h.Ul(g.Map(parts, func(p guard.Part) g.Node {
			return h.Li(verdict(p.Action.String()), after(" ", p.What), withNote("by", p.Rule))
		})),
	)
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
		return meta(g.Text("This can be allowed once only: no rule may allow it in advance, several agents may share its scope, " +
			"or the caller is somebody else."))
	}
	remembers := "“Always allow” remembers, for this workspace:"
	if asked.ScopeOnly {
		remembers = "“Always allow” remembers:"
	}
	return meta(h.ID(id+"-always"), g.Text(remembers),
		g.Map(asked.Always, func(rule string) g.Node { return after(" ", rule) }))
}
