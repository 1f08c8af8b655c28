package console

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

func (b serversBody) show(f layout) g.Node {
	return g.Group{
		h.H1(g.Text("Servers")),
		g.If(f.Closed != "", h.P(h.Class("note warn"), h.Strong(g.Text("Nothing can be accepted on these pages:")),
			text(" "+f.Closed+"."))),
		g.Map(b.Servers, func(s serverView) g.Node { return s.show(f) }),
	}
}

// stateClasses are the classes that mark the states of servers. Other states are not marked.
var stateClasses = map[string]string{"running": " on", "failed": " failed", "parked": " failed", "refused": " refused"}

func (v serverView) show(f layout) g.Node {
	s := v.Status
	id, path := "server-"+s.Name, address("servers", s.Name)
	facts := []string{s.Type, s.Trust, s.File}
	if s.Era != "" {
		facts = append(facts, s.Era, "listed "+clock(s.Since))
	}
	if s.Login != "" {
		facts = append(facts, s.Login)
	}
	return h.Section(h.Class("panel"), h.Aria("labelledby", id),
		h.H2(h.ID(id), h.A(h.Href(path), text(s.Name)), g.Text(" "),
			h.Span(h.Class("state"+stateClasses[s.State]), text(s.State))),
		g.If(s.Purpose != "", h.P(text(s.Purpose))),
		meta(text(strings.Join(facts, " · "))),
		g.If(s.Reason != "", h.Pre(h.Class("note bad"), text(s.Reason))),
		g.Map(s.Problems, func(p string) g.Node { return h.P(h.Class("note warn"), text(p)) }),
		g.If(s.State != "refused", post(path+"/restart", f.Token, plainForm(),
			button("", "Restart", g.If(f.Closed != "", h.Disabled())))),
		g.If(len(v.Changes) > 0, g.Group{
			h.H3(g.Text("Withheld until you accept it")),
			g.Map(v.Changes, showServerChange),
			post(path+"/accept", f.Token, plainForm(), hidden("seen", v.Seen),
				button("main", "Accept all of it", g.If(f.Closed != "", h.Disabled()))),
		}),
		h.Details(h.Summary(g.Textf("%d tools", s.Tools), h.Span(h.Class("unseen"), text(" of "+s.Name))),
			h.Ul(h.Class("parts"), g.Map(v.Offered, func(d *builtin.Def) g.Node {
				doc, _, _ := strings.Cut(d.Doc, "\n")
				return h.Li(code(d.Name), g.If(d.Unlisted, g.Group{g.Text(" "), verdict("withheld")}), text(" "+doc))
			}))),
	)
}

// showServerChange shows the accepted definition and the present one.
func showServerChange(c mcpserver.ServerChange) g.Node {
	what, lines := "new since ", plain("add", c.Is)
	if c.Was != "" {
		what, lines = "changed since ", append(plain("del", c.Was), lines...)
	}
	return h.Div(h.Class("field"),
		h.P(code(c.Name), g.Text(" "+what), timestamp(c.Since),
			g.If(len(c.Copies) > 0, text(", looks like "+strings.Join(c.Copies, ", ")))),
		scroller("result", "The definition of "+c.Name, lines),
	)
}
