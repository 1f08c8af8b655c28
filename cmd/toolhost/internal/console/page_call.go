package console

import (
	"fmt"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// The calls of the first page, and the page of one.

func (b liveBody) calls() g.Node {
	switch {
	case len(b.Calls) > 0:
		return g.Map(b.Calls, b.call)
	case b.Query != query{}:
		return nothing("calls", "No call fits. Clear the filter to see all, or search the audit log for older ones.")
	}
	return nothing("calls", "No call yet. Let your agent use one of the tools, and it appears here.")
}

// call returns the element of a call. It is empty if the page already has the current version.
func (b liveBody) call(c call) g.Node {
	id := g.Group{h.ID(fmt.Sprintf("call-%d", c.ID)), h.Data("v", fmt.Sprint(c.Version))}
	if c.Version <= b.Since {
		return h.Li(id)
	}
	cut := len(c.Result) - len(clip(c.Result, maxPreview)) + c.Cut
	return h.Li(id, h.Class("item call "+c.State), h.Details(
		b.callSummary(c),
		b.callFacts(c),
		g.If(c.Result != "", scroller("result", "Result", resultLines(c, maxPreview))),
		h.P(h.Class("more meta"), h.A(h.Href(address("calls", fmt.Sprint(c.ID))), g.Text("Open the call")),
			g.If(cut > 0, g.Textf(" to see %d more bytes", cut))),
		b.changesOf(c),
	))
}

func (b liveBody) callSummary(c call) g.Node {
	return h.Summary(
		h.Span(h.Class("state "+c.State), g.Text(c.State)), g.Text(" "),
		h.Span(h.Class("tool"), text(c.Record.Tool)), g.Text(" "),
		b.what(c.Record), g.Text(" "),
		h.Span(h.Class("meta"), decidedBy(c.Record), changed(c.Lines), timestamp(c.Record.Time),
			g.If(c.Record.Millis != 0, g.Text(" · "+duration(c.Record.Millis)))),
	)
}

// what returns a line that describes a call.
func (b liveBody) what(r audit.Record) g.Node { return what(r, b.short) }

func what(r audit.Record, short func(string) string) g.Node {
	return h.Span(h.Class("what"), code(recordText(r, short)),
		g.If(summary(r) != "", h.Span(h.Class("meta"), text(" "+summary(r)))))
}

// decidedBy returns the person or rule that approved or refused a call.
func decidedBy(r audit.Record) g.Node {
	what, said := personOf(r)
	if said == "" {
		return nil
	}
	return g.Group{h.Span(h.Class("by "+what), text(said)), g.Text(" · ")}
}

// changed returns how many lines were added and removed.
func changed(t lineCount) g.Node {
	if t == (lineCount{}) {
		return nil
	}
	return g.Group{
		h.Span(h.Class("plus"), g.Textf("+%d", t.Added)), g.Text(" "),
		h.Span(h.Class("minus"), g.Textf("−%d", t.Removed)), g.Text(" · "),
	}
}

func (b liveBody) callFacts(c call) g.Node {
	r := c.Record
	return h.Dl(
		term("Verdict", verdictRows(r)),
		g.If(r.Command != "", term("Command", h.Pre(text(r.Command)))),
		files("Reads", r.Reads), files("Writes", r.Writes), files("Effects", r.Effects),
		g.If(len(r.Phases) > 0, term("Approval", g.Map(r.Phases, phase))),
		term("Session", g.Group{h.A(h.Href(address("sessions", sessionKey(r))), text(clientName(r))),
			h.Span(h.Class("meta"), text(" "+r.Principal+", "+r.Scope))}),
	)
}

func phase(p audit.Phase) g.Node {
	said := p.What
	if p.By != "" {
		said += " by " + p.By
	}
	if p.Note != "" {
		said += ": " + p.Note
	}
	return h.Div(timestamp(p.Time), text(" "+said))
}

func term(name string, value g.Node) g.Node { return h.Div(h.Dt(g.Text(name)), h.Dd(value)) }

func verdictRows(r audit.Record) g.Node {
	said := g.Text("not judged yet")
	if r.Verdict != "" {
		said = verdict(r.Verdict)
	}
	return g.Group{said, after(" by ", r.Rule), after(" from ", from(r.Source))}
}

func files(name string, paths []string) g.Node {
	if len(paths) == 0 {
		return nil
	}
	return term(name, g.Map(paths, func(p string) g.Node { return h.Code(h.Class("path"), text(p)) }))
}

// changesOf returns a link to the history of the files that a call has written. There is none for a path that cannot
// be shown unchanged, because a form could not contain it either.
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

// A callBody is the page of one call.
type callBody struct {
	live   liveBody
	Call   call
	Change *changeBody // what it changed; nil if nothing of that is kept
}

// question is the question about the call while it waits.
func (b callBody) question() g.Node {
	if len(b.live.Waiting) == 0 {
		return nil
	}
	return section("questions", g.Text("Waiting for you"), "questions", b.live.warning(), b.live.questions(),
		h.Data("query", url.Values{"id": {b.Call.Record.Question}}.Encode()))
}

// changes shows what the call changed, with a form to undo it.
func (b callBody) changes(f layout) g.Node {
	if b.Change == nil {
		return b.live.changesOf(b.Call)
	}
	return g.Group{
		h.H2(g.Text("What it changed")),
		meta(changed(b.Change.Lines), text(b.Change.Call.Counts()+" · "),
			h.A(h.Href(address("history", b.Change.Call.ID)), g.Text("in the history"))),
		g.Map(missing(b.Change.Call.ChangedCall), func(note string) g.Node { return h.P(h.Class("note warn"), text(note)) }),
		b.Change.undo(f.Token),
		// The results of other tools show the diff themselves.
		g.If(b.Call.Record.Command != "", scroller("result tall", "What it changed", b.Change.Diff)),
	}
}

func (b callBody) show(f layout) g.Node {
	c := b.Call
	return g.Group{
		h.P(h.Class("crumb"), h.A(h.Href("/"), g.Text("Live")), g.Text(" / call")),
		h.H1(text(c.Record.Tool+" "), code(recordText(c.Record, b.live.short))),
		meta(h.Span(h.Class("state "+c.State), g.Text(c.State)), g.Text(" "), decidedBy(c.Record), changed(c.Lines),
			timestamp(c.Record.Time), g.Text(" · "+duration(c.Record.Millis))),
		b.question(),
		h.Div(h.Class("panel facts"), b.live.callFacts(c)),
		g.If(c.State == stateAsked && len(b.live.Waiting) == 0,
			meta(g.Text("A person was asked, and no answer waits here: the client asks, or the question has ended."))),
		g.If(c.Result != "", g.Group{h.H2(g.Text("Result")), scroller("result tall", "Result", resultLines(c, MaxResult))}),
		g.If(c.Cut > 0, meta(g.Textf("%d more bytes are not kept.", c.Cut))),
		b.changes(f),
	}
}
