package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

// The pages of what has been done: the history and the audit log; and of the rules.

// maxChanges is how many changes the history shows.
const maxChanges = 200

// A historyBody is the list of changes.
type historyBody struct {
	Path    string
	Changes []builtin.Change
	More    bool

	short func(path string) string
}

func (s *Server) showHistory(w http.ResponseWriter, v pageRequest) {
	s.historyWith(w, v, http.StatusOK, layout{Page: "history", Title: "History"})
}

func (s *Server) historyWith(w http.ResponseWriter, v pageRequest, status int, f layout) {
	body := historyBody{Path: strings.TrimSpace(v.PostFormValue("path")), short: s.short}
	filter := builtin.ChangeFilter{}
	if body.Path != "" {
		filter.Path = body.Path
		if !filepath.IsAbs(filter.Path) {
			filter.Path = filepath.Join(s.roots[0], filter.Path)
		}
	}
	all, err := s.operator.Changes(filter)
	if err != nil {
		f.Said, f.Failed = sentence(err.Error()), true
	}
	body.Changes = slices.DeleteFunc(all, func(c builtin.Change) bool { return !s.inRoots(c.Path) })
	if body.More = len(body.Changes) > maxChanges; body.More {
		body.Changes = body.Changes[:maxChanges]
	}
	f.Body = body
	s.show(w, v, status, f)
}

// undoChosen undoes several changes at once, and tells for each file what became of it.
func (s *Server) undoChosen(w http.ResponseWriter, v pageRequest) {
	f := layout{Page: "history", Title: "History"}
	undone, err := s.operator.Undo(v.Context(), builtin.UndoSelection{IDs: v.PostForm["id"]})
	var restored, left []string
	for _, u := range undone {
		if u.Err != nil {
			left = append(left, fmt.Sprintf("%s was left as it is: %v", u.Path, u.Err))
		} else {
			restored = append(restored, u.Path)
		}
	}
	switch {
	case err != nil && len(v.PostForm["id"]) == 0:
		f.Said = "Choose the changes to undo first: nothing was done."
	case err != nil:
		f.Said = sentence(err.Error())
	case len(restored) > 0:
		f.Said = "Undone: " + strings.Join(restored, ", ") + "."
	}
	for _, text := range left {
		f.Said = strings.TrimSpace(f.Said + " " + sentence(text))
	}
	status := http.StatusOK
	if f.Failed = err != nil || len(left) > 0; f.Failed {
		status = http.StatusConflict
	}
	s.historyWith(w, v, status, f)
}

// inRoots reports whether a path lies in a root of this host. Several hosts share one history.
func (s *Server) inRoots(path string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// A changeBody is the page of one change.
type changeBody struct {
	Change builtin.Change
	Diff   string
	Force  bool // what prevented the undo can be overridden
}

func (s *Server) showChange(w http.ResponseWriter, v pageRequest) { s.changeWith(w, v, nil, "", false) }

func (s *Server) changeWith(w http.ResponseWriter, v pageRequest, undone []builtin.Undone, said string, failed bool) {
	change, diff, err := s.operator.ShowChange(v.PathValue("id"))
	if err != nil {
		s.show(w, v, http.StatusNotFound, layout{Page: "gone", Title: "History", Said: sentence(err.Error()), Failed: true, Body: notFound{}})
		return
	}
	body := changeBody{Change: change, Diff: diff}
	body.Force = slices.ContainsFunc(undone, func(u builtin.Undone) bool { return u.Forced })
	status := http.StatusOK
	if failed {
		status = http.StatusConflict
	}
	s.show(w, v, status, layout{Page: "change", Title: "Change", Said: said, Failed: failed, Body: body})
}

// undo restores what the file of a change held before it.
func (s *Server) undo(w http.ResponseWriter, v pageRequest) {
	sel := builtin.UndoSelection{IDs: []string{v.PathValue("id")}, Force: v.PostFormValue("force") != ""}
	undone, err := s.operator.Undo(v.Context(), sel)
	if err == nil && len(undone) == 0 {
		err = errors.New("there was nothing to undo")
	}
	for _, u := range undone {
		if u.Err != nil {
			err = fmt.Errorf("%s was left as it is: %w", u.Path, u.Err)
		}
	}
	if err != nil {
		s.changeWith(w, v, undone, sentence(err.Error()), true)
		return
	}
	said := "Undone: " + undone[0].Path + " holds again what it held before this change."
	if undone[0].Removed {
		said = "Undone: " + undone[0].Path + " is gone again."
	}
	s.changeWith(w, v, undone, said, false)
}

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

func (s *Server) showRules(w http.ResponseWriter, v pageRequest) {
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
	s.show(w, v, http.StatusOK, layout{Page: "rules", Title: "Rules", Body: body})
}

// explain tells what the rules say of a call, without running it.
func (s *Server) explain(v pageRequest) explanation {
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
func (s *Server) inputOf(tool, text string) json.RawMessage {
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

// An auditBody is a search of the audit log.
type auditBody struct {
	Path    string
	Query   query
	Since   string
	Tools   []*builtin.Def
	Found   searchResult
	Periods []string

	short func(path string) string
}

// periods are the times that a search can go back, as time.ParseDuration reads them; empty is for ever.
func periods() []string { return []string{"", "10m", "1h", "24h", "168h"} }

func (s *Server) showAudit(w http.ResponseWriter, v pageRequest) {
	f := layout{Page: "audit", Title: "Audit"}
	since, _ := time.ParseDuration(v.PostFormValue("since")) // what is no duration is for ever
	body := auditBody{
		Path: s.operator.AuditPath(), Tools: s.host.Tools(mcpserver.Local()), Since: v.PostFormValue("since"), Periods: periods(), short: s.short,
		Query: query{
			Text: strings.TrimSpace(v.PostFormValue("text")), Tool: v.PostFormValue("tool"), Verdict: v.PostFormValue("verdict"), Since: since,
		},
	}
	if body.Path == "" {
		f.Said, f.Failed = "Calls are not recorded: the state directory cannot be written.", true
	} else {
		var err error
		if body.Found, err = searchAudit(body.Path, body.Query); err != nil {
			f.Said, f.Failed = sentence(err.Error()), true
		}
	}
	f.Body = body
	s.show(w, v, http.StatusOK, f)
}
