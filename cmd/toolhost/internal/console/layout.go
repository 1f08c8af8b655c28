package console

import (
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A content is the body of a page.
type content interface{ show(f layout) g.Node }

// A layout is the frame around the body of every page.
type layout struct {
	Page, Title string
	Token       string
	Waiting     int
	Kind        string
	Roots       []string
	Mode        string // the mode in the settings
	Sandbox     string // what contains commands
	Servers     bool   // other servers are configured
	Closed      string // why nothing can be approved here; "" if it can
	Said        string // the result of a form
	Failed      bool   // the form had no effect
	Body        content
}

// document returns a page of the console without the frame.
func document(title string, body ...g.Node) g.Node {
	return scripted(title, h.Script(h.Src("/console.js"), h.Defer()), body...)
}

// scripted returns a document with the given script, which may be nil.
func scripted(title string, script g.Node, body ...g.Node) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Meta(h.Name("robots"), h.Content("noindex")),
			h.TitleEl(g.Text(title+" · toolhost")),
			h.Link(h.Rel("stylesheet"), h.Href("/console.css")),
			h.Link(h.Rel("icon"), h.Href("/favicon.svg"), h.Type("image/svg+xml")),
			script,
		),
		h.Body(body...),
	))
}

// document returns the whole page.
func (f layout) document() g.Node {
	said := "say"
	if f.Failed {
		said += " bad"
	}
	return document(f.Title,
		h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to the content")),
		h.Header(h.Class("top"), f.bar(), f.where()),
		h.P(h.ID("say"), h.Class(said), h.Role("status"), h.Aria("live", "polite"), text(f.Said)),
		h.P(h.ID("call"), h.Class("unseen"), h.Role("alert")),
		h.Main(h.ID("main"), h.TabIndex("-1"), f.Body.show(f)),
	)
}

func (f layout) bar() g.Node {
	return h.Div(h.Class("bar"),
		h.P(h.Class("brand"), h.A(h.Href("/"), g.Text("toolhost"))),
		h.Nav(h.Aria("label", "Pages"), h.Ul(
			f.tab("/", g.Group{g.Text("Live"), f.count()}, "live", "task", "call", "question"),
			f.tab("/history", g.Text("History"), "history", "change", "rewind"),
			g.If(f.Servers, f.tab("/servers", g.Text("Servers"), "servers")),
			f.tab("/rules", g.Text("Rules"), "rules"),
			f.tab("/agents", g.Text("Agents"), "agents"),
			f.tab("/audit", g.Text("Audit"), "audit"),
			f.tab("/settings", g.Text("Settings"), "settings"),
		)),
		h.Button(h.Class("quiet"), h.ID("notify"), h.Type("button"), g.Attr("hidden"), g.Text("Notify me")),
		h.P(h.Class("link"), h.ID("link"), h.Data("state", "static"),
			h.Span(h.Class("dot"), h.Aria("hidden", "true")), h.Span(h.ID("link-text"), g.Text("as loaded")),
		),
	)
}

// tab returns the link to a page. It is marked on that page and on the given pages below it.
func (f layout) tab(href string, name g.Node, pages ...string) g.Node {
	return h.Li(h.A(h.Href(href), g.If(slices.Contains(pages, f.Page), h.Aria("current", "page")), name))
}

// count returns the element that shows how many questions wait.
func (f layout) count() g.Node {
	return h.Span(h.Class("count"), h.ID("count"), g.If(f.Waiting == 0, g.Attr("hidden")),
		h.Span(h.Class("unseen"), g.Text(", ")),
		h.Span(h.ID("count-n"), g.Text(strconv.Itoa(f.Waiting))),
		h.Span(h.Class("unseen"), g.Text(" waiting")),
	)
}

// where returns a description of this host.
func (f layout) where() g.Node {
	roots := g.Map(f.Roots, func(root string) g.Node { return after(" ", root) })
	return h.Div(h.Class("where"),
		h.P(h.Span(h.Class("kind"), text(f.Kind)), roots, after(" mode ", f.Mode), after(" sandbox ", f.Sandbox)),
		post("/leave", f.Token, plainForm(), button("quiet", "Leave")),
	)
}

// A notFound is the page for a missing or deleted object. The text above it names the object.
type notFound struct{}

func (notFound) show(layout) g.Node {
	return g.Group{
		h.H1(g.Text("Not here")),
		h.P(h.A(h.Href("/"), g.Text("Back to the start page")),
			g.Text(", or to the "), h.A(h.Href("/history"), g.Text("history")), g.Text("."),
		),
	}
}
