package baseline

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard/internal/chmodretry"
	"github.com/toolhost/toolhost/guard/internal/gitrepo"
)

// maxText is the size from which a file is not read; real ones have a few KiB.
const maxText = 1 << 20

// errOdd reports that a file is not of a kind that git writes.
var errOdd = errors.New("it is not a regular file")

// A file is the record of a file in the baseline.
type file struct {
	Stamp stamp
	Text  []byte `json:",omitempty"` // the target, if the item is a link
	Odd   bool   `json:",omitempty"` // it could not be read, so it is not judged
	To    string `json:",omitempty"` // where a lead leads
	Racy  bool   `json:",omitempty"`
}

// note returns the record of an item for the baseline.
func (it item) note() file {
	f := file{Stamp: it.stamp, To: it.to, Racy: it.stamp.racy()}
	switch it.kind {
	case hook:
		return f
	case lead:
		f.Text, f.Odd = it.text, it.err != nil
		return f
	}
	text, err := readText(it.path, it.stamp)
	f.Text, f.Odd = text, err != nil
	return f
}

// readText reads a file, or the target of a link that is a lead.
func readText(path string, st stamp) ([]byte, error) {
	switch {
	case st.Mode&fs.ModeSymlink != 0 && isGitName(filepath.Base(path)):
		to, err := os.Readlink(path)
		return []byte(to), err
	case !st.Mode.IsRegular() || st.Size > maxText:
		return nil, errOdd
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe meanwhile
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errOdd
	}
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(text) > maxText {
		err = errOdd
	}
	return text, err
}

// judge removes what makes git run programs in an item and is not in the baseline. It returns notes of what it did.
func (k *Keeper) judge(it item, trees []*tree) (notes []string, err error) {
	was, known := it.tree.record.Files[it.path]
	if known && was.Stamp == it.stamp && was.To == it.to && !was.Racy {
		return nil, nil
	}
	switch it.kind {
	case settings:
		return k.judgeSettings(it, was)
	case common:
		text, err := readText(it.path, it.stamp)
		if known && !was.Odd && bytes.Equal(text, was.Text) || err == nil && belongs(it.path, text) {
			return nil, nil
		}
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			return nil, nil // git refuses it; it may be about to write it
		}
		return it.replace(was, "it led git to settings and hooks elsewhere")
	case lead:
		switch same := known && it.err == nil && bytes.Equal(it.text, was.Text) && it.to == was.To; {
		case same, known && was.Odd && it.err != nil:
			return nil, nil
		case !known && it.stamp.Mode.IsRegular() && it.err == nil && !bytes.HasPrefix(it.text, []byte(leadPrefix)):
			return nil, nil // git refuses it; it may be about to write it
		case it.to != "" && treeOf(trees, it.to) != nil && (!known || treeOf(trees, was.To) != nil):
			return nil, nil // it is checked as well
		}
		return it.replace(was, "it led git to a repository that is not checked")
	default:
		if known && was.Stamp == it.stamp { // racy; a file that commands cannot write is not judged by its content
			return nil, nil
		}
		return it.replace(file{}, "git would run it as a hook")
	}
}

// belongs reports whether a commondir says what git itself writes for a further work tree.
func belongs(path string, text []byte) bool {
	return filepath.Base(filepath.Dir(filepath.Dir(path))) == treesName &&
		strings.TrimRight(string(text), "\r\n") == filepath.Join("..", "..")
}

// replace renames what has the name of an item, and restores what had it before.
func (it item) replace(was file, why string) ([]string, error) {
	moved := ""
	err := it.tree.within(it.path, func(root *os.Root, rel string) (err error) {
		if moved, err = chmodretry.Quarantine(root, rel); err != nil || was.Odd || was.Stamp == (stamp{}) {
			return err
		}
		if was.Stamp.Mode&fs.ModeSymlink != 0 {
			return root.Symlink(string(was.Text), rel)
		}
		return put(root, rel, was.Text, was.Stamp)
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: %s was created or changed by a command, and %s; it could not be moved away: %w",
			it.path, why, err)
	}
	return []string{fmt.Sprintf("%s was created or changed by a command, and %s: it was moved to %s.", it.path, why,
		filepath.Join(it.tree.dir, moved))}, nil
}

