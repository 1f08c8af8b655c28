package search

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
)

// readings are other ways to read a pattern when no file matches it.
var readings = []struct {
	may  func(GlobQuery, *GlobResult, error) bool
	read func(GlobQuery) GlobQuery
	note string
}{
	{GlobQuery.inBrackets, func(q GlobQuery) GlobQuery { q.brackets = true; return q },
		"No file matches with [ ] as a choice of characters: these have the brackets in their names."},
	{GlobQuery.lookAlike, func(q GlobQuery) GlobQuery { q.alike = true; return q },
		"No file matches exactly: these have names that look the same, with other spaces, quotes or accents. Read and Edit find them by the name that is asked for."},
}

// lookAlike reports whether to search for files whose names only look like the pattern: when nothing matched, and the
// pattern has a space, a quote or a character outside of ASCII.
func (q GlobQuery) lookAlike(r *GlobResult, err error) bool {
	return err == nil && r.Total == 0 && !r.TimedOut &&
		strings.ContainsFunc(q.Pattern, func(c rune) bool { return c == ' ' || c == '\'' || c == '"' || c > '~' })
}

// inBrackets reports whether the query may find more with brackets taken as ordinary characters: the routes of web
// frameworks have names such as [id], which people and models write without escaping.
func (q GlobQuery) inBrackets(r *GlobResult, err error) bool {
	if !strings.Contains(q.Pattern, "[") {
		return false
	}
	if err != nil {
		return errors.Is(err, glob.ErrRange) || errors.Is(err, glob.ErrClass)
	}
	return r.Total == 0 && !r.TimedOut
}

// escapeBrackets escapes the brackets of a pattern.
func escapeBrackets(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			b.WriteByte(p[i])
			i++
		case p[i] == '[' || p[i] == ']':
			b.WriteByte('\\')
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

// extended finds extended globs, such as `@(a|b)`. bash and some libraries read them as a choice; to Glob they are
// literal characters.
var extended = regexp.MustCompile(`[@+!?*]\([^()]*\)`)

// notes say what is not shown.
func (r *GlobResult) notes(l *listing, q GlobQuery) []string {
	var out []string
	if r.Total == 0 && r.IgnoredFiles > 0 {
		out = append(out, fmt.Sprintf("0 files; %s not listed: pass the ignored directory or file as path, or use find "+
			"in Bash.",
			ignoredText(r.IgnoredFiles, r.IgnoredMore)))
	}
	out = append(out, l.notes()...)
	if r.Total == 0 {
		if text := extended.FindString(q.Pattern); text != "" {
			out = append(out, text+" is no choice here: write {a,b} for one of several.")
		}
	}
	if r.TimedOut {
		out = append(out, fmt.Sprintf("The time was up after %s: the list is partial. Search a smaller path.", q.Timeout))
	}
	if r.Shown < r.Total {
		out = append(out, fmt.Sprintf("Shown: the %d newest of %d files. Narrow the pattern or the path.",
			r.Shown, r.Total))
	}
	return out
}
