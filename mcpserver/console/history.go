package console

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin"
)

// The pages of what has been changed.
type historyPages struct{ *website }

// maxChanges is how many changes the history shows.
const maxChanges = 200

// A historyBody is the list of changes.
type historyBody struct {
	Path    string
	Changes []builtin.Change // the first of each call
	Paths   map[string]int   // how many paths a call changed, by its ID
	More    bool

	short func(path string) string
}

func (s historyPages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, http.StatusOK, layout{Page: "history", Title: "History"})
}

func (s historyPages) showWith(w http.ResponseWriter, v pageRequest, status int, f layout) {
	body, err := s.list(v)
	if err != nil {
		f.Said, f.Failed = sentence(err.Error()), true
	}
	f.Body = body
	s.write(w, v, status, f)
}

// list returns the newest changes of the path that a request names.
func (s historyPages) list(v pageRequest) (historyBody, error) {
	body := historyBody{Path: strings.TrimSpace(v.FormValue("path")), short: s.short}
	filter := builtin.ChangeFilter{}
	if body.Path != "" {
		filter.Path = body.Path
		if !filepath.IsAbs(filter.Path) {
			filter.Path = filepath.Join(s.roots[0], filter.Path)
		}
	}
	all, err := s.operator.Changes(filter)
	body.Paths = map[string]int{}
	for _, c := range slices.Backward(all) {
		if s.inRoots(c.Path) {
			if body.Paths[c.ID]++; body.Paths[c.ID] == 1 {
				body.Changes = append(body.Changes, c)
			}
		}
	}
	slices.Reverse(body.Changes)
	if body.More = len(body.Changes) > maxChanges; body.More {
		body.Changes = body.Changes[:maxChanges]
	}
	return body, err
}

// undoChosen undoes several changes at once, and tells for each file what became of it.
func (s historyPages) undoChosen(w http.ResponseWriter, v pageRequest) {
	f := layout{Page: "history", Title: "History"}
	undone, err := s.operator.Undo(v.Context(), builtin.UndoSelection{IDs: v.PostForm["id"]})
	var restored, left []string
	for _, u := range undone.Files {
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
	s.showWith(w, v, status, f)
}

// inRoots reports whether a path lies in a root of this host. Several hosts share one history.
func (s historyPages) inRoots(path string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// A changeBody is the page of one change.
type changeBody struct {
	Change builtin.Change
	Diff   []line // the hunks, or the whole file with the lines that were removed
	Lines  lineCount
	Whole  bool
	Force  bool // what prevented the undo can be overridden
}

func (s historyPages) showChange(w http.ResponseWriter, v pageRequest) {
	s.changeWith(w, v, nil, "", false)
}

func (s historyPages) changeWith(w http.ResponseWriter, v pageRequest, undone []builtin.Undone, said string, failed bool) {
	change, diff, err := s.operator.ShowChange(v.PathValue("id"))
	if err != nil {
		s.gone(w, v, "History", sentence(err.Error()))
		return
	}
	body := changeBody{Change: change, Diff: diffLines(diff), Whole: v.PathValue("view") == "file"}
	body.Lines = countLines(body.Diff)
	if body.Whole {
		file, err := s.operator.ChangedFile(change)
		if err != nil {
			said, failed = sentence(err.Error()), true
		}
		body.Diff = inFile(plain("", file), body.Diff)
	}
	body.Force = slices.ContainsFunc(undone, func(u builtin.Undone) bool { return u.Forced })
	status := http.StatusOK
	if failed {
		status = http.StatusConflict
	}
	s.write(w, v, status, layout{Page: "change", Title: "Change", Said: said, Failed: failed, Body: body})
}

// undo restores what the file of a change held before it.
func (s historyPages) undo(w http.ResponseWriter, v pageRequest) {
	sel := builtin.UndoSelection{IDs: []string{v.PathValue("id")}, Force: v.PostFormValue("force") != ""}
	result, err := s.operator.Undo(v.Context(), sel)
	undone := result.Files
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
