package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// ErrInUse reports that a worktree is still used.
var ErrInUse = errors.New("the worktree is in use")

// A Report describes what remains of a worktree.
type Report struct {
	Branch string   // "" where nothing is left: the worktree was removed
	Commit string   // its tip
	Tree   string   // identifies the files in the worktree
	Others []string // further branches, with commits that are not on Branch
	Notes  []string // what could not be brought home; it is in the worktree
	// Ignored are the files that git ignores, which are nowhere else. They are listed only for a [Try].
	Ignored []string
}

// End commits the changes in the worktree, and imports the commits on its branch. A worktree without changes is
// removed with its branch. It may be called again.
func (w *Worktree) End(ctx context.Context) (report Report, err error) {
	if err := unused(w); err != nil {
		return report, err
	}
	room := Room{filepath.Dir(w.dir)}
	err = room.locked(ctx, w.Meta, func() (err error) {
		if !w.Ready { // nothing has worked in it
			return w.remove(ctx)
		}
		if report, err = w.settle(ctx); err != nil {
			return err
		}
		if w.Owner == "" && report.Branch == "" && report.Tree == w.Begun &&
			len(report.Notes)+len(report.Ignored) == 0 {
			return w.remove(ctx)
		}
		step("kept")
		w.Branch, w.Commit, w.Left = report.Branch, report.Commit, report
		if w.Kept.IsZero() {
			w.Kept = time.Now()
		}
		return w.save()
	})
	if err != nil {
		err = fmt.Errorf("the worktree %s could not be ended, and is left as it is: %w", w.Tree(), err)
	}
	return report, err
}

func unused(w *Worktree) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users > 0 {
		return fmt.Errorf("%s: %w", w.Tree(), ErrInUse)
	}
	return nil
}

// settle commits the files of the worktree, and moves the branch to the commit.
func (w *Worktree) settle(ctx context.Context) (r Report, err error) {
	step("look")
	if w.plain() {
		r.Tree, err = w.plainTree(ctx)
		return r, err
	}
	if r.Tree, err = w.store.look(ctx, w.Tree(), index, w.Base, "", true, nil); err != nil {
		return r, err
	}
	if r.Ignored, err = ignored(ctx, w); err != nil {
		return r, err
	}
	head, moved := w.tips()
	head, moved = w.home(ctx, head, moved, &r)
	parent := last(ctx, w, head)
	if w.Commit == "" && len(moved) == 0 && (head == "" || head == w.Base) && r.Tree == w.Begun {
		return r, nil
	}
	if r.Commit, err = commitLeft(ctx, w, r.Tree, parent); err != nil {
		return r, err
	}
	step("update")
	if r.Branch, err = w.move(ctx, w.BranchName(), r.Commit); err != nil {
		return r, err
	}
	for _, t := range moved {
		name := w.BranchName() + "+" + strings.TrimPrefix(strings.TrimPrefix(t.ref, "refs/"), "heads/")
		if _, err := w.move(ctx, name, t.commit); err != nil {
			r.Notes = append(r.Notes, err.Error())
			continue
		}
		r.Others = append(r.Others, name)
	}
	slices.Sort(r.Others)
	return r, nil
}

