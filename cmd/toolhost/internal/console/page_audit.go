package console

import (
	"cmp"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

func (b auditBody) show(f layout) g.Node {
	records := g.Map(b.Found.Records, b.record)
	if len(records) == 0 {
		records = g.Group{h.Li(h.Class("empty"), g.Text("No record fits. Every call is recorded, refused ones too: ask for "+
			"less above."))}
	}
	return g.Group{
		h.H1(g.Text("Audit")),
		b.search(f.Token),
		h.Ol(h.Class("list"), records),
		g.If(b.Found.More, meta(g.Text("Older records fit too: narrow the search."))),
		g.If(b.Found.Truncated, meta(g.Text("Only the newest 64 MiB of the log were searched."))),
		meta(g.Text("From "), code(b.Path), g.Text(", which all hosts with this state directory write.")),
	}
}

func (b auditBody) search(token string) g.Node {
	return post("/audit", token, h.Class("search"), plainForm(), h.Role("search"),
		h.Div(h.Class("pair"),
			h.Div(h.Class("wide"), h.Label(h.For("text"), g.Text("Path, command, rule or error")),
				h.Input(keepInput("text", b.Query.Text))),
			queryChoices(b.Query, tools(b.Tools, b.Query.Tool), b.Sessions),
			choice("since", "Since", g.Map(b.Periods, func(p string) g.Node {
				return h.Option(h.Value(p), g.If(p == b.Since, h.Selected()), g.Text(period(p)))
			})),
		),
		button("main", "Search"),
	)
}

// choice returns a field with several options.
func choice(name, label string, options ...g.Node) g.Node {
	return h.Div(h.Label(h.For(name), g.Text(label)), h.Select(h.ID(name), h.Name(name), g.Group(options)))
}

func (b auditBody) record(r audit.Record) g.Node {
	return h.Li(h.Class("item record"),
		h.P(h.Class("line"),
			h.Span(h.Class("verdict "+cmp.Or(r.Verdict, "none")), text(cmp.Or(r.Verdict, "–"))), g.Text(" "),
			h.Span(h.Class("tool"), text(r.Tool)), g.Text(" "),
			what(r, b.short),
		),
		meta(decidedBy(r), timestamp(r.Time), g.Text(" · "+duration(r.Millis)),
			text(" · "+clientName(r)+", "+r.Principal+", "+r.Scope),
			after(" · ", r.Rule), after(" from ", from(r.Source))),
		g.If(r.Error != "", h.P(h.Class("error"), text(r.Error))),
	)
}
