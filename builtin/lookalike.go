package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
)

// This file finds files whose names look like a given name: with another kind of space, as in screenshots of macOS,
// with accents as separate characters, or with invisible characters. A model types a name as it sees it.

// lookedNames is how many names of a directory are compared.
const lookedNames = 100_000

// A named is a path that a call has named.
type named struct {
	guard.Path
	// note says that the file has another name than the given one; "" if it has the same name.
	note string
}

// findNamed resolves the name of a file. If there is no such file, it returns the only file that the caller may read
// and whose name looks the same.
func findNamed(policy *guard.Policy, name string) (named, error) {
	path, err := policy.Resolve(name)
	if err != nil || !isMissing(path) {
		return named{Path: path}, err
	}
	if plain := text.Unescaped(name); plain != name {
		if meant, err := policy.Resolve(plain); err == nil && mayRead(policy, meant) {
			return named{meant, alikeNote(meant)}, nil
		}
	}
	for _, form := range []func(string) string{text.Indistinct, text.LookAlike} {
		like, rest := lookAlikes(policy, path, form)
		if len(like) == 1 && rest == "" {
			return named{like[0], alikeNote(like[0])}, nil
		}
	}
	return named{Path: path}, nil
}

// findNew resolves the name of a file to write. If the file, or one of its directories, does not exist, it returns
// the existing path that looks the same: a person could not tell the two apart. It refuses if there are several.
func findNew(policy *guard.Policy, name string) (named, error) {
	path, err := policy.Resolve(name)
	if err != nil || !isMissing(path) {
		return named{Path: path}, err
	}
	like, rest := lookAlikes(policy, path, text.Indistinct)
	switch len(like) {
	case 0:
		return named{Path: path}, nil
	case 1:
		whole, err := policy.Resolve(filepath.Join(like[0].String(), rest))
		return named{whole, alikeNote(like[0])}, err
	}
	return named{}, fmt.Errorf("%s was not written: its name looks the same as each of these. Pass the escapes that are "+
		"shown for the one you mean, or choose another name:\n%s",
		path, strings.Join(escapedNames(like), "\n"))
}

// Meant returns the path of the file that a tool would use for a name. It may differ from [guard.Policy.Resolve] in
// characters that look the same. creates means that the call creates the file.
func Meant(policy *guard.Policy, tool, name string, creates bool) (guard.Path, error) {
	find := findNamed
	switch tool {
	case "Read", "Glob", "Grep", "NotebookEdit":
	case "Edit", "Write":
		if creates || tool == "Write" {
			find = findNew
		}
	default:
		return policy.Resolve(name)
	}
	found, err := find(policy, name)
	return found.Path, err
}

// say adds the note to a result.
func (n named) say(r Result, err error) (Result, error) {
	switch {
	case n.note == "":
	case err != nil:
		err = fmt.Errorf("%w\n[%s]", err, n.note)
	case r.Text == "":
		r.Text = "[" + n.note + "]\n"
	default:
		r.Text = strings.TrimSuffix(r.Text, "\n") + "\n[" + n.note + "]\n"
	}
	return r, err
}

func isMissing(path guard.Path) bool {
	if path.Regular() {
		return false
	}
	_, err := path.Stat()
	return errors.Is(err, fs.ErrNotExist)
}

// lookAlikes returns the existing entries that look like the first missing element of a path, and those that look
// like the elements after it. form maps names that look the same to one name. rest is the part of the path that is
// missing below.
func lookAlikes(policy *guard.Policy, path guard.Path, form func(string) string) (like []guard.Path, rest string) {
	if _, err := os.Lstat(path.Real()); err == nil && !path.Own() {
		return nil, "" // a link to a missing file
	}
	dir, elements := filepath.Dir(path.Real()), []string{filepath.Base(path.Real())}
	at, err := policy.Resolve(dir)
	for ; err == nil && isMissing(at) && dir != filepath.Dir(dir); at, err = policy.Resolve(dir) {
		elements = append([]string{filepath.Base(dir)}, elements...)
		dir = filepath.Dir(dir)
	}
	if err != nil {
		return nil, ""
	}
	for i, element := range elements {
		rest = filepath.Join(elements[i:]...)
		next := namesLike(policy, at, element, form)
		if len(next) == 0 {
			return like, rest
		}
		if like = next; len(next) > 1 {
			return like, ""
		}
		at = next[0]
	}
	return like, ""
}

// namesLike returns the entries of a directory that the caller may read and whose names have the same form as name.
// If there is an entry of exactly that name, it returns only this.
func namesLike(policy *guard.Policy, dir guard.Path, name string, form func(string) string) (like []guard.Path) {
	f, err := dir.Open()
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.Readdirnames(lookedNames)
	want := form(name)
	for _, entry := range entries {
		if entry != name && (!utf8.ValidString(entry) || form(entry) != want) {
			continue
		}
		path, err := policy.Resolve(filepath.Join(dir.Real(), entry))
		if err != nil || !mayRead(policy, path) {
			continue
		}
		if entry == name {
			return []guard.Path{path}
		}
		like = append(like, path)
	}
	return like
}

// mayRead reports whether the caller may read a file or directory without asking a person.
func mayRead(policy *guard.Policy, path guard.Path) bool {
	info, err := path.Stat()
	return err == nil && !policy.Hidden(path.Real(), info.IsDir()) &&
		readVerdict(policy, path).Action == guard.Allow
}

// readVerdict returns what the rules say of a Read of a file.
func readVerdict(policy *guard.Policy, path guard.Path) guard.Verdict {
	return policy.Judge(guard.Intent{Tool: "Read", Effects: []guard.Effect{guard.Read{Path: path}}})
}

func alikeNote(path guard.Path) string {
	return fmt.Sprintf("This is \"%s\", whose name looks like the one that was asked for.", text.Escaped(path.String()))
}

// escapedNames returns paths with invisible characters escaped.
func escapedNames(paths []guard.Path) (names []string) {
	for _, path := range paths {
		names = append(names, text.Escaped(path.String()))
	}
	return names
}