// ignored lists the files that git ignores. Only settings files of these were copied into the worktree, and git is
// configured to ignore them.
func ignored(ctx context.Context, w *Worktree) ([]string, error) {
	if !strings.HasPrefix(w.Name, string(Try)+"-") {
		return nil, nil
	}
	out, err := w.store.on(w.Tree(), index).git(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
	return slices.DeleteFunc(fields(out), func(name string) bool { return slices.Contains(settingsFiles, name) }), err
}

// last returns the parent for a commit of the worktree's files. head is the worktree's HEAD.
func last(ctx context.Context, w *Worktree, head string) string {
	r := w.store.run(index)
	if head == "" {
		head = w.Base
	}
	if w.Commit != "" { // it has ended before
		if _, err := r.git(ctx, "merge-base", "--is-ancestor", head, w.Commit); err == nil {
			return w.Commit
		}
	}
	if head == w.Base {
		if held, err := r.text(ctx, "rev-parse", "-q", "--verify", w.ref()); err == nil {
			return held // what was brought along is a commit of its own
		}
	}
	return head
}

// home imports the child's commits into the repository, and returns those that are valid.
func (w *Worktree) home(ctx context.Context, head string, moved []tip, r *Report) (string, []tip) {
	commits := make([]string, 0, 1+len(moved))
	if head != "" && head != w.Base {
		commits = append(commits, head)
	}
	for _, t := range moved {
		commits = append(commits, t.commit)
	}
	if len(commits) == 0 {
		return head, nil
	}
	if err := w.bringHome(ctx, commits); err != nil {
		r.Notes = append(r.Notes, err.Error())
		return "", nil
	}
	return head, moved
}

// commitLeft returns a commit of the files of the worktree: the last one, if it has them all.
func commitLeft(ctx context.Context, w *Worktree, tree, last string) (string, error) {
	if committed, err := w.store.run(index).text(ctx, "rev-parse", last+"^{tree}"); err != nil || committed == tree {
		return last, err
	}
	step("commit")
	return w.store.commit(ctx, tree, "toolhost: unfinished", last)
}

// move moves a branch of the user's repository to a commit. If a person has moved it since, move uses another name.
func (w *Worktree) move(ctx context.Context, branch, commit string) (string, error) {
	r := w.store.run(index)
	for n := 1; n <= maxRefs; n++ {
		name := branch
		if n > 1 {
			name = fmt.Sprintf("%s.%d", branch, n)
		}
		old, _ := r.text(ctx, "rev-parse", "-q", "--verify", "refs/heads/"+name) // "" if there is none
		if old != "" && old != commit {
			if _, err := r.git(ctx, "merge-base", "--is-ancestor", old, commit); err != nil {
				continue
			}
		}
		_, err := r.git(ctx, "update-ref", "-m", "toolhost: end", "refs/heads/"+name, commit, old)
		return name, err
	}
	return "", fmt.Errorf("there is no free name for the branch %s", branch)
}

// Remove removes a worktree that has ended. Its branch is not changed.
func (w *Worktree) Remove(ctx context.Context) error {
	if err := unused(w); err != nil {
		return err
	}
	return (Room{filepath.Dir(w.dir)}).locked(ctx, w.Meta, func() error { return w.remove(ctx) })
}

// Discard removes a worktree and its branches with all changes.
func (w *Worktree) Discard(ctx context.Context) error {
	if err := unused(w); err != nil {
		return err
	}
	return (Room{filepath.Dir(w.dir)}).locked(ctx, w.Meta, func() error {
		var errs []error
		for _, name := range append(w.Left.Others, w.Branch) {
			if name != "" {
				_, err := w.store.run(index).git(ctx, "update-ref", "-d", "refs/heads/"+name)
				errs = append(errs, err)
			}
		}
		return errors.Join(append(errs, w.remove(ctx))...)
	})
}

// remove removes the directory, the branch if it has not moved, and the ref that holds the uncommitted changes.
func (w *Worktree) remove(ctx context.Context) error {
	var errs []error
	if _, err := os.Lstat(w.store.dir); w.Common != "" && w.store.dir != "" && err == nil {
		step("unref")
		r := w.store.run(index)
		if at, err := r.text(ctx, "rev-parse", "-q", "--verify", "refs/heads/"+w.BranchName()); err == nil && at == w.Base {
			_, err = r.git(ctx, "update-ref", "-d", "refs/heads/"+w.BranchName(), w.Base)
			errs = append(errs, err)
		}
		if held, err := r.text(ctx, "rev-parse", "-q", "--verify", w.ref()); err == nil {
			_, err = r.git(ctx, "update-ref", "-d", w.ref(), held)
			errs = append(errs, err)
		}
	}
	if w.dir != "" {
		step("aside")
		aside := filepath.Join(filepath.Dir(w.dir), unfinished+strings.TrimPrefix(filepath.Base(w.dir), unfinished))
		if err := os.Rename(w.dir, aside); err == nil { // a half of it must not be taken for a worktree
			w.dir = aside
		}
		step("remove")
		errs = append(errs, statedir.RemoveTree(w.dir))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
		w.lock = nil
	}
	return errors.Join(errs...)
}

// Close releases a worktree that is kept.
func (w *Worktree) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock == nil {
		return nil
	}
	err := w.lock.Close()
	w.lock = nil
	return err
}

// Patch writes what was changed in a worktree that has ended, as a patch.
func (w *Worktree) Patch(ctx context.Context, to io.Writer) error {
	if w.plain() {
		return w.plainPatch(ctx, to)
	}
	out, err := w.store.run(index).git(ctx, "diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color",
		"-p", "--stat", w.Begun, w.Left.Tree)
	if err != nil {
		return err
	}
	_, err = to.Write(out)
	return err
}

func limited(r io.Reader) io.Reader { return io.LimitReader(r, maxRefFile) }

// Changed reports whether something was left when the worktree ended.
func (w *Worktree) Changed() bool { return !w.Kept.IsZero() }

// Leave is [Worktree.End] once the conversation that works in the worktree has left it.
func (w *Worktree) Leave(ctx context.Context) (Report, error) {
	owner := w.Owner
	w.Owner = ""
	report, err := w.End(ctx)
	if err != nil {
		w.Owner = owner
	}
	return report, err
}
