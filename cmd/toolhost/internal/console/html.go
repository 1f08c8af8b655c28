package console

import (
	"net/url"
	"strings"
	"time"

	"github.com/toolhost/toolhost/mcpserver"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The parts that pages consist of. Foreign text becomes a text node or the value of an attribute, which the library
// escapes. No page contains raw HTML, and the names of elements and attributes are always ours.

// text returns foreign text, with invisible characters made visible.
func text(s string) g.Node { return g.Text(mcpserver.Sanitize(s)) }

// code returns a command, a path or a rule as code.
func code(s string) g.Node { return h.Code(text(s)) }

// after returns a lead and a code, or nil if the code is empty.
func after(lead, s string) g.Node {
	if s == "" {
		return nil
	}
	return g.Group{g.Text(lead), code(s)}
}

// withNote returns a lead and a code, set apart from the text before, or nil if the code is empty.
func withNote(lead, s string) g.Node {
	if s == "" {
		return nil
	}
	return g.Group{g.Text(" "), h.Span(h.Class("rule"), g.Text(lead+" "), code(s))}
}

// address returns the path of a page of the console. Pages have no links to other sites.
func address(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

// timestamp returns a time that both people and programs can read.
func timestamp(t time.Time) g.Node {
	return h.Time(h.DateTime(t.UTC().Format(time.RFC3339)), g.Text(clock(t)))
}

// verdict shows an action: allow, ask, deny.
func verdict(action string) g.Node { return h.Span(h.Class("verdict "+action), text(action)) }

// meta returns a paragraph of secondary text.
func meta(children ...g.Node) g.Node { return h.P(h.Class("meta"), g.Group(children)) }

// rows returns the lines of a text or a diff.
func rows(lines []line) g.Node {
	return g.Map(lines, func(l line) g.Node {
		return h.Span(h.Class(strings.TrimSpace("row "+l.Kind)), text(l.Text+"\n"))
	})
}

// scroller returns a text that scrolls on its own, also by keyboard.
func scroller(class, label string, lines []line) g.Node {
	return h.Pre(h.Class(class), h.TabIndex("0"), h.Role("group"), h.Aria("label", label), rows(lines))
}

// post returns a form with the token of the session. The script sends it in the background, unless it is a
// [plainForm].
func post(action, token string, children ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), hidden("token", token), g.Group(children))
}

// plainForm marks a form whose response is another page.
func plainForm() g.Node { return g.Attr("data-plain") }

func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

func button(class, label string, attributes ...g.Node) g.Node {
	return h.Button(h.Class(class), g.Group(attributes), g.Text(label))
}

// option returns an option whose value is its name.
func option(name, chosen string) g.Node {
	return h.Option(g.If(name == chosen, h.Selected()), text(name))
}

// keepInput returns the attributes of a field whose text browsers must not change.
func keepInput(name, value string) g.Node {
	return g.Group{h.ID(name), h.Name(name), h.Value(value), h.AutoComplete("off"), noSpellcheck()}
}

func noSpellcheck() g.Node { return g.Attr("spellcheck", "false") }
