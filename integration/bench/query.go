package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A query is one search, in words that can be put to the host and to every other program.
type query struct {
	pattern    string
	mode       string // content, files_with_matches or count
	glob       string
	ignoreCase bool
	multiline  bool
	names      bool // pattern is a glob of names: nothing is read
}

func (q query) String() string {
	name := q.pattern
	if q.glob != "" {
		name += " in " + q.glob
	}
	return name
}

// The modes of Grep.
const (
	content = "content"
	files   = "files_with_matches"
	count   = "count"
)

// toCode is a set of queries as agents ask them of code in Go.
func toCode() []query {
	return []query{
		{pattern: `sync\.Mutex`, mode: content},
		{pattern: `nosuchthinganywhere`, mode: files},
		{pattern: `func \(.*\) String\(\) string`, mode: content},
		{pattern: `goroutine leak`, mode: content, ignoreCase: true},
		{pattern: `err`, mode: files},
		{pattern: `err != nil`, mode: content},
		{pattern: `TODO|FIXME|XXX|HACK`, mode: count},
		{pattern: `\b[A-Z]\w+Error\b`, mode: count},
		{pattern: `[a-z]+\s+:=\s+range`, mode: content},
		{pattern: `^\t+return$`, mode: count},
		{pattern: `import`, mode: files, glob: "*.go"},
		{pattern: `return nil\n\}`, mode: count, multiline: true},
	}
}

// toKernel is the like for C.
func toKernel() []query {
	return []query{
		{pattern: `struct mutex`, mode: content},
		{pattern: `nosuchthinganywhere`, mode: files},
		{pattern: `EXPORT_SYMBOL_GPL\(\w+\)`, mode: count},
		{pattern: `deadlock`, mode: content, ignoreCase: true},
		{pattern: `err`, mode: files},
		{pattern: `return -EINVAL;`, mode: content},
		{pattern: `TODO|FIXME|XXX|HACK`, mode: count},
		{pattern: `static int \w+\(struct net \*net\)`, mode: content},
		{pattern: `\bkmalloc\(`, mode: content, glob: "*.c"},
		{pattern: `#define`, mode: files, glob: "*.h"},
	}
}

// withoutLiterals are patterns in which no text is certain, so that no index helps.
func withoutLiterals() []query {
	return []query{
		{pattern: `\w{24,}`, mode: count},
		{pattern: `[A-Z][0-9][a-z]_`, mode: count},
		{pattern: `\b[0-9]+[a-z]{3}[0-9]+\b`, mode: count},
		{pattern: `^\s*[a-z]+\s*$`, mode: count},
	}
}

// ofNames are queries of names.
func ofNames() []query {
	return []query{
		{pattern: "**/*.go", names: true}, {pattern: "**/*_test.go", names: true}, {pattern: "**/*.c", names: true},
		{pattern: "**/README*", names: true}, {pattern: "**/*.nosuch", names: true},
	}
}

// ask is the query as a call of the host. limit is how many entries are wanted, 0 for all.
func (q query) ask(limit int) call {
	if q.names {
		return call{"Glob", map[string]any{"pattern": q.pattern}}
	}
	args := map[string]any{"pattern": q.pattern, "output_mode": q.mode, "head_limit": limit}
	if q.glob != "" {
		args["glob"] = q.glob
	}
	if q.ignoreCase {
		args["-i"] = true
	}
	if q.multiline {
		args["multiline"] = true
	}
	return call{"Grep", args}
}

// rg is the query as arguments of ripgrep. In path order it uses one thread, so that is for comparing answers only.
func (q query) rg(ordered bool) []string {
	args := []string{"--no-config", "--hidden", "--no-messages", "--color=never", "-g", "!.git"}
	if ordered {
		args = append(args, "--sort", "path")
	}
	if q.names {
		return append(args, "--files", "-g", q.pattern)
	}
	args = append(args, "--no-heading", "--with-filename", "--crlf")
	args = append(args, map[string]string{content: "-n", files: "-l", count: "-c"}[q.mode])
	if q.glob != "" {
		args = append(args, "-g", q.glob)
	}
	if q.ignoreCase {
		args = append(args, "-i")
	}
	if q.multiline {
		args = append(args, "-U")
	}
	return append(args, "-e", q.pattern, ".")
}

// ug is the query as arguments of ugrep; nil if it has no words for it.
func (q query) ug() []string {
	if q.names || q.multiline {
		return nil
	}
	args := []string{"-r", "--hidden", "--ignore-files", "--no-messages", "--color=never", "-I", "-g", "!.git"}
	args = append(args, map[string]string{content: "-n", files: "-l", count: "-c"}[q.mode])
	if q.glob != "" {
		args = append(args, "-g", q.glob)
	}
	if q.ignoreCase {
		args = append(args, "-i")
	}
	return append(args, "-e", q.pattern, ".")
}

// fd is a query of names as arguments of fd; nil for others.
func (q query) fd() []string {
	if !q.names {
		return nil
	}
	return []string{"--hidden", "--exclude", ".git", "--color=never", "--type", "f", "--glob",
		strings.TrimPrefix(q.pattern, "**/")}
}

// clipped is from how many characters on the host shows a line in part.
const clipped = 500

// numberedLine is how a line of content begins: its file and its number.
var numberedLine = regexp.MustCompile(`^(.+?:\d+:)(.*)$`)

// normal brings an answer into a form in which the host's and ripgrep's can be compared: sorted lines, without notes in
// brackets and of ripgrep, and of lines that the host clips only the place.
func (q query) normal(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		line = strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "./")
		if line == "" || line == "No matches." || line == "No files match." || strings.HasPrefix(line, "[") &&
			strings.HasSuffix(line, "]") ||
			strings.Contains(line, ": binary file matches") ||
			strings.Contains(line, ": WARNING: stopped searching binary file") {
			continue
		}
		if q.mode == content {
			if m := numberedLine.FindStringSubmatch(line); m != nil {
				line = m[1] + " " + strings.TrimSpace(m[2])
				if len([]rune(m[2])) >= clipped {
					line = m[1] + " (long)"
				}
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// difference says how two answers differ, "" if they do not.
func difference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("%d lines and not %d; too much: %.200q", len(got), len(want), got[i])
		case i >= len(got):
			return fmt.Sprintf("%d lines and not %d; missing: %.200q", len(got), len(want), want[i])
		case want[i] != got[i]:
			return fmt.Sprintf("line %d is %.200q and not %.200q", i, got[i], want[i])
		}
	}
	return ""
}
