package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// resumeWait bounds how long [Room.Resume] waits for a host that ends worktrees of killed hosts.
const resumeWait = 15 * time.Second

// Find returns the name of a worktree that satisfies a condition, "" if there is none.
func (r Room) Find(holds func(Meta) bool) string {
	for _, name := range r.names() {
		var m Meta
		if statedir.Load(filepath.Join(r.dir, name, metaName), maxMeta, &m) == nil && m.Ready && holds(m) {
			return name
		}
	}
	return ""
}

// Resume opens a worktree to work in it again, for the conversation owner. Its changes are committed first, and the
// child's branch and index are moved to that commit: later commits of the child follow it.
func (r Room) Resume(ctx context.Context, name, owner string) (*Worktree, error) {
	w, err := r.open(ctx, name, resumeWait)
	if err == nil && w == nil {
		err = errors.New("it is gone, or another host works in it")
	}
	if err != nil {
		return nil, fmt.Errorf("the worktree %s cannot be used again: %w", name, err)
	}
	w.Owner = owner
	if _, err = w.End(ctx); err == nil && w.lock == nil {
		err = errors.New("nothing was left in it, and it was removed")
	}
	if err == nil {
		err = r.locked(ctx, w.Meta, func() error { return again(w) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the worktree %s cannot be used again: %w", name, err), w.Close())
	}
	return w, nil
}

// again moves the child to the commit of the files of the worktree, and allows a later host to end the worktree.
func again(w *Worktree) error {
	if w.Commit != "" {
		step("child again")
		_ = moveChild(w) // a child can have made that impossible: what it commits goes to a branch of its own then
	}
	w.Kept = time.Time{}
	step("used again")
	return w.save()
}

// moveChild moves the child's HEAD, branch and index to the commit of the worktree. All is written below the
// worktree, whatever links the child has made.
func moveChild(w *Worktree) error {
	tree, err := os.OpenRoot(w.Tree())
	if err != nil {
		return err
	}
	defer tree.Close()
	git, err := tree.OpenRoot(".git")
	if err != nil {
		return err
	}
	defer git.Close()
	known, err := os.ReadFile(filepath.Join(w.store.dir, index))
	if err != nil {
		return err
	}
	ref := "refs/heads/" + w.BranchName()
	if err := git.MkdirAll(path.Dir(ref), 0o700); err != nil {
		return err
	}
	for _, file := range []struct{ name, text string }{{ref, w.Commit + "\n"}, {"HEAD", "ref: " + ref + "\n"},
		{"index", string(known)}} {
		draft := path.Join(path.Dir(file.name), "toolhost-"+strings.ToLower(rand.Text()[:12]))
		err := git.WriteFile(draft, []byte(file.text), 0o600)
		if err == nil {
			err = git.Rename(draft, file.name)
		}
		if err != nil {
			_ = git.Remove(draft)
			return err
		}
	}
	return nil
}

// Work returns a short text on the changes in a worktree that has not ended; "" if there are none.
func (w *Worktree) Work(ctx context.Context) (string, error) {
	tree, err := w.store.look(ctx, w.Tree(), index, w.Base, "", true, nil)
	if err != nil {
		return "", err
	}
	head, moved := w.tips()
	if w.Commit == "" && tree == w.Begun && (head == "" || head == w.Base) && len(moved) == 0 {
		return "", nil
	}
	stat, err := w.store.run(index).text(ctx, "diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--shortstat",
		w.Begun, tree)
	if stat = strings.TrimSpace(stat); stat == "" {
		stat = "commits that change no file"
	}
	return stat, err
}

// Roots maps roots of a workspace to the worktree: those in the work tree, and the whole worktree for a root that
// contains the work tree.
func (w *Worktree) Roots(roots []string) (out []string) {
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		place := ""
		if below, err := filepath.Rel(w.Source, root); err == nil && filepath.IsLocal(below) {
			place = filepath.Join(w.Tree(), below)
		} else if above, err := filepath.Rel(root, w.Source); err == nil && filepath.IsLocal(above) {
			place = w.Tree()
		}
		if place != "" && isPlain(place) && !slices.Contains(out, place) { // a link of the commit could lead anywhere
			out = append(out, place)
		}
	}
	if len(out) == 0 {
		out = []string{w.Tree()}
	}
	return out
}

// Summary returns a text on where the changes of a worktree that has ended are; "" if there are none.
func (w *Worktree) Summary() string {
	if !w.Changed() || w.Left.Branch == "" {
		return strings.Join(w.Left.Notes, "\n")
	}
	lines := []string{"worktree " + w.Tree() + " (kept for 30 days)", "branch " +
		strings.Join(append([]string{w.Left.Branch}, w.Left.Others...), ", "),
		fmt.Sprintf("git diff %.12s...%s", w.Base, w.Left.Branch), "git merge " + w.Left.Branch}
	return strings.Join(append(lines, w.Left.Notes...), "\n")
}
