package console

import (
	"fmt"

	"github.com/toolhost/toolhost/mcpserver"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The calls of the first page.

func (b liveBody) calls() g.Node {
	if len(b.Calls) == 0 {
		return nothing("calls", "No call yet. Let your agent use one of the tools, and it appears here.")
	}
	return g.Map(b.Calls, b.call)
}

// call is empty for one that the page has already.
func (b liveBody) call(c call) g.Node {
	id := g.Group{h.ID(fmt.Sprintf("call-%d", c.ID)), h.Data("v", fmt.Sprint(c.Version))}
	if c.Version <= b.Since {
		return h.Li(id)
	}
	return h.Li(id, h.Class("item call "+c.State), h.Details(
		b.callSummary(c),
		h.Dl(
			term("Verdict", verdictRows(c)),
			files("Reads", c.Record.Reads), files("Writes", c.Record.Writes), files("Effects", c.Record.Effects),
			term("Caller", text(c.Principal+", "+c.Scope)),
		),
		g.If(c.Result != "", scroller("result", "Result", resultLines(c))),
		g.If(c.Cut > 0, meta(g.Textf("%d more bytes are not shown.", c.Cut))),
		b.changesOf(c),
	))
}

func (b liveBody) callSummary(c call) g.Node {
	return h.Summary(
		h.Span(h.Class("state "+c.State), g.Text(c.State)), g.Text(" "),
		h.Span(h.Class("tool"), text(c.Tool)), g.Text(" "),
		h.Span(h.Class("what"), code(recordText(c.Record, b.short))), g.Text(" "),
		h.Span(h.Class("meta"), changed(c), timestamp(c.Began), g.If(c.Record.Millis != 0, g.Text(" · "+duration(c.Record.Millis)))),
	)
}

// changed says how many lines a call has added and removed.
func changed(c call) g.Node {
	t := changes(c)
	if t == (lineCount{}) {
		return nil
	}
	return g.Group{
		h.Span(h.Class("plus"), g.Textf("+%d", t.Added)), g.Text(" "),
		h.Span(h.Class("minus"), g.Textf("−%d", t.Removed)), g.Text(" · "),
	}
}

func term(name string, value g.Node) g.Node { return h.Div(h.Dt(g.Text(name)), h.Dd(value)) }

func verdictRows(c call) g.Node {
	said := g.Text("not judged yet")
	if c.Record.Verdict != "" {
		said = verdict(c.Record.Verdict)
	}
	return g.Group{said, after(" by ", c.Record.Rule), after(" from ", from(c.Record.Source))}
}

func files(name string, paths []string) g.Node {
	if len(paths) == 0 {
		return nil
	}
	return term(name, g.Map(paths, func(p string) g.Node { return h.Code(h.Class("path"), text(p)) }))
}

// changesOf leads to the history of the files that a call has written. A path that cannot be shown as it is cannot
// stand in a form either.
func (b liveBody) changesOf(c call) g.Node {
	if c.State != stateDone {
		return nil
	}
	return g.Map(c.Record.Writes, func(path string) g.Node {
		if path != mcpserver.Sanitize(path) {
			return nil
		}
		return post("/history", b.Token, h.Class("more"), plainForm(), hidden("path", path),
			button("quiet", "Changes of "+b.short(path)+", to undo them"))
	})
}