// judgeSettings removes settings that execute programs from a file, unless they were there before. A file that cannot
// be parsed is restored.
func (k *Keeper) judgeSettings(it item, was file) ([]string, error) {
	text, err := readText(it.path, it.stamp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && was.Odd:
		return nil, nil // as it was
	case err != nil:
		return it.replace(was, "it is not a regular file any more")
	case bytes.Equal(text, was.Text) && !was.Odd:
		return nil, nil
	}
	notes := it.changedRemotes(text, was)
	if _, gone, err := it.cut(text, was.Text); err != nil {
		return it.replace(was, err.Error())
	} else if len(gone) == 0 {
		return notes, nil
	}
	if k.patient && time.Since(time.Unix(0, it.stamp.Changed)) < configQuiet {
		k.postponed = true
		return notes, nil
	}
	var gone []removed
	err = it.tree.within(it.path, func(root *os.Root, rel string) (err error) {
		gone, err = it.takeOut(root, rel, was)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: a command has put settings that execute programs into %s, and they could not be "+
			"taken out: %w", it.path, err)
	}
	where := k.keep(it.path, gone)
	for _, r := range gone {
		notes = append(notes, fmt.Sprintf("The setting %s was taken out of %s: %s.%s", r.key, it.path, r.why, where))
	}
	return notes, nil
}

// changedRemotes returns notes on the addresses of remotes that a command has changed in a repository that was there
// before. Each address is named once.
func (it item) changedRemotes(text []byte, was file) (notes []string) {
	before, err := gitrepo.Parse(was.Text)
	now, err2 := gitrepo.Parse(text)
	if was.Stamp == (stamp{}) || err != nil || err2 != nil {
		return nil
	}
	for _, s := range now {
		key := it.path + "\x00" + s.Key + "\x00" + s.Value
		name, isRemote := strings.CutPrefix(s.Key, "remote.")
		name, isURL := strings.CutSuffix(name, ".url")
		if !isURL {
			name, isURL = strings.CutSuffix(name, ".pushurl")
		}
		same := func(b gitrepo.Setting) bool { return b.Key == s.Key && b.Value == s.Value }
		if !isRemote || !isURL || it.tree.remotes[key] || slices.ContainsFunc(before, same) {
			continue
		}
		if it.tree.remotes == nil {
			it.tree.remotes = map[string]bool{}
		}
		it.tree.remotes[key] = true
		address := s.Value
		if u, err := url.Parse(address); err == nil {
			address = u.Redacted()
		}
		notes = append(notes, fmt.Sprintf("A command has changed the remote %q in %s: git fetches from or pushes to %q.",
			name, it.path, address))
	}
	return notes
}

// removed is a setting that was removed.
type removed struct{ key, text, why string }

// cut returns a configuration without the settings that execute something and are not in the one before.
func (it item) cut(text, before []byte) (kept []byte, gone []removed, err error) {
	list, err := gitrepo.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	known := map[[2]string]bool{}
	if earlier, err := gitrepo.Parse(before); err == nil { // else git could not read the earlier one either
		for _, s := range earlier {
			known[[2]string{s.Key, s.Value}] = true
		}
	}
	last := 0
	for _, s := range list {
		if known[[2]string{s.Key, s.Value}] {
			continue
		}
		why := executes(s)
		if s.Key == "core.worktree" && !it.holdsTree(s.Value) {
			why = "git would write files elsewhere"
		}
		if why != "" {
			gone = append(gone, removed{s.Key, string(text[s.Start:s.End]), why})
			kept = append(kept, text[last:s.Start]...)
			last = s.End
		}
	}
	return append(kept, text[last:]...), gone, nil
}

