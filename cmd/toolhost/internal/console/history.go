package console

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// The pages of what has been changed.
type historyPages struct{ *website }

// maxChanges is how many changes the history shows.
const maxChanges = 200

// A historyBody is the list of the calls that changed files.
type historyBody struct {
	Path     string
	Calls    []changedCall // newest first
	More     bool
	Holdings []builtin.Holding
	Bounds   string // the limits of the history

	short func(path string) string
}

// A changedCall describes the changes of one call in the roots.
type changedCall struct {
	builtin.ChangedCall
	Lines lineCount // of all files; zero if they were not counted
}

func (s historyPages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, http.StatusOK, layout{Page: "history", Title: "History"})
}

func (s historyPages) showWith(w http.ResponseWriter, v pageRequest, status int, f layout) {
	body, err := s.list(v)
	if err == nil {
		body.Holdings, err = s.operator.Holdings()
	}
	if err != nil {
		f.Said, f.Failed = sentence(err.Error()), true
	}
	f.Body = body
	s.write(w, v, status, f)
}

// list returns the newest calls that changed the path that a request names.
func (s historyPages) list(v pageRequest) (historyBody, error) {
	body := historyBody{Path: strings.TrimSpace(v.FormValue("path")), Bounds: builtin.HistoryBounds(s.roots),
		short: s.short}
	filter := builtin.ChangeFilter{}
	if body.Path != "" {
		filter.Path = body.Path
		if !filepath.IsAbs(filter.Path) {
			filter.Path = filepath.Join(s.roots[0], filter.Path)
		}
	}
	all, err := s.operator.Calls(filter)
	for _, c := range all {
		if !s.keepRoots(&c) {
			continue
		}
		if body.More = len(body.Calls) == maxChanges; body.More {
			break
		}
		body.Calls = append(body.Calls, changedCall{c, s.counts.of(c, s.operator)})
	}
	return body, err
}

// keepRoots removes the files outside of the roots from a call, and reports whether any are left. Several hosts share
// one history.
func (s historyPages) keepRoots(c *builtin.ChangedCall) bool {
	c.Files = slices.DeleteFunc(c.Files, func(f builtin.Change) bool { return !s.inRoots(f.Path) })
	if len(c.Files) > 0 {
		c.Path, c.Created, c.Deleted = c.Files[0].Path, c.Files[0].Created, c.Files[0].Deleted
	}
	return len(c.Files) > 0
}

// undoChosen undoes several changes at once, and shows the result for each file.
func (s historyPages) undoChosen(w http.ResponseWriter, v pageRequest) {
	f := layout{Page: "history", Title: "History"}
	result, err := s.operator.Undo(v.Context(), builtin.UndoSelection{IDs: v.PostForm["id"]})
	if len(v.PostForm["id"]) == 0 {
		err = errors.New("choose the changes to undo first: nothing was done")
	}
	var left int
	if f.Said, left = told(result); err != nil {
		f.Said = sentence(err.Error())
	}
	status := http.StatusOK
	if f.Failed = err != nil || left > 0; f.Failed {
		status = http.StatusConflict
	}
	s.showWith(w, v, status, f)
}

// told describes the results for files, and returns how many were not changed.
func told(result builtin.UndoResult) (said string, left int) {
	var restored, others []string
	for _, u := range result.Files {
		if u.Err != nil {
			others = append(others, sentence(fmt.Sprintf("%s was left as it is: %v", u.Path, u.Err)))
		} else {
			restored = append(restored, u.Path)
		}
	}
	if len(restored) > 0 {
		said = "Undone: " + listed(restored, ", ") + ". "
	}
	return strings.TrimSpace(said + listed(slices.Concat(others, result.Notes), " ")), len(others)
}

// maxListed is how many files a sentence lists.
const maxListed = 20

func listed(names []string, separator string) string {
	text := strings.Join(names[:min(len(names), maxListed)], separator)
	if more := len(names) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// inRoots reports whether a path lies in a root of this host. Several hosts share one history.
func (s historyPages) inRoots(path string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool { return isWithin(path, root) })
}

// isWithin reports whether path is dir or lies in it.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// A changeBody is the page of one call.
type changeBody struct {
	Call  changedCall
	Diff  []line // the hunks, or the whole file with the removed lines
	Lines lineCount
	Whole bool
	Force bool // the undo was refused for a reason that can be overridden

	short func(path string) string
}

// changeSlack is how long after the end of a call, according to its record, a change may have begun that belongs to
// it.
const changeSlack = 2 * time.Second

// comparedCommand is how many bytes of two commands are compared: the history keeps no more of a long command.
const comparedCommand = 1 << 10

// changeOf returns what a call has changed, according to the history: the change that began while the call ran, by
// the same tool in the same scope, and with the same command or with a file that the call wrote.
func (s historyPages) changeOf(c call) *changeBody {
	r := c.Record
	if c.State != stateDone && c.State != stateFailed || r.Command == "" && len(r.Writes) == 0 {
		return nil
	}
	all, err := s.operator.Calls(builtin.ChangeFilter{Principal: r.Principal, Scope: r.Scope, Since: r.Time})
	if err != nil {
		return nil
	}
	end := r.Time.Add(time.Duration(r.Millis*float64(time.Millisecond)) + changeSlack)
	for _, one := range slices.Backward(all) {
		same := one.Tool == r.Tool && one.Time.Before(end) && len(one.UndoOf) == 0
		if r.Command != "" {
			same = same && clip(one.Command, comparedCommand) == clip(r.Command, comparedCommand)
		} else {
			same = same && slices.Contains(r.Writes, one.Path)
		}
		if same && s.keepRoots(&one) {
			_, diff, err := s.operator.ShowChange(one.ID)
			b := &changeBody{Call: changedCall{ChangedCall: one}, Diff: diffLines(diff), short: s.short}
			if b.Lines = countLines(b.Diff); err == nil {
				return b
			}
		}
	}
	return nil
}

func (s historyPages) showChange(w http.ResponseWriter, v pageRequest) {
	s.changeWith(w, v, nil, "", false)
}

func (s historyPages) changeWith(w http.ResponseWriter, v pageRequest, undone []builtin.Undone, said string,
	failed bool) {
	call, diff, err := s.findCall(v.PathValue("id"))
	if err != nil {
		s.gone(w, v, "History", sentence(err.Error()))
		return
	}
	body := changeBody{Call: call, Diff: diffLines(diff), Whole: v.PathValue("view") == "file" &&
		len(call.Files) == 1, short: s.short}
	body.Lines = countLines(body.Diff)
	if body.Whole {
		file, err := s.operator.ChangedFile(call.Change)
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

// undo undoes the changes that a call has made.
func (s historyPages) undo(w http.ResponseWriter, v pageRequest) {
	sel := builtin.UndoSelection{IDs: []string{v.PathValue("id")}, Force: v.PostFormValue("force") != ""}
	result, err := s.operator.Undo(v.Context(), sel)
	if err == nil && len(result.Files) == 0 {
		err = errors.New("there was nothing to undo")
	}
	said, left := told(result)
	if err != nil {
		said = sentence(err.Error())
	}
	s.changeWith(w, v, result.Files, said, err != nil || left > 0)
}
