package console

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// loginPage returns the page for a visitor without a session, with the result of an attempt to log in.
func loginPage(said string) g.Node {
	return document("Enter", h.Main(h.Class("enter"),
		h.P(h.Class("brand"), g.Text("toolhost")),
		h.H1(g.Text("Console")),
		g.If(said != "", h.P(h.Class("say bad"), h.Role("status"), text(said))),
		h.P(g.Text("This page is opened by a link that works once. Run")),
		h.Pre(h.Class("shell"), code("toolhost console")),
		h.P(g.Text("on the machine where the host runs and open the link that it prints, or paste the code at its end:")),
		h.Form(h.Method("post"), h.Action("/enter"), h.ID("enter"), plainForm(),
			h.Label(h.For("code"), g.Text("Code")),
			h.Div(h.Class("line"),
				h.Input(keepInput("code", ""), g.Attr("autocapitalize", "off"), h.Required()),
				button("main", "Enter"),
			),
		),
	))
}
