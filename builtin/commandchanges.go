package builtin

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/checkpoint"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/guard"
)

// commandChanges are the changes of a command.
type commandChanges struct {
	count, ignored int
	names          []string // of at most maxChangedNames files
	notes          []string // what was not covered
}

// pathChange is a change as the history records it.
func pathChange(root string, report *checkpoint.Report, c checkpoint.Change) journal.PathChange {
	var links []string
	for _, name := range c.Links {
		links = append(links, filepath.Join(root, name))
	}
	p := journal.PathChange{
		Links: links, Path: filepath.Join(root, c.Path), Before: node(c.Before), After: node(c.After), Lost: c.Why,
		Content: func() ([]byte, error) { return report.Content(c) },
	}
	if c.After.Kind == checkpoint.Link {
		p.Now = [][]byte{[]byte(c.After.Link)}
	}
	return p
}

func node(s checkpoint.State) journal.Node {
	n := journal.Node{Mode: s.Mode, Stamp: s.Stamp}
	switch s.Kind {
	case checkpoint.Absent:
		return journal.Node{}
	case checkpoint.File:
		if n.Mode == 0 {
			n.Mode = journal.NoMode
		}
		if s.Sum != (checkpoint.Sum{}) {
			n.Blob = journal.BlobOfHash(s.Sum, s.Size)
		}
	case checkpoint.Link:
		n.Mode, n.Blob = os.ModeSymlink, journal.BlobOf([]byte(s.Link))
	case checkpoint.Dir:
		n.Mode |= os.ModeDir
	default:
		n.Mode |= os.ModeIrregular
	}
	return n
}

// add counts a change. Directories count if nothing in them changed.
func (a *commandChanges) add(policy *guard.Policy, root string, c checkpoint.Change) {
	if a.count++; len(a.names) == maxChangedNames {
		return
	}
	name := c.Path
	if first := policy.Roots()[0]; root != first {
		name = filepath.Join(root, c.Path)
	}
	if c.IsDir() {
		name += "/"
	}
	a.names = append(a.names, name)
}

// structured returns the changes for programs, or nil.
func (a commandChanges) structured() *changedFiles {
	if a.count+a.ignored == 0 {
		return nil
	}
	c := &changedFiles{Files: a.count, Names: append([]string{}, a.names...), Ignored: a.ignored}
	if slices.ContainsFunc(a.names, func(name string) bool { return !utf8.ValidString(name) }) {
		for _, name := range a.names {
			c.RawNames = append(c.RawNames, base64.StdEncoding.EncodeToString([]byte(name)))
		}
	}
	return c
}

// lines returns the line of a result that reports the changes, or nil if there is nothing to report.
func (a commandChanges) lines() []string {
	var parts []string
	if a.count > 0 {
		names := make([]string, len(a.names))
		for i, name := range a.names {
			names[i] = quoteOdd(name)
		}
		part := fmt.Sprintf("changed %s: %s", count(a.count, "file"), strings.Join(names, ", "))
		if more := a.count - len(names); more > 0 {
			part += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, part)
	}
	if a.ignored > 0 {
		parts = append(parts, fmt.Sprintf("%s changed, not kept", count(a.ignored, "ignored file")))
	}
	parts = append(parts, a.notes...)
	if len(parts) == 0 {
		return nil
	}
	return []string{"[" + strings.Join(parts, "; ") + "]"}
}

// quoteOdd quotes a name that could be misread.
func quoteOdd(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@=~", r)
	}
	if strings.ContainsFunc(name, odd) || strings.ContainsRune(name, unicode.ReplacementChar) {
		return strconv.Quote(name)
	}
	return name
}
