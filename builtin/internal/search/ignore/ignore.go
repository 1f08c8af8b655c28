// Package ignore decides which files of a tree the search leaves out, by the
// rules of ripgrep 15: `.rgignore` before `.ignore` before `.gitignore` before
// `.git/info/exclude` before the user's global excludes; in each of them the
// nearest directory first and the last matching line. Git's own files count
// only inside a repository, and only as far up as its root.
//
// The caller gives the files, or the handle of a tree below which they are read.
package ignore

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
)

// MaxFile bounds how much of one ignore file is used, in bytes. Rules that do
// not begin within it are dropped.
const MaxFile = 1 << 20

// Verdict is the decision of the rules about a path.
type Verdict uint8

const (
	None    Verdict = iota // no rule matches
	Ignored                // left out
	Kept                   // re-included by a `!` rule
)

// Rules are the lines of one ignore file. They are immutable.
type Rules struct {
	rules []rule
	base  map[string][]int // rules on a literal last element: their indexes, ascending
	ext   map[string][]int // rules on an extension: `*.o`
	rest  []int
	size  int64 // see Size
}

// Size is about how many bytes of memory the rules take.
func (rs *Rules) Size() int64 {
	if rs == nil {
		return 0
	}
	return rs.size
}

type rule struct {
	glob    *glob.Pattern
	negated bool
	dirOnly bool
}

// Parse reads the lines of an ignore file. Lines that are not valid patterns are dropped, as ripgrep does. When a
// rule does not fit into the room, it and all later ones are dropped. Parse takes as much of the room as the Size of
// the rules. It returns nil when no rule is left.
func Parse(content []byte, room *Budget) *Rules {
	if len(content) == 0 {
		return nil
	}
	if len(content) > MaxFile {
		content = content[:bytes.LastIndexByte(content[:MaxFile], '\n')+1]
	}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	rs := &Rules{}
	for line := range strings.Lines(string(content)) {
		if !utf8.ValidString(line) {
			break // ripgrep's line reader ends at the first line that is not UTF-8
		}
		if r, err := parseLine(strings.TrimSuffix(line, "\n"), glob.Options{OpenClass: true}); err == nil &&
			r.glob != nil {
			size := ruleSize + r.glob.Size()
			if !room.Take(size) {
				break
			}
			rs.add(r)
			rs.size += size
		}
	}
	if len(rs.rules) == 0 {
		return nil
	}
	return rs
}

// ruleSize is about how many bytes a rule takes without its glob.
const ruleSize = 96

func (rs *Rules) add(r rule) {
	i := len(rs.rules)
	rs.rules = append(rs.rules, r)
	if name, ok := r.glob.Base(); ok {
		rs.base = put(rs.base, name, i)
	} else if ext, ok := r.glob.Extension(); ok {
		rs.ext = put(rs.ext, ext, i)
	} else {
		rs.rest = append(rs.rest, i)
	}
}

func put(m map[string][]int, key string, i int) map[string][]int {
	if m == nil {
		m = map[string][]int{}
	}
	m[key] = append(m[key], i)
	return m
}

// parseLine follows gitignore(5) with the readings of ripgrep's `ignore` crate.
// A line that holds no rule gives a rule without a glob.
func parseLine(line string, o glob.Options) (r rule, err error) {
	if strings.HasPrefix(line, "#") {
		return r, nil
	}
	line = strings.TrimSuffix(line, "\r")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	if line == "" {
		return r, nil
	}
	anchored := false
	if strings.HasPrefix(line, `\!`) || strings.HasPrefix(line, `\#`) {
		line = line[1:]
	} else {
		line, r.negated = strings.CutPrefix(line, "!")
		line, anchored = strings.CutPrefix(line, "/")
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly = true
		line = strings.TrimSuffix(line[:len(line)-1], `\`)
	}
	if !anchored && !strings.Contains(line, "/") && line != "**" {
		line = "**/" + line
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is below the directory, not the directory itself
	}
	r.glob, err = glob.Compile(line, o)
	return r, err
}

// Match returns the verdict of the last matching rule on the path, which is
// relative to the directory of the ignore file. A nil Rules matches nothing.
func (rs *Rules) Match(path string, dir bool) Verdict {
	if rs == nil {
		return None
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	best := rs.last(rs.base[name], -1, dir)
	if len(rs.ext) > 0 {
		if k := strings.LastIndexByte(name, '.'); k >= 0 {
			best = rs.last(rs.ext[name[k:]], best, dir)
		}
	}
	for j := len(rs.rest) - 1; j >= 0 && rs.rest[j] > best; j-- {
		r := &rs.rules[rs.rest[j]]
		if (dir || !r.dirOnly) && r.glob.Match(path) {
			best = rs.rest[j]
		}
	}
	switch {
	case best < 0:
		return None
	case rs.rules[best].negated:
		return Kept
	}
	return Ignored
}

// last returns the greatest of the indexes whose rule applies, or best if that is greater.
func (rs *Rules) last(indexes []int, best int, dir bool) int {
	for j := len(indexes) - 1; j >= 0 && indexes[j] > best; j-- {
		if dir || !rs.rules[indexes[j]].dirOnly {
			return indexes[j]
		}
	}
	return best
}
