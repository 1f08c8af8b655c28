package console

import (
	"encoding/json"
	"net/http"
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

// An explanation is a call that was asked about, and what the rules say of it.
type explanation struct {
	Tool, Input string
	Verdict     *guard.Verdict
	Wrong       string // why there is none
}

func (s rulesPages) show(w http.ResponseWriter, v pageRequest) {
	set := s.operator.Settings()
	body := rulesBody{
		Mode: set.DefaultMode, ModeFrom: set.DefaultModeFrom.Where(), Tools: s.host.Tools(mcpserver.Local()), Warnings: s.operator.RuleWarnings(),
		Lists: []ruleList{
			{"deny", "refused, whatever else allows it", set.Deny},
			{"ask", "a person must agree each time", set.Ask},
			{"allow", "runs unasked", set.Allow},
			{"directories", "open in addition to the roots", set.AdditionalDirectories},
			{"left out", "counts once you trust the workspace: toolhost trust", set.Untrusted},
		},
	}
	for _, warning := range set.Warnings {
		body.Warnings = append(body.Warnings, warning.String())
	}
	for _, err := range set.Broken {
		body.Broken = append(body.Broken, err.Error())
	}
	if v.Method == http.MethodPost {
		body.Asked = s.explain(v)
	}
	s.write(w, v, http.StatusOK, layout{Page: "rules", Title: "Rules", Body: body})
}

// explain tells what the rules say of a call, without running it.
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

// inputOf reads an input: JSON, or the text of the one argument that the tool cannot do without.
func (s rulesPages) inputOf(tool, text string) json.RawMessage {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text)
	}
	for _, d := range s.host.Tools(mcpserver.Local()) {
		if d.Name == tool && len(d.Schema.Required) > 0 {
			raw, err := json.Marshal(map[string]string{d.Schema.Required[0]: text})
			if err == nil {
				return raw
			}
		}
	}
	return json.RawMessage(text)
}
