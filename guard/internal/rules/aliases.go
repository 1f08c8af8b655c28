package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A slip is a common mistake by which a file pattern probably misses what is meant.
type slip struct {
	// find reports whether a specifier has the mistake, and returns what it should be if that is known.
	find func(spec string) (meant string, found bool)
	says string
}

// slips are checked in this order. What a person may well have meant as written is not a slip: names with $, spaces,
// parentheses, letters of any script, or escaped wildcards.
var slips = []slip{
	{disguised, "it has characters that are invisible, or look like others; write it in plain ones"},
	{quoted, "the quotes are taken for a part of the name; leave them out"},
	{enclosed, "the parentheses are taken for a part of the name; leave them out"},
	{variable, "variables and addresses are not understood; write //path for an absolute path, ~/path for one in the home directory"},
	{expression, "patterns are as in .gitignore, not regular expressions: only *, ?, [...] and {a,b} stand for other text"},
	{backslashed, `a backslash takes its meaning from the character after it; write / between directories`},
	{commented, "it is one pattern, with the comment in it; leave the comment out"},
	{mentioned, "the @ is taken for a part of the name; leave it out"},
}

// addPath adds the patterns of a rule on files, and the patterns that it probably means.
func (c *Compiler) addPath(l *List, tool string, r *Rule) error {
	err := c.addSpec(l, tool, r)
	if _, spec, _ := strings.Cut(r.Text, "("); l.strict() && strings.HasPrefix(spec, " ") { // names may begin with spaces
		other := *r
		other.Spec = spec[:len(spec)-len(strings.TrimLeft(spec, " "))] + r.Spec
		bases, text := c.anchor(l, &other)
		err = errors.Join(err, c.addPattern(l, tool, r, text, bases))
	}
	other := *r
	for range maxSlips {
		if parts := listed(other.Spec); parts != nil {
			return errors.Join(err, c.addListed(l, tool, &other, parts))
		}
		meant, why := c.lint(&other)
		if why == nil {
			break
		}
		if meant == "" || meant == other.Spec || !l.strict() {
			return errors.Join(err, why)
		}
		other.Spec = meant
		err = errors.Join(err, fmt.Errorf("%w; both are guarded", why), c.addSpec(l, tool, &other))
	}
	return err
}

// maxSlips is how many slips of one rule are corrected.
const maxSlips = 4

func disguised(spec string) (string, bool) {
	if _, found := pathname.Disguised(spec); !found {
		return "", false
	}
	return strings.TrimSpace(pathname.Plain(spec)), true
}

var quotes = []string{`""`, "''", "``", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb", "<>"}

func quoted(spec string) (string, bool) {
	for _, q := range quotes {
		pair := []rune(q)
		rest, begins := strings.CutPrefix(spec, string(pair[0]))
		if inner, ends := strings.CutSuffix(rest, string(pair[1])); begins && ends && inner != "" {
			return inner, true
		}
	}
	return "", false
}

// enclosed finds parentheses around the whole specifier, and a closing one without an opening one. A directory may be
// called (group).
func enclosed(spec string) (string, bool) {
	if inner, ok := strings.CutSuffix(spec, ")"); ok && strings.Count(spec, ")") > strings.Count(spec, "(") {
		return inner, true
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(spec, "("), ")")
	return inner, len(inner) == len(spec)-2 && strings.ContainsAny(inner, "./*|") && !strings.ContainsAny(inner, "()")
}

// variables matches references to shell variables. A $ alone may be part of a name.
var variables = regexp.MustCompile(`^\$|\$\{|\$\(|(^|/)\$[A-Z_]{2,}(/|$)|%[A-Za-z_]+%|^~[A-Za-z_][A-Za-z0-9_-]*[/\\]`)

func variable(spec string) (meant string, found bool) {
	if _, name, ok := strings.Cut(spec, "file://"); ok {
		return "/" + name, true
	}
	for _, home := range []string{"$HOME", "${HOME}", "%USERPROFILE%", "%HOME%", "$env:USERPROFILE", "$env:HOME"} {
		if rest, ok := strings.CutPrefix(spec, home); ok && rest != "" && strings.ContainsAny(rest[:1], `/\`) {
			meant = "~/" + rest[1:]
		}
	}
	return meant, strings.Contains(spec, "://") || variables.MatchString(spec)
}

// expressions matches syntax that only regular expressions have.
var expressions = regexp.MustCompile(`^\^|\$/?$|\.\*\\\.|\.\+($|[/\\$)|])|\\[wdsWDSbB]([+*?{\\.]|$)|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\(\?|\)[+*?]|\([^()]*\|[^()]*\)`)

func expression(spec string) (meant string, found bool) {
	if !expressions.MatchString(spec) {
		return "", false
	}
	meant = strings.TrimSuffix(spec, "/")
	if strings.HasPrefix(meant, "/^") {
		meant = meant[1:]
	}
	meant = strings.TrimSuffix(strings.TrimPrefix(meant, "^"), "$")
	meant = strings.NewReplacer(`.*`, "*", `.+`, "?*", `\.`, ".", `\/`, "/", "(", "{", "|", ",", ")",
		"}").Replace(meant)
	if strings.ContainsAny(meant, `\+$^`) {
		return "", true
	}
	return meant, true
}

// arguments matches a name in front of a file pattern, as if the rule were about an argument of the call.
var arguments = regexp.MustCompile(`^(path|paths|file|files|filename|file_?path|filePath|notebook_path|name|dir|directory|folder|glob|regexp?|pattern):\s*(.*)`)

// separators matches a backslash between two names, as on Windows. Before a wildcard, a space or # a backslash is an
// escape, as in .gitignore.
var separators = regexp.MustCompile(`([\w.~:})%-])\\+([\w.])`)

func backslashed(spec string) (meant string, found bool) {
	if !separators.MatchString(spec) {
		return "", false
	}
	for meant = spec; separators.MatchString(meant); { // again, because neighbouring matches share a character
		meant = separators.ReplaceAllString(meant, "$1/$2")
	}
	return strings.ReplaceAll(meant, `\*`, "/*"), true
}

func commented(spec string) (meant string, found bool) {
	meant, _, found = strings.Cut(spec, " #")
	return strings.TrimSpace(meant), found && meant != ""
}

func mentioned(spec string) (meant string, found bool) {
	return spec[1:], strings.HasPrefix(spec, "@.")
}
