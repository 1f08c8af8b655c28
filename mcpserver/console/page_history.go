package console

import (
	"fmt"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/builtin"
)

func (b historyBody) show(f layout) g.Node {
	const outside = "Changes outside of this host's roots: "
	return g.Group{
		h.H1(g.Text("History")),
		post("/history", f.Token, h.Class("search"), plainForm(), h.Role("search"),
			h.Label(h.For("path"), g.Text("File or directory")),
			h.Div(h.Class("line"), h.Input(keepInput("path", b.Path), h.Placeholder("all files of the roots")), button("main", "Search")),
		),
		post("/history/undo", f.Token, plainForm(), hidden("path", b.Path),
			h.Ol(h.Class("list"), h.Data("part", "history"), h.Data("query", url.Values{"path": {b.Path}}.Encode()), b.list()),
			g.If(len(b.Changes) > 0, h.P(button("danger", "Undo the chosen changes"), undoable())),
		),
		g.If(b.More, meta(g.Text("Older changes are not shown: name a path, or use "), code("toolhost history"), g.Text("."))),
		meta(g.Text(outside), code("toolhost history"), g.Text(".")),
	}
}

func undoable() g.Node {
	return g.Group{g.Text(" "), h.Span(h.Class("meta"), g.Text("The undo is a change too, and can be undone."))}
}

func (b historyBody) list() g.Node {
	switch {
	case len(b.Changes) > 0:
		return g.Map(b.Changes, b.change)
	case b.Path != "":
		return nothing("changes", "No change of this path is known. Clear the field to see all changes.")
	}
	return nothing("changes", "No change yet. What tools and commands change appears here, and can be undone.")
}

func (b historyBody) change(c builtin.Change) g.Node {
	choice := h.Span(h.Class("no-choice"))
	if c.State == stateDone && c.UndoneBy == "" {
		choice = h.Input(h.Type("checkbox"), h.Name("id"), h.Value(c.ID),
			h.Aria("label", "Choose the change of "+b.short(c.Path)+" at "+clock(c.Time)))
	}
	state, word := "state", changeWord(c)
	switch {
	case c.UndoneBy != "":
		state, word = "state undone", "undone"
	case len(c.UndoOf) > 0:
		word = "undo"
	}
	return h.Li(h.ID("change-"+c.ID), h.Data("v", string(c.State)+" "+c.UndoneBy), h.Class("item change"),
		choice,
		h.A(h.Class("what"), h.Href(address("history", c.ID)), code(b.what(c))),
		meta(h.Span(h.Class(state), g.Text(word)), changeBy(c), g.If(c.State != stateDone, text(" · "+string(c.State)))),
	)
}

// what names a change: the command that made it, or its file.
func (b historyBody) what(c builtin.Change) string {
	first, _, _ := strings.Cut(c.Command, "\n")
	switch n := b.Paths[c.ID]; {
	case n > 1:
		return fmt.Sprintf("%s and %d more%s", b.short(c.Path), n-1, prefixed(": ", first))
	default:
		return b.short(c.Path) + prefixed(": ", first)
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// changeWord says what happened to the file.
func changeWord(c builtin.Change) string {
	switch {
	case c.Created:
		return "created"
	case c.Deleted:
		return "removed"
	}
	return "changed"
}

// changeBy says who made a change, and when.
func changeBy(c builtin.Change) g.Node {
	return g.Group{text(" by " + c.Tool + " at "), timestamp(c.Time), text(" · " + c.Principal + ", " + c.Scope)}
}
