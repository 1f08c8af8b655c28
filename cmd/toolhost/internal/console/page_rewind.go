package console

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/builtin"
)

func (b rewindBody) show(f layout) g.Node {
	name := historyBody{short: b.short}.what(b.Call)
	crumb := h.P(h.Class("crumb"), h.A(h.Href("/history"), g.Text("History")), g.Text(" / "),
		h.A(h.Href(address("history", b.Call.ID)), text(b.Call.ID)), g.Text(" / rewind"))
	if b.Done {
		return g.Group{crumb,
			h.H1(g.Text("Rewound to before "), code(name)),
			b.undo(f.Token),
			b.files("Restored", b.Restored),
			b.files("Left as they are", b.Left),
		}
	}
	return g.Group{crumb,
		h.H1(g.Text("Rewind to before "), code(name)),
		meta(g.Text("The roots become what they were before this call"), changeBy(b.Call.Change),
			g.Text(". All later changes by tools and commands are taken back. "), g.Text(uncovered)),
		b.warnings(),
		b.form(f.Token),
		b.files("Left as they are", b.Left),
		b.files("Would be restored", b.Restored),
		g.If(len(b.Diff) > 0, g.Group{h.H2(g.Text("The diff")), scroller("result tall", "The diff of the rewind", b.Diff)}),
		g.If(len(b.LeftDiff) > 0, g.Group{h.H2(g.Text("What force would change as well")),
			scroller("result tall", "The diff of the conflicts", b.LeftDiff)}),
		g.If(b.Cut, meta(g.Text("The rest of the diff is not shown: use "),
			code("toolhost rewind "+b.Call.ID+" --dry-run"), g.Text("."))),
	}
}

// warnings says which commands run, and what a rewind does not change.
func (b rewindBody) warnings() g.Node {
	return g.Group{
		g.If(b.Refused != "", h.Div(h.Class("note warn"), h.P(text(b.Refused)),
			h.Ul(g.Map(b.Running, func(c builtin.RunningCommand) g.Node {
				return h.Li(code(c.Command), text(fmt.Sprintf(" in process %d since ", c.PID)), timestamp(c.Begun))
			})))),
		g.If(len(b.HeadMoved) > 0, h.P(h.Class("note warn"), g.Text("Git has another commit checked out since "),
			g.Map(b.HeadMoved, func(id string) g.Node { return g.Group{changeLink(id), g.Text(" ")} }),
			g.Text("and keeps it: its work tree will show the reversed changes."))),
	}
}

// form returns the form that does the rewind which the page shows.
func (b rewindBody) form(token string) g.Node {
	if len(b.Restored) == 0 && !b.Forced {
		return h.P(h.Class("note"), g.Text("There is nothing to rewind."))
	}
	form := func(children ...g.Node) g.Node {
		return post(address("history", b.Call.ID, "rewind"), token, plainForm(), h.Class("undo"),
			hidden("plan", b.Plan), g.Group(children))
	}
	return g.Group{
		g.If(b.Refused == "" && len(b.Restored) > 0, form(button("main", "Rewind "+plural(len(b.Restored), "file")),
			undoable())),
		g.If(b.Forced, form(hidden("force", "1"), button("danger", "Rewind all the same"), g.Text(" "),
			h.Span(h.Class("meta"), g.Text("Later changes of the files in conflict are lost, and what runs may change files "+
				"meanwhile.")))),
	}
}

// undo returns the form that undoes a rewind.
func (b rewindBody) undo(token string) g.Node {
	return g.Group{
		g.If(b.Refused != "", h.P(h.Class("note bad"), text(b.Refused))),
		g.If(len(b.IDs) > 0, post("/history/undo", token, plainForm(), h.Class("undo"),
			g.Map(b.IDs, func(id string) g.Node { return hidden("id", id) }),
			button("main", "Undo this rewind"), undoable())),
	}
}

func (b rewindBody) files(title string, files []builtin.Undone) g.Node {
	if len(files) == 0 {
		return nil
	}
	return g.Group{h.H2(g.Textf("%s: %d", title, len(files))), h.Ul(h.Class("list"),
		g.Map(files[:min(len(files), maxChanges)], func(u builtin.Undone) g.Node {
			why := g.Node(nil)
			switch {
			case u.Err != nil:
				why = h.Span(h.Class("error"), text(" "+u.Err.Error()))
			case u.Already:
				why = h.Span(h.Class("meta"), g.Text(" is so already"))
			case u.Removed:
				why = h.Span(h.Class("meta"), g.Text(" removed"))
			}
			if u.Gone != "" && u.Err == nil {
				why = g.Group{why, h.Span(h.Class("error"), text(" no undo brings it back: "+u.Gone))}
			}
			if u.SetID && u.Err == nil {
				why = g.Group{why, h.Span(h.Class("meta"), g.Text(" without its set-user-ID or set-group-ID bit"))}
			}
			return h.Li(h.Class("item"), code(b.short(u.Path)), why)
		}), g.If(len(files) > maxChanges, h.Li(h.Class("item meta"), g.Textf("… and %d more", len(files)-maxChanges))))}
}
