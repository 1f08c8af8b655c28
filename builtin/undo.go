package builtin

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/guard"
)

// What the owner of the machine sees of the history, and how changes are undone.

type (
	// A Change is one change of one file.
	Change = history.Change
	// A ChangeFilter says which changes to list.
	ChangeFilter = history.Filter
	// An UndoSelection says which changes to undo.
	UndoSelection = history.Selection
)

// A Holding is what the history holds of one principal.
type Holding = history.Holding

// Holdings returns what the history holds, the most first.
func (b *Runtime) Holdings() ([]Holding, error) { return b.history.Holdings() }

// AnyPrincipal stands for all principals in a filter or selection. It is the owner's alone.
const AnyPrincipal = history.AllPrincipals

// Changes lists changes, newest first, leaving out those of files that a rule now denies reading.
func (b *Runtime) Changes(policy *guard.Policy, f ChangeFilter) ([]Change, error) {
	all, err := b.history.List(f)
	if err != nil {
		return nil, err
	}
	var shown []Change
	for _, c := range all {
		if readable(policy, c.Path) == nil {
			shown = append(shown, c)
		}
	}
	return shown, nil
}

// ShowChange returns a change and its diff.
func (b *Runtime) ShowChange(policy *guard.Policy, principal, id string) (Change, string, error) {
	c, diff, err := b.history.Show(principal, id)
	if err == nil {
		err = readable(policy, c.Path)
	}
	if err != nil {
		return Change{}, "", err
	}
	return c, diff, nil
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
	p, err := policy.Resolve(path)
	if err != nil {
		return err
	}
	if v := policy.Judge(guard.Intent{Tool: "Read", Effects: []guard.Effect{guard.Read{Path: p}}}); v.Action == guard.Deny {
		return v
	}
	return nil
}

// An Undone is what became of one file of an undo.
type Undone struct {
	Path    string
	Removed bool  // the file did not exist before the changes
	Err     error // why the file was left as it is
	Forced  bool  // UndoSelection.Force would restore it all the same
}

// Undo restores what files held before changes. Files that have changed since are left alone unless the
// selection forces it. The undo is journalled, and can be undone.
func (b *Runtime) Undo(ctx context.Context, env *Env, sel UndoSelection) ([]Undone, error) {
	plan, err := b.history.PlanUndo(sel)
	if err != nil {
		return nil, err
	}
	var all []Undone
	for _, f := range plan.Files {
		u := Undone{Path: f.Path, Removed: f.Restore.IsZero()}
		if !sel.DryRun {
			u.Err = b.restore(ctx, env, f)
		}
		all = append(all, u)
	}
	for _, r := range plan.Refused {
		all = append(all, Undone{Path: r.Path, Err: errors.New(r.Why), Forced: r.Forced})
	}
	return all, nil
}

// restore gives one file back what it held, under its lock and by the rules. What a rule wants asked needs no
// asking: it is the owner who undoes.
func (b *Runtime) restore(ctx context.Context, env *Env, f history.FileUndo) error {
	path, err := env.Policy.Resolve(f.Path)
	if err != nil {
		return err
	}
	if path.Real() != f.Path {
		// The journal holds real paths, so an agent has led this one elsewhere: what was written here is not for there.
		return fmt.Errorf("a directory of its path has become a link, so that it is %s now: take the link away, and undo again", path.Real())
	}
	if v := env.Policy.Judge(guard.Intent{Tool: "Edit", Effects: []guard.Effect{guard.Write{Path: path}}}); v.Action == guard.Deny {
		return v
	}
	t, err := openTarget(ctx, env, path, !f.Restore.IsZero())
	if err != nil {
		return err
	}
	defer t.close()
	if t.present() != f.Expect {
		return errors.New("the file has changed while it was to be restored: try again")
	}
	own := *env
	own.Principal, own.Tool, own.undoOf = f.Principal, "undo", f.Changes
	if f.Restore.IsZero() {
		return t.remove(&own)
	}
	content, err := b.history.Restored(f)
	if err != nil {
		return err
	}
	_, err = t.replace(&own, content)
	return err
}

// present stands for what the file holds now.
func (t *target) present() history.Blob {
	if t.missing {
		return history.Blob{}
	}
	return history.BlobOf(t.content)
}

// remove deletes the file, journalled as a change.
func (t *target) remove(env *Env) error {
	change := t.change(env)
	change.Deleted = true
	var before []byte
	if !t.missing {
		before = append([]byte{}, t.content...)
	}
	entry, err := env.Runtime.history.Begin(change, before, nil)
	if err != nil {
		return fmt.Errorf("the undo could not be journalled: %w", err)
	}
	if err := atomicfile.Remove(t.dir, t.base, t.options(env)); err != nil {
		return errors.Join(err, entry.Failed())
	}
	env.ReadState.Forget(t.path.Real())
	return entry.Done()
}

// change is what the journal knows of a change of this file.
func (t *target) change(env *Env) history.Change {
	return history.Change{
		Principal: env.Principal, Scope: env.Scope, Tool: env.Tool, Path: t.path.Real(), UndoOf: env.undoOf, Before: t.known,
	}
}
