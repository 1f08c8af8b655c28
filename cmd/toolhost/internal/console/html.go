package console

import (
	"net/url"
	"strings"
	"time"

	"github.com/toolhost/toolhost/mcpserver"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The pieces that the pages are made of. Text of others enters a page as a text or as the value of an attribute,
// which the library escapes; no page holds raw HTML, and the names of elements and attributes are ours.

// text is text of others, with what cannot be seen made visible.
func text(s string) g.Node { return g.Text(mcpserver.Sanitize(s)) }

// code is a command, a path, a rule.
func code(s string) g.Node { return h.Code(text(s)) }

// after returns a code that follows a lead, and nothing when there is no code.
func after(lead, s string) g.Node {
	if s == "" {
		return nil
	}
	return g.Group{g.Text(lead), code(s)}
}

// withNote is a lead and a code, set apart from the text before, and nothing when there is no code.
func withNote(lead, s string) g.Node {
	if s == "" {
		return nil
	}
	return g.Group{g.Text(" "), h.Span(h.Class("rule"), g.Text(lead+" "), code(s))}
}

// address is a path of the console. Pages lead nowhere else.
func address(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

// timestamp is a time for people and programs.
func timestamp(t time.Time) g.Node {
	return h.Time(h.DateTime(t.UTC().Format(time.RFC3339)), g.Text(clock(t)))
}

// verdict shows an action: allow, ask, deny.
func verdict(action string) g.Node { return h.Span(h.Class("verdict "+action), text(action)) }

// meta is a paragraph of lesser weight.
func meta(children ...g.Node) g.Node { return h.P(h.Class("meta"), g.Group(children)) }

// rows are the lines of a text or a diff.
func rows(lines []line) g.Node {
	return g.Map(lines, func(l line) g.Node {
		return h.Span(h.Class(strings.TrimSpace("row "+l.Kind)), text(l.Text+"\n"))
	})
}

// scroller is a text with bars of its own, which the keyboard reaches.
func scroller(class, label string, lines []line) g.Node {
	return h.Pre(h.Class(class), h.TabIndex("0"), h.Role("group"), h.Aria("label", label), rows(lines))
}

// post is a form with the token of its page. The script sends it in the background, see [plainForm].
func post(action, token string, children ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), hidden("token", token), g.Group(children))
}

// plainForm marks a form that leads to another page.
func plainForm() g.Node { return g.Attr("data-plain") }

func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

func button(class, label string, attributes ...g.Node) g.Node {
	return h.Button(h.Class(class), g.Group(attributes), g.Text(label))
}

// option is a choice that sends its name.
func option(name, chosen string) g.Node {
	return h.Option(g.If(name == chosen, h.Selected()), text(name))
}

// keepInput is a field for text that no program may change on its way.
func keepInput(name, value string) g.Node {
	return g.Group{h.ID(name), h.Name(name), h.Value(value), h.AutoComplete("off"), noSpellcheck()}
}

func noSpellcheck() g.Node { return g.Attr("spellcheck", "false") }
