package console

import (
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

func (b rulesBody) show(f layout) g.Node {
	return g.Group{
		h.H1(g.Text("Rules")),
		g.Map(b.Broken, func(why string) g.Node {
			return h.P(h.Class("note bad"), h.Strong(g.Text("Every call is refused:")), text(" "+why))
		}),
		g.If(f.Closed != "", h.P(h.Class("note warn"), h.Strong(g.Text("Nothing can be approved on these pages:")),
			text(" "+f.Closed+"."))),
		h.Section(h.Aria("labelledby", "h-explain"), h.Class("panel"),
			h.H2(h.ID("h-explain"), g.Text("What would the rules say?")),
			b.ask(f.Token),
			g.If(b.Asked.Wrong != "", h.P(h.Class("note bad"), h.Role("status"), text(b.Asked.Wrong))),
			explained(b.Asked.Verdict),
		),
		b.inForce(f),
	}
}

// ask returns the form for asking about a call.
func (b rulesBody) ask(token string) g.Node {
	return post("/rules", token, plainForm(),
		h.Div(h.Class("pair"),
			h.Div(h.Label(h.For("tool"), g.Text("Tool")),
				h.Select(h.ID("tool"), h.Name("tool"), tools(b.Tools, b.Asked.Tool))),
			h.Div(h.Class("wide"), h.Label(h.For("input"), g.Text("Input")),
				h.Textarea(h.ID("input"), h.Name("input"), h.Rows("3"), noSpellcheck(),
					h.Placeholder("git push origin main – or the whole input as JSON"), h.Required(),
					g.Text(b.Asked.Input)),
			),
		),
		button("main", "Explain"), g.Text(" "), h.Span(h.Class("meta"), g.Text("Nothing is run.")),
	)
}

func tools(all []*builtin.Def, chosen string) g.Node {
	return g.Map(all, func(d *builtin.Def) g.Node { return option(d.Name, chosen) })
}

// explained shows what the rules decide on the call that was asked about. It returns nil if there is none.
func explained(v *guard.Verdict) g.Node {
	if v == nil {
		return nil
	}
	parts := g.Map(v.Parts, func(p guard.Part) g.Node {
		return h.Li(verdict(p.Action.String()), after(" ", p.What), withNote("by", p.Rule),
			withNote("from", from(p.Source)))
	})
	return h.Div(h.Class("explained"), h.Role("status"),
		h.P(verdict(v.Action.String()), after(" by ", v.Rule), after(" from ", from(v.Source))),
		g.If(v.Reason != "", h.P(text(v.Reason))), g.If(v.Remedy != "", meta(text(v.Remedy))),
		g.If(v.Person != "", meta(text("To allow it: "+v.Person))),
		g.If(len(parts) > 0, h.Ul(h.Class("parts"), parts)),
	)
}

// inForce lists the rules.
func (b rulesBody) inForce(f layout) g.Node {
	const order = ". A deny goes before an ask, an ask before an allow. What stands outside the roots, protected paths " +
		"and keys in the home directory are guarded without any rule."
	return g.Group{
		h.H2(g.Text("In force")),
		h.P(g.Text("Mode "), code(b.Mode), withNote("from", b.ModeFrom), g.Text(order)),
		addRule(f),
		g.Map(b.Lists, func(l ruleList) g.Node { return l.show(f) }),
		g.If(!slices.ContainsFunc(b.Lists, ruleList.any), noRules()),
		g.If(len(b.Warnings) > 0, g.Group{h.H2(g.Text("To be fixed")), h.Ul(h.Class("list"),
			g.Map(b.Warnings, func(w string) g.Node {
				return h.Li(h.Class("item"), text(w))
			}))}),
	}
}

func (l ruleList) any() bool { return len(l.Entries) > 0 }

// addRule returns the form that adds a rule.
func addRule(f layout) g.Node {
	return post("/rules/change", f.Token, plainForm(), h.Class("search"), h.Aria("label", "Add a rule"),
		h.Div(h.Class("pair"),
			choice("list", "Add to", g.Map(ruleKinds, func(kind string) g.Node { return option(kind, "ask") })),
			h.Div(h.Class("wide"), h.Label(h.For("rule"), g.Text("Rule")),
				h.Input(keepInput("rule", ""), h.Placeholder("Bash(npm test *)"), h.Required())),
			h.Div(h.Class("end"), button("", "Add the rule", g.If(f.Closed != "", h.Disabled()))),
		),
	)
}

// editRule returns the form that removes or replaces a rule. There is none for a rule that cannot be shown unchanged,
// because a form could not contain it either.
func (l ruleList) editRule(e settings.Entry, f layout) g.Node {
	if !editable(e) || !slices.Contains(ruleKinds, l.Name) || f.Closed != "" || e.Text != mcpserver.Sanitize(e.Text) {
		return nil
	}
	id := l.Name + "-" + strconv.Itoa(e.Line)
	return h.Details(h.Class("edit"), h.Summary(g.Text("Narrow or remove"), h.Span(h.Class("unseen"), text(" "+e.Text))),
		post("/rules/change", f.Token, plainForm(), h.Class("line"), hidden("list", l.Name), hidden("old", e.Text),
			h.Label(h.For(id), h.Class("unseen"), g.Text("Rule")),
			h.Input(h.ID(id), h.Name("rule"), h.Value(e.Text), h.AutoComplete("off"), noSpellcheck()),
			button("", "Replace"), button("danger", "Remove", h.Name("remove"), h.Value("1")),
		),
	)
}

func (l ruleList) show(f layout) g.Node {
	if !l.any() {
		return nil
	}
	return h.Section(
		h.H3(verdict(l.Name), g.Text(" "), h.Small(g.Text(l.About))),
		h.Ul(h.Class("list"), g.Map(l.Entries, func(e settings.Entry) g.Node {
			return h.Li(h.Class("item rule-item"), h.Code(h.Class("what"), text(e.Text)),
				meta(text(e.Kind.String()+" · "+e.Where())), l.editRule(e, f))
		})),
	)
}

func noRules() g.Node {
	return h.P(h.Class("empty"), g.Text("No file or flag holds a rule. Rules stand in "), code(".claude/settings.json"),
		g.Text(" of a root, in "), code("~/.claude/settings.json"), g.Text(", or in "), code("--allow"), g.Text(" and "),
		code("--deny"), g.Text("."))
}
