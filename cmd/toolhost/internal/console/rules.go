package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

// The page of the rules.
type rulesPages struct{ *website }

// A rulesBody is the page of the rules in force.
type rulesBody struct {
	Mode     string
	ModeFrom string
	Lists    []ruleList
	Warnings []string
	Broken   []string
	Tools    []*builtin.Def
	Asked    explanation
}

// A ruleList is the rules of one kind.
type ruleList struct {
	Name, About string
	Entries     []settings.Entry
}

// An explanation is a call that a person asks about, and what the rules decide on it.
type explanation struct {
	Tool, Input string
	Verdict     *guard.Verdict
	Wrong       string // why there is no decision
}

func (s rulesPages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, http.StatusOK, "", false)
}

func (s rulesPages) showWith(w http.ResponseWriter, v pageRequest, status int, said string, failed bool) {
	set := s.operator.Settings()
	body := rulesBody{
		Mode: set.DefaultMode, ModeFrom: set.DefaultModeFrom.Where(), Tools: s.host.Tools(mcpserver.Local()),
		Warnings: s.operator.RuleWarnings(),
		Lists: []ruleList{
			{"deny", "refused, whatever else allows it", set.Deny},
			{"ask", "a person must agree each time", set.Ask},
			{"allow", "runs unasked", set.Allow},
			{"directories", "open in addition to the roots", set.AdditionalDirectories},
			{"masked", "commands have a sentinel, and these hosts get the value: toolhost credential", masked(set)},
			{"left out", "counts once you trust the workspace: toolhost trust", set.Untrusted},
		},
	}
	for _, warning := range set.Warnings {
		body.Warnings = append(body.Warnings, warning.String())
	}
	for _, err := range set.Broken {
		body.Broken = append(body.Broken, err.Error())
	}
	if v.PostFormValue("tool") != "" {
		body.Asked = s.explain(v)
	}
	s.write(w, v, status, layout{Page: "rules", Title: "Rules", Said: said, Failed: failed, Body: body})
}

// masked returns the masked credentials, each with the hosts that get its value, and those that the SSH agent signs
// for.
func masked(set *settings.Settings) (list []settings.Entry) {
	c := set.Sandbox.Credentials
	for _, m := range slices.Concat(c.MaskedVars, c.MaskedFiles) {
		e := m.Entry
		e.Text += " → " + strings.Join(m.InjectHosts, ", ")
		list = append(list, e)
	}
	for _, e := range c.SSHAgent {
		e.Text = "SSH agent → " + e.Text
		list = append(list, e)
	}
	return list
}

// change adds a rule to the owner's own settings, removes one, or replaces one by a narrower one.
func (s rulesPages) change(w http.ResponseWriter, v pageRequest) {
	said, err := s.changed(v)
	if err != nil {
		s.showWith(w, v, http.StatusConflict, sentence(err.Error()), true)
		return
	}
	s.showWith(w, v, http.StatusOK, said, false)
}

func (s rulesPages) changed(v pageRequest) (said string, err error) {
	name, old, rule := v.PostFormValue("list"), v.PostFormValue("old"), strings.TrimSpace(v.PostFormValue("rule"))
	if err := s.operator.MayAnswer(); err != nil {
		return "", fmt.Errorf("no rule was changed. %w", err)
	}
	if !slices.Contains(ruleKinds, name) {
		return "", fmt.Errorf("list: expected one of %q, got %q; no rule was changed", ruleKinds, name)
	}
	remove := v.PostFormValue("remove") != ""
	if !remove {
		if err := s.operator.AddRule("permissions."+name, rule); err != nil {
			return "", fmt.Errorf("no rule was changed: %w", err)
		}
		if said = fmt.Sprintf("Added to %s: %s.", name, rule); old == "" || old == rule {
			return said, nil
		}
	}
	lists := map[string][]settings.Entry{"allow": s.operator.Settings().Allow, "ask": s.operator.Settings().Ask,
		"deny": s.operator.Settings().Deny}
	i := slices.IndexFunc(lists[name], func(e settings.Entry) bool { return e.Text == old && editable(e) })
	if i < 0 {
		return "", fmt.Errorf("%s is not in your own list of %s rules any more. %s", old, name, said)
	}
	if err := settings.Remove(lists[name][i], "permissions."+name); err != nil {
		return "", err
	}
	return strings.TrimSpace(said + fmt.Sprintf(" Removed from %s: %s.", name, old)), nil
}

// ruleKinds are the lists of rules that the page can change.
var ruleKinds = []string{"allow", "ask", "deny"}

// editable reports whether an entry is in toolhost's own settings of the user, which the page changes.
func editable(e settings.Entry) bool { return e.Kind == settings.User && !e.Client && e.Line > 0 }

// explain returns what the rules decide on a call, without running it.
func (s rulesPages) explain(v pageRequest) explanation {
	e := explanation{Tool: v.PostFormValue("tool"), Input: v.PostFormValue("input")}
	verdict, err := s.operator.Check(v.Context(), mcpserver.LocalPrincipal, e.Tool, s.inputOf(e.Tool, e.Input))
	if err != nil {
		e.Wrong = err.Error()
		return e
	}
	e.Verdict = &verdict
	return e
}

// inputOf returns an input: the given JSON, or an object with the text as the only argument that the tool requires.
func (s rulesPages) inputOf(tool, text string) json.RawMessage {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text)
	}
	for _, d := range s.host.Tools(mcpserver.Local()) {
		if d.Name == tool && d.Schema != nil && len(d.Schema.Required) > 0 {
			raw, err := json.Marshal(map[string]string{d.Schema.Required[0]: text})
			if err == nil {
				return raw
			}
		}
	}
	return json.RawMessage(text)
}
