package builtin

import (
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// previewLines is how many lines of a diff a question about a change has.
const previewLines = 2000

// previewWrite returns the diff of a Write for the person who is asked about it, or "" if there is nothing to compare
// with.
func previewWrite(env *Env, path guard.Path, content string) string {
	before := standingText(env.Policy, path)
	if before == nil {
		return ""
	}
	diff, _ := text.Diff(path.String(), before.String(), content, contextLines, previewLines)
	return diff
}

// previewEdit returns the diff of an Edit, or "" if the edit would fail or its diff is too long.
func previewEdit(env *Env, path guard.Path, in editInput) string {
	before := standingText(env.Policy, path)
	if before == nil || in.OldString == "" {
		return ""
	}
	match, err := text.Find(before, in.OldString, in.NewString, in.ReplaceAll)
	if err != nil {
		return ""
	}
	diff, complete := match.Diff(path.String(), before, contextLines, previewLines)
	if !complete {
		return "" // both texts are shown whole
	}
	return diff
}

// standingText reads a file that a change would replace. It returns nil for one that is missing, is not text, or may
// not be read without a question.
func standingText(policy *guard.Policy, path guard.Path) *text.Text {
	if readVerdict(policy, path).Action != guard.Allow {
		return nil
	}
	dir, base, err := path.OpenParent()
	if err != nil {
		return nil
	}
	t := &target{path: path, dir: dir, base: base, unlock: func() {}, undoMkdir: func() {}}
	defer t.close()
	if t.load() != nil || t.missing {
		return nil
	}
	return t.text(readstate.Status{})
}
