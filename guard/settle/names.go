package settle

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A Class says what becomes of a name that a command has changed.
type Class uint8

// The classes of names.
const (
	Free   Class = iota // not protected
	Prompt              // an agent reads it as text: it stays, and is named
	Held                // it is held until a person answers
)

// A Name is a row of the table of protected names.
type Name struct {
	Pattern string // slashed elements of a path, at any depth; the last ones of a file name may have wildcards
	Class   Class
	Agent   bool   // held below directories of dependencies too
	Control bool   // this host obeys it: it is held in a mode without questions too
	Reason  string // which program obeys it
	Source  string // where that is said

	elements []string // of Pattern, folded
}

//go:embed names.txt
var namesText string

// table returns the rows, and those by their first element: literal ones in a map, the others in a list.
var table = sync.OnceValue(func() (t struct {
	rows  []Name
	first map[string][]*Name
	wild  []*Name
}) {
	for line := range strings.Lines(namesText) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) != 4 || strings.HasPrefix(line, "#") {
			continue
		}
		row := Name{Pattern: fields[1], Reason: fields[2], Source: fields[3],
			elements: strings.Split(pathname.Folded.Of(fields[1]), "/")}
		switch fields[0] {
		case "control":
			row.Class, row.Agent, row.Control = Held, true, true
		case "agent":
			row.Class, row.Agent = Held, true
		case "held":
			row.Class = Held
		case "prompt":
			row.Class = Prompt
		}
		t.rows = append(t.rows, row)
	}
	t.first = map[string][]*Name{}
	for i := range t.rows {
		row := &t.rows[i]
		if first := row.elements[0]; pathname.HasMeta(first) {
			t.wild = append(t.wild, row)
		} else {
			t.first[first] = append(t.first[first], row)
		}
	}
	return t
})

// Names returns the table of protected names.
func Names() []Name { return table().rows }

// dependencies are directories whose content a package manager brings: there only what configures an agent is
// protected.
var dependencies = map[string]bool{"node_modules": true, "vendor": true, ".venv": true, "venv": true, "target": true}

// IsMark reports whether a protected name may begin with an element of a path.
func IsMark(element string) bool {
	return strings.HasPrefix(element, copyPrefix) || len(startingWith(pathname.Folded.Of(element))) > 0
}

// IsCopy reports whether a name is that of a copy of a held file. Such a copy exists for a moment when a file is put
// back from another file system.
func IsCopy(name string) bool {
	slot, ok := strings.CutPrefix(name, copyPrefix)
	return ok && slotOrCopy(slot) == slotLetter
}

// startingWith returns the rows whose first element matches a folded one.
func startingWith(element string) []*Name {
	t := table()
	rows := t.first[element]
	for _, row := range t.wild {
		if pathname.Element(row.elements[0], element) {
			rows = append(rows[:len(rows):len(rows)], row)
		}
	}
	return rows
}

// ClassOf returns the class of a slashed path below a directory that commands write. Case does not count: on many
// systems it does not count for the programs that obey these files either. Of several rows the innermost and longest
// decides.
func ClassOf(rel string) Class {
	row := RowOf(rel)
	if row == nil {
		return Free
	}
	return row.Class
}

// gitFile is the file or link that says where the repository of a workspace is. Package baseline protects a directory
// of that name.
var gitFile = Name{Pattern: ".git", Class: Held, Agent: true, Control: true,
	Reason: "git and this host go where it leads", Source: "git-scm.com/docs/gitrepository-layout"}

// RowOf returns the row that decides about a slashed path below a directory that commands write, or nil.
func RowOf(rel string) *Name {
	if rel == gitFile.Pattern {
		return &gitFile
	}
	if i := sequencerAt(rel); i >= 0 {
		return &sequencers[i].Name
	}
	elements := strings.Split(pathname.Folded.Of(rel), "/")
	var best *Name
	dependency, end := false, 0
	for i, element := range elements {
		if element == ".git" {
			return nil // git's own; see package baseline
		}
		for _, row := range startingWith(element) {
			if row.matches(elements[i:]) && (best == nil || i+len(row.elements) >= end) &&
				(row.Agent || row.Class != Held || !dependency) {
				best, end = row, i+len(row.elements)
			}
		}
		dependency = dependency || dependencies[element]
	}
	return best
}

// matches reports whether a path begins with the elements of the pattern.
func (n *Name) matches(elements []string) bool {
	if len(elements) < len(n.elements) {
		return false
	}
	for i, pattern := range n.elements {
		if pattern != elements[i] && !pathname.Element(pattern, elements[i]) {
			return false
		}
	}
	return true
}
