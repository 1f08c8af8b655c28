package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/guard/settings"
)

// The page of the settings. It cannot change them, because they are files.
type settingsPages struct{ *website }

// A settingsBody is the page of the settings.
type settingsBody struct {
	Values   []settings.Value // set by a file or a flag
	Defaults []settings.Default
	Away     awayState
}

// An awayState says how questions reach a person who is away.
type awayState struct{ Origin, Code, Wrong string }

func (s settingsPages) show(w http.ResponseWriter, v pageRequest) {
	b := settingsBody{Away: awayState{Wrong: s.noAway}}
	// The page of the rules shows these.
	elsewhere := map[string]bool{"permissions.allow": true, "permissions.ask": true, "permissions.deny": true}
	for _, value := range s.operator.Settings().Values {
		if !elsewhere[value.Name] {
			b.Values = append(b.Values, value)
		}
	}
	for _, d := range settings.Defaults() {
		if !elsewhere[d.Name] && !slices.ContainsFunc(b.Values, func(v settings.Value) bool { return v.Name == d.Name }) {
			b.Defaults = append(b.Defaults, d)
		}
	}
	s.console.mu.Lock()
	a := s.console.away
	s.console.mu.Unlock()
	if a != nil {
		b.Away.Origin, b.Away.Code = a.origin.String(), a.code()
	}
	s.write(w, v, http.StatusOK, layout{Page: "settings", Title: "Settings", Body: b})
}

func (b settingsBody) show(f layout) g.Node {
	return g.Group{
		h.H1(g.Text("Settings")),
		meta(g.Text("Settings are files. This page shows them; "), h.A(h.Href("/rules"), g.Text("Rules")),
			g.Text(" changes those of your own that allow, ask and deny.")),
		h.H2(g.Text("Away from the desk")),
		b.Away.show(),
		h.H2(g.Text("Set by a file or a flag")),
		h.Ol(h.Class("list"), b.values()),
		h.Details(h.Class("defaults"), h.Summary(g.Textf("%d at their defaults", len(b.Defaults))),
			h.Ol(h.Class("list"), g.Map(b.Defaults, func(d settings.Default) g.Node {
				return h.Li(h.Class("item"), code(d.Name), after(" = ", d.Value), meta(text(d.Does)))
			}))),
	}
}

func (b settingsBody) values() g.Node {
	if len(b.Values) == 0 {
		return nothing("settings", "None but rules: all are at their defaults. Your own file is "+
			"~/.config/toolhost/toolhost.json; toolhost schema prints what it may hold.")
	}
	return g.Map(b.Values, func(v settings.Value) g.Node {
		return h.Li(h.Class("item"), code(v.Name), after(" = ", shownValue(v)),
			meta(text(v.Kind.String()+" · "+v.Where())))
	})
}

// shownValue returns the value of a setting without parts that may be secret: objects may contain credentials, and
// the address of a topic is a credential.
func shownValue(v settings.Value) string {
	switch {
	case strings.HasPrefix(v.Text, "{") || strings.HasPrefix(v.Text, "["):
		return "{…}"
	case v.Name == "approvals.notify":
		if to, err := url.Parse(v.Text); err == nil && to.Host != "" {
			return to.Scheme + "://" + to.Host + "/…"
		}
		return "…"
	}
	return v.Text
}

func (a awayState) show() g.Node {
	switch {
	case a.Wrong != "":
		return h.P(h.Class("note warn"), h.Strong(g.Text("Questions are not announced:")), text(" "+a.Wrong+"."))
	case a.Origin == "":
		return meta(g.Text("Questions wait on this page only. With "), code("approvals.notify"),
			g.Text(" a chat or a phone gets their first line, and a link to each."))
	}
	return g.Group{
		h.P(g.Text("Questions are announced, with links to "), code(a.Origin),
			g.Text(". A new browser asks once for this code:")),
		h.Pre(h.Class("shell"), code(a.Code)),
		meta(g.Text("Type it only at "), code(a.Origin),
			g.Text(". For a new code, and to sign out all browsers, delete "), code(secretName),
			g.Text(" in the state directory and restart the host.")),
	}
}