// holdsTree reports whether the work tree that settings name lies in the writable directory, as that of a submodule
// does. A repository that is called .git needs no such setting.
func (it item) holdsTree(name string) bool {
	dir := filepath.Dir(it.path)
	if filepath.IsAbs(name) || dir == it.tree.dir || isGitName(filepath.Base(dir)) {
		return false
	}
	rel, err := filepath.Rel(it.tree.dir, filepath.Join(dir, name))
	return err == nil && filepath.IsLocal(rel)
}

// within calls f with the directory of the tree opened, so that no link leads out of it, and once more if a command has
// removed the right to read the directories above path.
func (t *tree) within(path string, f func(root *os.Root, rel string) error) error {
	err := t.inRoot(path, f)
	if errors.Is(err, fs.ErrPermission) && t.forced {
		_, _ = t.openAbove(path) // f says what is still wrong
		err = t.inRoot(path, f)
	}
	return err
}

func (t *tree) inRoot(path string, f func(root *os.Root, rel string) error) error {
	rel, err := filepath.Rel(t.dir, path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return f(root, rel)
}

// Limits of waiting for a configuration that git has locked: it holds the lock for less than a millisecond. A command
// could hold it forever.
const (
	lockTries = 20
	lockPause = time.Millisecond
)

// errLocked reports that git writes a configuration, or has written it since it was read.
var errLocked = errors.New("git writes it")

// takeOut removes settings from a file, and returns them.
func (it item) takeOut(root *os.Root, rel string, was file) (gone []removed, err error) {
	for try := 0; ; try++ {
		st, err := statOf(it.path)
		if err != nil {
			return nil, err
		}
		text, err := readText(it.path, st)
		if err != nil {
			return nil, err
		}
		kept, gone, err := it.cut(text, was.Text)
		if err != nil || len(gone) == 0 {
			return nil, err
		}
		err = putBy(root, rel, kept, it.stamp, func(next string) error {
			if try == lockTries {
				return root.Rename(next, rel) // the lock is not that of git
			}
			return it.renameLocked(root, next, rel, st)
		})
		if !errors.Is(err, errLocked) {
			return gone, err
		}
		time.Sleep(lockPause)
	}
}

// renameLocked renames a file to that of a configuration, which must be as st says. Like git it gives the new file the
// name of the lock first. git config fails where it finds a lock, so nothing else is done meanwhile.
func (it item) renameLocked(root *os.Root, next, rel string, st stamp) error {
	lock := rel + ".lock"
	switch err := root.Link(next, lock); {
	case errors.Is(err, fs.ErrExist):
		return errLocked
	case err != nil: // a file system without hard links
		return root.Rename(next, rel)
	}
	if now, err := statOf(it.path); err != nil || now != st {
		return errors.Join(errLocked, root.Remove(lock))
	}
	if err := root.Rename(lock, rel); err != nil {
		return errors.Join(err, root.Remove(lock))
	}
	return root.Remove(next)
}

// put replaces whatever has the name of a file with a file of the same mode.
func put(root *os.Root, rel string, text []byte, like stamp) error {
	return putBy(root, rel, text, like, func(next string) error { return root.Rename(next, rel) })
}

// putBy is put with a function that gives the new file its name.
func putBy(root *os.Root, rel string, text []byte, like stamp, name func(next string) error) error {
	return chmodretry.Do(root, filepath.Dir(rel), func() error {
		next := rel + "." + rand.Text() // a name that a task cannot put a link at
		f, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, like.Mode.Perm())
		if err != nil {
			return err
		}
		_ = f.Chown(int(like.User), int(like.Group)) // without the right to it, both are ours already
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err == nil {
			err = name(next)
		}
		if err != nil {
			return errors.Join(err, root.Remove(next))
		}
		return nil
	})
}
