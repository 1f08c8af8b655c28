package console

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (b changeBody) show(f layout) g.Node {
	c := b.Call
	title := c.Command
	if title == "" {
		title = historyBody{short: b.short}.what(c)
	}
	word := c.Counts()
	if len(c.Files) == 1 {
		word = c.Files[0].Word()
	}
	return g.Group{
		h.P(h.Class("crumb"), h.A(h.Href("/history"), g.Text("History")), text(" / "+c.ID)),
		h.H1(code(title)),
		meta(changed(b.Lines), g.Text(word), changeBy(c.Change), b.undoes()),
		g.Map(missing(c.ChangedCall), func(note string) g.Node { return h.P(h.Class("note warn"), text(note)) }),
		b.undo(f.Token),
		g.If(c.State == stateDone, h.P(h.A(h.Href(address("history", c.ID, "rewind")),
			g.Text("Rewind everything to before this call")))),
		g.If(len(c.Files) == 1, h.Div(h.Class("line views"), h.Role("navigation"), h.Aria("label", "Views"),
			view("Diff", address("history", c.ID), !b.Whole),
			view("Whole file", address("history", c.ID, "file"), b.Whole))),
		scroller("result tall", "Content", b.Diff),
	}
}

// undoes lists the changes that this change has undone.
func (b changeBody) undoes() g.Node {
	if len(b.Call.UndoOf) == 0 {
		return nil
	}
	return g.Group{g.Text(" · undoes"), g.Map(b.Call.UndoOf, func(id string) g.Node {
		return g.Group{g.Text(" "), changeLink(id)}
	})}
}

// view is the link to a view of the change.
func view(name, href string, current bool) g.Node {
	return h.A(h.Href(href), g.If(current, h.Aria("current", "page")), g.Text(name))
}

func changeLink(id string) g.Node { return h.A(h.Href(address("history", id)), text(id)) }

// undo returns the form that undoes the change, or says why there is nothing to undo.
func (b changeBody) undo(token string) g.Node {
	c := b.Call
	switch {
	case c.UndoneBy != "":
		return h.P(h.Class("note"), g.Text("This change was undone by "), changeLink(c.UndoneBy),
			g.Text(". Undo that one to have it back."))
	case c.State != stateDone:
		return h.P(h.Class("note"), text("State: "+string(c.State)), g.Text(". There is nothing to undo."))
	}
	form := func(children ...g.Node) g.Node {
		return post(address("history", c.ID, "undo"), token, plainForm(), h.Class("undo"), g.Group(children))
	}
	const lost = "Later changes of the file are lost, unless they are in the history."
	return g.Group{
		form(button("main", "Undo this change"), undoable()),
		g.If(b.Force, form(hidden("force", "1"),
			button("danger", "Undo it all the same"), g.Text(" "), h.Span(h.Class("meta"), g.Text(lost)))),
	}
}
