package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
)

// This file lists the history for the owner of the machine and undoes changes.

type (
	// A Change is one change of one file.
	Change = journal.Change
	// A RunningCommand is a command that runs and may change files.
	RunningCommand = journal.Running
	// A ChangeFilter says which changes to list.
	ChangeFilter = journal.Filter
	// An UndoSelection says which changes to undo.
	UndoSelection = journal.Selection
)

// A ChangedCall describes the changes of one call, from the history.
type ChangedCall struct {
	Change          // the first of Files; its fields that are not about a file hold for all
	Files  []Change // sorted by path
}

// Counts says how many files a call changed: "41 changed, 2 created".
func (c ChangedCall) Counts() string {
	var all []string
	for _, word := range []string{"changed", "created", "removed"} {
		n := 0
		for _, f := range c.Files {
			if f.Word() == word {
				n++
			}
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(all, ", ")
}

// Calls lists the calls that made changes, newest first, as far as the rules let their files be read. UndoneBy is
// empty until all of a call is undone.
func (b *Runtime) Calls(policy *guard.Policy, f ChangeFilter) (calls []ChangedCall, err error) {
	changes, err := b.Changes(policy, f)
	for _, c := range changes {
		n := len(calls) - 1
		if n < 0 || calls[n].ID != c.ID {
			calls = append(calls, ChangedCall{Change: c})
			n++
		}
		call := &calls[n]
		if c.UndoneBy == "" {
			call.UndoneBy = ""
		}
		call.Files = append(call.Files, c)
	}
	for _, c := range calls {
		slices.SortFunc(c.Files, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	}
	return calls, err
}

// A Holding is the share of the history that belongs to one principal.
type Holding = journal.Holding

// Holdings returns what the history holds, the most first.
func (b *Runtime) Holdings() ([]Holding, error) { return b.history.Holdings() }

// Changes lists changes of all principals, newest first, leaving out those of files that a rule now denies reading.
func (b *Runtime) Changes(policy *guard.Policy, f ChangeFilter) ([]Change, error) {
	b.settleKilled(policy)
	f.Principal = journal.AllPrincipals
	all, err := b.history.List(f)
	if err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for _, c := range all {
		made[c.ID] = made[c.ID] || c.State != journal.Failed
	}
	var shown []Change
	mayRead := map[string]bool{}
	for _, c := range all {
		if c.State == journal.Failed && made[c.ID] { // a file that a call of several left as it was
			continue
		}
		may, known := mayRead[c.Path]
		if !known {
			may = readable(policy, c.Path) == nil
			mayRead[c.Path] = may
		}
		if may {
			shown = append(shown, c)
		}
	}
	return shown, nil
}

// ShowChange returns the first change of an entry, and the diffs of all its files that the rules let be read.
func (b *Runtime) ShowChange(policy *guard.Policy, id string) (Change, string, error) {
	b.settleKilled(policy)
	changes, diffs, err := b.history.Show(journal.AllPrincipals, id)
	if err != nil {
		return Change{}, "", err
	}
	var all strings.Builder
	var refused error
	var first *Change
	for i, c := range changes {
		if err := readable(policy, c.Path); err != nil {
			refused = err
			continue
		}
		if first == nil {
			first = &changes[i]
		}
		if len(changes) > 1 {
			fmt.Fprintf(&all, "%s:\n", text.Name(c.Path))
		}
		all.WriteString(diffs[i])
	}
	if first == nil {
		return Change{}, "", refused
	}
	return *first, all.String(), nil
}

// ChangedFile returns what the file of a change held after it, or before it when the change removed the file.
func (b *Runtime) ChangedFile(policy *guard.Policy, c Change) (string, error) {
	if err := readable(policy, c.Path); err != nil {
		return "", err
	}
	held := c.After
	if c.Deleted {
		held = c.Before
	}
	content, err := b.history.Content(c.Principal, held)
	return string(content), err
}

// readable refuses what a rule denies: what was journalled before the rule is denied by it too.
func readable(policy *guard.Policy, path string) error {
	p, err := policy.ResolveKept(path)
	if err != nil { // a link that leads in a circle
		p, err = policy.ResolveEntry(path)
	}
	if err != nil {
		return err
	}
	if v := readVerdict(policy, p); v.Action == guard.Deny {
		return v
	}
	return nil
}

// An UndoResult reports what an undo did, or in a dry run would do.
type UndoResult struct {
	ID    string // of the undo in the history; "" if it changed nothing
	Files []Undone
	// Running are the commands that run in the workspace.
	Running []RunningCommand
	// Refused is why nothing since a time is undone while commands run, unless it is forced. Without a dry run it is the
	// error as well.
	Refused error
	// HeadMoved are the IDs of the calls to be undone after which git had another commit checked out. The work tree will
	// show the reversed changes.
	HeadMoved []string
	// Notes say what git would have run of what was restored, and that it was taken out.
	Notes []string
}

// An Undone is the result of an undo for one file.
type Undone struct {
	Path    string
	Removed bool   // the file did not exist before the changes
	Already bool   // the path is so already: nothing is done there
	Gone    string // why no undo brings back what the changes had made there; "" if one does
	Err     error  // why the file was left as it is
	Forced  bool   // UndoSelection.Force would restore it all the same
	SetID   bool   // the file had the set-user-ID or set-group-ID bit, which is not restored
	Diff    string // from what it holds now to what it would hold, in a dry run with UndoSelection.Diffs
}

// Undo restores what files held before changes. Files that have changed since are left alone unless the
// selection forces it. The undo is journalled, and can be undone.
func (b *Runtime) Undo(ctx context.Context, env *Env, sel UndoSelection) (r UndoResult, err error) {
	b.settleKilled(env.Policy)
	sel.Principal = journal.AllPrincipals
	plan, err := b.history.PlanUndo(sel)
	if err != nil {
		return r, err
	}
	r.HeadMoved = plan.HeadMoved
	dirs := outermost(env.Policy.Roots())
	if sel.Path != "" {
		dirs = []string{sel.Path}
	}
	if r.Running, err = b.history.RunningIn(dirs...); err != nil {
		return r, err
	}
	if n := len(r.Running); n > 0 && !sel.Force && sel.IsRewind() {
		r.Refused = fmt.Errorf("%s in this workspace, and may change files while it is rewound: stop what runs first "+
			"(TaskStop, or kill the process), or force the rewind",
			plural(n, "a command still runs", "commands still run"))
	}
	if r.Refused != nil && !sel.DryRun {
		return r, r.Refused
	}
	return r, undo(ctx, env, sel, plan, &r)
}

// undo does what was planned, as one entry of the history.
func undo(ctx context.Context, env *Env, sel UndoSelection, plan *journal.Undo, r *UndoResult) error {
	var files []journal.Step
	gone := map[string]bool{}
	for _, f := range plan.Files {
		u := Undone{Path: f.Path, Removed: f.Restore.IsAbsent(), Gone: f.Gone, SetID: f.SetID}
		u.Already = isDone(f)
		u.Err = cmp.Or(mayRestore(env, f, plan.Files), emptied(f, gone))
		if u.Err == nil && sel.DryRun && sel.Diffs && readable(env.Policy, f.Path) == nil {
			var err error
			if u.Diff, err = env.Runtime.history.Preview(f); err != nil {
				return err
			}
		}
		r.Files = append(r.Files, u)
		if u.Err == nil {
			files, gone[f.Path] = append(files, f), f.Restore.IsAbsent()
		}
	}
	for _, f := range plan.Refused {
		r.Files = append(r.Files, Undone{Path: f.Path, Err: errors.New(f.Why), Forced: f.Forced})
	}
	if sel.DryRun || len(files) == 0 {
		return nil
	}
	own := *env
	own.Tool = "undo"
	if sel.IsRewind() {
		own.Tool = "rewind"
	}
	nameSteps(env, files)
	entry, err := env.Runtime.history.BeginSteps(journal.Change{Scope: own.Scope, Tool: own.Tool}, files)
	if err != nil {
		return err
	}
	end := guardSteps(env)
	failed, err := makeSteps(ctx, &own, files, entry)
	r.Notes = end()
	for i := range r.Files {
		r.Files[i].Err = cmp.Or(failed[r.Files[i].Path], r.Files[i].Err)
	}
	if len(failed) < len(files) {
		r.ID = entry.ID
	}
	return err
}

// makeSteps makes the steps of an entry, ends it, and returns why some were not made, by path. Directories become
// usable first, and get their modes when everything is in them.
func makeSteps(ctx context.Context, env *Env, files []journal.Step, entry *journal.Entry) (failed map[string]error,
	err error) {
	isDir := func(f journal.Step) bool { return f.Restore.Mode.IsDir() }
	for _, f := range files {
		if isDir(f) && f.Expect.Mode.IsDir() {
			_ = chmodDir(env, f, f.Restore.Mode|0o700) // the second call below reports an error
		}
	}
	failed = map[string]error{}
	open, lost := false, entry.Lost()
	for _, f := range files {
		if err := restore(ctx, env, f, lost[f.Path]); err != nil {
			failed[f.Path] = err
			open = open || errors.Is(err, atomicfile.ErrTorn)
		}
	}
	relink(ctx, env, files, failed)
	removeMade(env, files, failed)
	for _, f := range slices.Backward(files) {
		if isDir(f) && failed[f.Path] == nil {
			if err := chmodDir(env, f, f.Restore.Mode); err != nil {
				failed[f.Path] = err
			}
		}
	}
	if open {
		// A file was written in part. The next start completes it and settles the entry.
		return failed, nil
	}
	return failed, entry.End(slices.Collect(maps.Keys(failed))...)
}

// removeMade removes the directories that were made for files that have gone, unless they hold something.
func removeMade(env *Env, files []journal.Step, failed map[string]error) {
	var dirs []string
	for _, f := range files {
		if failed[f.Path] != nil || !f.Restore.IsAbsent() {
			continue
		}
		for n, dir := f.Made, filepath.Dir(f.Path); n > 0; n, dir = n-1, filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Backward(slices.Compact(dirs)) {
		if above, err := openDirOf(env, dir); err == nil {
			if info, err := above.Lstat(filepath.Base(dir)); err == nil && info.IsDir() {
				_ = above.Remove(filepath.Base(dir)) // what holds something stays
			}
			above.Close()
		}
	}
}

// mayRestore returns an error if an undo of all must not change the path of f. Ask rules do not apply: the owner
// undoes. If a directory of the path must be restored first, the path leads elsewhere until then; it is judged when
// it is restored.
func mayRestore(env *Env, f journal.Step, all []journal.Step) error {
	if f.Expect.IsAbsent() && f.Restore.IsAbsent() {
		return nil // perhaps with its directory, and a link stands there
	}
	entry, err := env.Policy.ResolveEntry(f.Path)
	if err != nil || entry.Real() != f.Path && slices.ContainsFunc(all, func(dir journal.Step) bool {
		return dir.Restore.Mode.IsDir() && strings.HasPrefix(f.Path, dir.Path+string(filepath.Separator))
	}) {
		return nil
	}
	if err := ledAway(f.Path, entry); err != nil {
		return err
	}
	err = mayWrite(env.Policy, entry)
	if err == nil && f.Expect.IsFile() { // which may have other names
		_, err = fileOf(env, f.Path)
	}
	return err
}

func mayWrite(policy *guard.Policy, path guard.Path) error {
	if v := policy.Judge(guard.Intent{Tool: "Edit",
		Effects: []guard.Effect{guard.Write{Path: path}}}); v.Action == guard.Deny {
		return v
	}
	return nil
}

// fileOf resolves the path of a regular file that may be changed.
func fileOf(env *Env, name string) (guard.Path, error) {
	path, err := env.Policy.ResolveKept(name)
	if err != nil {
		return path, err
	}
	if err := ledAway(name, path); err != nil {
		return path, err
	}
	return path, mayWrite(env.Policy, path)
}

// isRestored reports whether a path is as it was before the changes, which may be since its directory is.
func isRestored(f journal.Step) bool {
	stands := f.Expect
	stands.Stamp = ""
	return stands == f.Restore || f.Expect.IsAbsent() && f.Restore.IsAbsent()
}

// isDone reports whether nothing is to be done at a path: neither for what is there, nor for its hard links.
func isDone(f journal.Step) bool {
	if f.Restore.IsFile() && f.Restore.Mode == 0 { // the file keeps its mode
		f.Expect.Mode = 0
	}
	return isRestored(f) && (f.Restore.IsAbsent() || f.Links == nil && !(f.Exact && isShared(f.Path, []string{f.Path})))
}

// restore restores what was at one path, under its lock. lost is why what is there now is not kept.
func restore(ctx context.Context, env *Env, f journal.Step, lost string) error {
	switch {
	case isRestored(f):
		return nil
	case lost != "" && !f.Forced && f.Gone == "":
		return fmt.Errorf("its present content could not be kept (%s), so the change could not be undone: use force to "+
			"lose it", lost)
	case f.Gone == "" && f.Staged == "" &&
		(f.Expect.IsFile() || f.Expect.IsAbsent()) && (f.Restore.IsFile() || f.Restore.IsAbsent()):
		return restoreFile(ctx, env, f)
	}
	return restoreNode(ctx, env, f)
}

// restoreFile restores a regular file, or removes one.
func restoreFile(ctx context.Context, env *Env, f journal.Step) error {
	path, err := fileOf(env, f.Path)
	if err != nil {
		return err
	}
	own := *env
	own.undo = &undoModes{f.Expect.Mode, f.Restore.Mode}
	t, err := openTarget(ctx, &own, path, !f.Restore.IsAbsent())
	if err != nil {
		return err
	}
	defer t.close()
	if t.present() == f.Restore.Blob && f.Restore.IsFile() && f.Restore.Mode == 0 && f.Links != nil {
		return nil // written in place under another of its names
	}
	if t.present() != f.Expect.Blob {
		return errChanged
	}
	if f.Restore.IsAbsent() {
		return t.remove(&own)
	}
	content := t.content
	if f.Expect.Blob != f.Restore.Blob {
		if content, err = env.Runtime.history.Restored(f); err != nil {
			return err
		}
	}
	others := f.Expect.Mode != f.Restore.Mode && f.Exact && isShared(f.Path, append([]string{f.Path}, f.Links...))
	if f.Expect.Blob != f.Restore.Blob || others { // which keep their mode
		if _, err = t.replace(&own, content); err != nil {
			return err
		}
	}
	if f.Restore.Mode != 0 {
		return t.dir.Chmod(t.base, f.Restore.Mode)
	}
	return nil
}

// present identifies what the file holds now.
func (t *target) present() journal.Blob {
	if t.missing {
		return journal.Blob{}
	}
	return journal.BlobOf(t.content)
}

// remove deletes the file.
func (t *target) remove(env *Env) error {
	if err := atomicfile.Remove(t.dir, t.base, t.options(env)); err != nil {
		return err
	}
	env.ReadState.Forget(t.path.Real())
	return nil
}

// change returns the journal's record of a change of this file.
func (t *target) change(env *Env) journal.Change {
	path := t.path.Real()
	return journal.Change{Principal: env.Principal, Scope: env.Scope, Tool: env.Tool, Path: path, Before: t.known,
		Made: t.made, Links: otherNames(outermost(env.Policy.Roots()), []string{path})[path]}
}
