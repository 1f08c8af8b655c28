package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin"
)

// maxRewindLines bounds the lines of a diff on the page of a rewind.
const maxRewindLines = 20_000

// A rewindBody is the page of a rewind, with what it would do or has done.
type rewindBody struct {
	Call      changedCall // the roots become what they were before it
	Plan      string      // identifies the preview: the rewind does only what it shows
	Refused   string      // why it needs force, other than conflicts
	Running   []builtin.RunningCommand
	HeadMoved []string         // IDs of calls
	Notes     []string         // of what was taken out again, because git would have run it
	Restored  []builtin.Undone // restored files, or those that would be restored
	Left      []builtin.Undone
	Forced    bool   // force would restore some of Left, or override Refused
	Diff      []line // of the files in Restored
	LeftDiff  []line // what force would write in addition
	Cut       bool   // the diffs are cut
	Done      bool
	IDs       []string // the IDs of the rewind in the history, one for each changed root

	short func(path string) string
}

// findCall returns a call of the history.
func (s historyPages) findCall(id string) (changedCall, string, error) {
	first, diff, err := s.operator.ShowChange(id)
	if err != nil {
		return changedCall{}, "", err
	}
	all, err := s.operator.Calls(builtin.ChangeFilter{Since: first.Time})
	for _, c := range all {
		if c.ID == first.ID && s.keepRoots(&c) {
			return changedCall{c, s.counts.of(c, s.operator)}, diff, err
		}
	}
	return changedCall{}, "", errors.Join(err, fmt.Errorf("call %s changed nothing in the roots of this host", first.ID))
}

// rewinds undoes all changes in the roots since a call, or plans that.
func (s historyPages) rewinds(ctx context.Context, b *rewindBody, sel builtin.UndoSelection) error {
	for _, root := range s.roots {
		if s.isNested(root) {
			continue
		}
		sel.Since, sel.Path = b.Call.Time, root
		r, err := s.operator.Undo(ctx, sel)
		b.Running = append(b.Running, r.Running...)
		if b.HeadMoved = append(b.HeadMoved, r.HeadMoved...); r.Refused != nil {
			b.Refused, b.Forced = sentence(r.Refused.Error()), true
		}
		if err != nil {
			return err
		}
		b.Notes = append(b.Notes, r.Notes...)
		if r.ID != "" {
			b.IDs = append(b.IDs, r.ID)
		}
		for _, u := range r.Files {
			if u.Err == nil {
				b.Restored = append(b.Restored, u)
				continue
			}
			b.Left = append(b.Left, u)
			b.Forced = b.Forced || u.Forced
		}
	}
	return nil
}

// isNested reports whether a root lies in another one.
func (s historyPages) isNested(root string) bool {
	return slices.ContainsFunc(s.roots, func(other string) bool { return other != root && isWithin(root, other) })
}

// preview plans the rewind to the state before a call.
func (s historyPages) preview(ctx context.Context, id string) (rewindBody, error) {
	b := rewindBody{short: s.short}
	var err error
	if b.Call, _, err = s.findCall(id); err != nil {
		return b, err
	}
	if err := s.rewinds(ctx, &b, builtin.UndoSelection{DryRun: true, Diffs: true}); err != nil {
		return b, err
	}
	sum := sha256.New()
	for _, u := range append(b.Restored, b.Left...) {
		fmt.Fprintf(sum, "%q %v %q %q\n", u.Path, u.Removed, fmt.Sprint(u.Err), u.Diff)
	}
	b.Plan = hex.EncodeToString(sum.Sum(nil))
	b.Diff = b.lines(b.Restored)
	if len(b.Left) > 0 && b.Forced {
		forced := rewindBody{Call: b.Call}
		if err := s.rewinds(ctx, &forced, builtin.UndoSelection{DryRun: true, Diffs: true, Force: true}); err != nil {
			return b, err
		}
		left := map[string]bool{}
		for _, u := range b.Left {
			left[u.Path] = true
		}
		var more []builtin.Undone
		for _, u := range forced.Restored {
			if left[u.Path] {
				more = append(more, u)
			}
		}
		b.LeftDiff = b.lines(more)
	}
	return b, nil
}

// lines returns the diffs of files, each under the name of the file.
func (b *rewindBody) lines(files []builtin.Undone) (all []line) {
	for _, u := range files {
		if len(all) > maxRewindLines {
			b.Cut = true
			return all
		}
		all = append(all, line{"file", u.Path})
		if u.Diff != "" {
			all = append(all, diffLines(u.Diff)...)
		}
	}
	return all
}

func (s historyPages) showRewind(w http.ResponseWriter, v pageRequest) { s.rewindWith(w, v, "") }

// rewindWith shows the preview, and above it why the rewind was not done.
func (s historyPages) rewindWith(w http.ResponseWriter, v pageRequest, said string) {
	b, err := s.preview(v.Context(), v.PathValue("id"))
	if err != nil {
		s.gone(w, v, "Rewind", sentence(err.Error()))
		return
	}
	status := http.StatusOK
	if said != "" {
		status = http.StatusConflict
	}
	s.write(w, v, status, layout{Page: "rewind", Title: "Rewind", Said: said, Failed: said != "", Body: b})
}

// rewind does what its preview shows. It does nothing if the preview would now show something else.
func (s historyPages) rewind(w http.ResponseWriter, v pageRequest) {
	plan, err := s.preview(v.Context(), v.PathValue("id"))
	if err != nil {
		s.gone(w, v, "Rewind", sentence(err.Error()))
		return
	}
	if plan.Plan != v.PostFormValue("plan") {
		s.rewindWith(w, v, "What a rewind would do has changed since you looked: look again. Nothing was done.")
		return
	}
	b := rewindBody{Call: plan.Call, Done: true, short: s.short}
	ctx := context.WithoutCancel(v.Context()) // closing the browser must not stop it halfway
	if err := s.rewinds(ctx, &b, builtin.UndoSelection{Force: v.PostFormValue("force") != ""}); err != nil &&
		len(b.Restored) == 0 {
		s.rewindWith(w, v, sentence(err.Error()))
		return
	} else if err != nil {
		b.Refused = sentence(err.Error())
	}
	f := layout{Page: "rewind", Title: "Rewound", Body: b,
		Said: fmt.Sprintf("Rewound: %s restored, %d left as they are.", plural(len(b.Restored), "file"), len(b.Left))}
	f.Said += strings.TrimRight(" "+listed(b.Notes, " "), " ")
	status := http.StatusOK
	if f.Failed = len(b.Left) > 0 || b.Refused != ""; f.Failed {
		status = http.StatusConflict
	}
	s.write(w, v, status, f)
}
