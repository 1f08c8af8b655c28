package command

import (
	"path"
	"strings"
)

// Descends returns the directories, or files, below which a command reads or hands on all
// that it finds, and the names that it is told to look at or to leave out: grep -r, tar,
// cp -r and their like. Not ok: it does not, as far as its words say.
func (c Simple) Descends() (starts []Word, names Selection, ok bool) {
	here := []Word{fixed(".")}
	switch c.Name {
	case "grep", "egrep", "fgrep", "ggrep":
		p := programs[c.Name].parse(c)
		if !p.has("r R recursive dereference-recursive") {
			return nil, names, false
		}
		names = selection(p)
	case "rg", "ag", "ack":
		p := programs["rg"].parse(c)
		if p.has("files t type") {
			return nil, names, false // names alone, or sources
		}
		starts, _ = c.generalPaths(programs["rg"])
		names.Hidden = !p.has("hidden . u uu uuu unrestricted")
	case "tar", "gtar", "bsdtar":
		p := c.tarParse()
		if !p.has("c create r append u update") {
			return nil, names, false
		}
		names = selection(p)
	case "cp", "gcp", "scp", "rsync", "diff", "zip":
		p := programs[c.Name].parse(c)
		if !p.has("r R a N recursive archive new-file") {
			return nil, names, false
		}
		names = selection(p)
	case "mv", "ln":
	default:
		return nil, names, false
	}
	if len(starts) == 0 {
		starts, _ = c.Paths()
	}
	if oneOf(c.Name, "zip scp") {
		starts = c.Args[1:]
	}
	if len(starts) == 0 && (strings.HasSuffix(c.Name, "grep") || oneOf(c.Name, "rg ag ack")) {
		starts = here
	}
	return starts, names, len(starts) > 0
}

// A Selection is what of a directory a command takes.
type Selection struct {
	Hidden           bool // names with a dot in front are left out
	include, exclude []string
}

// selection reads --include and --exclude; what is not known before selects everything.
func selection(p parsed) (s Selection) {
	for _, o := range p.options {
		switch {
		case !o.has || !o.value.Static && !o.value.Glob:
		case o.name == "include":
			s.include = append(s.include, o.value.Text)
		case oneOf(o.name, "exclude exclude-dir x"):
			s.exclude = append(s.exclude, strings.TrimSuffix(strings.TrimPrefix(o.value.Text, "./"), "/"))
		}
	}
	return s
}

// Takes reports whether the command looks at a file, or into a directory, of that name.
func (s Selection) Takes(name string, dir bool) bool {
	matches := func(patterns []string) bool {
		for _, pattern := range patterns {
			if ok, err := path.Match(pattern, name); ok || err != nil {
				return true
			}
		}
		return false
	}
	if s.Hidden && strings.HasPrefix(name, ".") || matches(s.exclude) {
		return false
	}
	return dir || len(s.include) == 0 || matches(s.include)
}
