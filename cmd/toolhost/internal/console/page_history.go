package console

import (
	"cmp"
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
			h.Div(h.Class("line"), h.Input(keepInput("path", b.Path), h.Placeholder("all files of the roots")),
				button("main", "Search")),
		),
		post("/history/undo", f.Token, plainForm(), hidden("path", b.Path),
			h.Ol(h.Class("list"), h.Data("part", "history"),
				h.Data("query", url.Values{"path": {b.Path}}.Encode()), b.list()),
			g.If(len(b.Calls) > 0, h.P(button("danger", "Undo the chosen changes"), undoable())),
		),
		g.If(b.More, meta(g.Text("Older changes are not shown: name a path, or use "), code("toolhost history"),
			g.Text("."))),
		meta(g.Text(outside), code("toolhost history"), g.Text(". "), g.Text(uncovered)),
		meta(g.Text("Kept: "), text(b.Bounds), g.Text(".")),
		g.Map(b.Holdings, holding),
	}
}

// uncovered describes what neither an undo nor a rewind restores.
const uncovered = "Not kept: what changes in directories that git ignores, in .git, and extended attributes, access " +
	"lists and owners."

// holding shows how much of one caller's changes is kept.
func holding(o builtin.Holding) g.Node {
	return meta(text(cmp.Or(o.Principal, "unknown")), g.Textf(": %s, %s of at most %s. The oldest go first.",
		plural(o.Changes, "change"), size(o.Bytes), size(o.Limit)),
		g.If(o.Damaged, h.Span(h.Class("bad"), g.Text(" The index is damaged: toolhost doctor says what is lost."))))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// size formats a number of bytes for display.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return plural(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func undoable() g.Node {
	return g.Group{g.Text(" "), h.Span(h.Class("meta"), g.Text("The undo is a change too, and can be undone."))}
}

func (b historyBody) list() g.Node {
	switch {
	case len(b.Calls) > 0:
		return g.Map(b.Calls, b.call)
	case b.Path != "":
		return nothing("changes", "No change of this path is known. Clear the field to see all changes.")
	}
	return nothing("changes", "No change yet. What tools and commands change appears here, and can be undone.")
}

func (b historyBody) call(c changedCall) g.Node {
	choice, rewind := h.Span(h.Class("no-choice")), g.Node(nil)
	if c.State == stateDone {
		rewind = h.A(h.Class("rewind"), h.Href(address("history", c.ID, "rewind")), g.Text("Rewind"),
			h.Span(h.Class("unseen"), text(" to before "+b.what(c)+" at "+clock(c.Time))))
		if c.UndoneBy == "" {
			choice = h.Input(h.Type("checkbox"), h.Name("id"), h.Value(c.ID),
				h.Aria("label", "Choose the change of "+b.what(c)+" at "+clock(c.Time)))
		}
	}
	state, word := "state", c.Files[0].Word()
	switch {
	case c.UndoneBy != "":
		state, word = "state undone", "undone"
	case len(c.UndoOf) > 0:
		word = "undo"
	case len(c.Files) > 1:
		word = c.Counts()
	}
	if c.Command != "" {
		word += " " + b.names(c.Files)
	}
	return h.Li(h.ID("change-"+c.ID), h.Data("v", fmt.Sprint(c.State, c.UndoneBy, len(c.Files))),
		h.Class("item change"),
		choice,
		h.A(h.Class("what"), h.Href(address("history", c.ID)), code(b.what(c))),
		rewind,
		meta(h.Span(h.Class(state), text(word)), g.Text(" "), changed(c.Lines), changeBy(c.Change),
			g.If(c.State != stateDone, text(" · "+string(c.State))), g.Map(missing(c.ChangedCall), func(note string) g.Node {
				return g.Group{g.Text(" · "), h.Span(h.Class("by"), text(note))}
			})),
	)
}

// what describes a call by its command or its file.
func (b historyBody) what(c changedCall) string {
	if first, _, _ := strings.Cut(c.Command, "\n"); first != "" {
		return first
	}
	if more := len(c.Files) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", b.short(c.Path), more)
	}
	return b.short(c.Path)
}

// names returns the names of the first files.
func (b historyBody) names(files []builtin.Change) string {
	const most = 3
	var all []string
	for _, f := range files[:min(len(files), most)] {
		all = append(all, b.short(f.Path))
	}
	if more := len(files) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all, ", "), more)
	}
	return strings.Join(all, ", ")
}

// missing lists the parts of a call's changes that are not kept, and so cannot be restored.
func missing(c builtin.ChangedCall) []string {
	var all []string
	lost := 0
	for _, f := range c.Files {
		if f.Lost != "" {
			lost++
		}
	}
	if lost > 0 {
		all = append(all, fmt.Sprintf("%s cannot be given back", plural(lost, "file")))
	}
	if n := c.Ignored; n > 0 {
		all = append(all, fmt.Sprintf("%s changed, not kept", plural(n, "ignored file")))
	}
	if c.HeadMoved {
		all = append(all, "git had another commit checked out afterwards")
	}
	return append(all, c.Notes...)
}

// changeBy shows the author and the time of a change.
func changeBy(c builtin.Change) g.Node {
	return g.Group{text(" by " + c.Tool + " at "), timestamp(c.Time), text(" · " + c.Principal + ", " + c.Scope)}
}
