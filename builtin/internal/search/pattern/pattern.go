// Package pattern reads the regular-expression syntax of Rust's regex crate, which is what people and models know
// from ripgrep, into a program of regexp/syntax, and finds the lines of a text that it matches: by the literals that
// every match must contain where there are any, else by a lazily built automaton that looks at four parts of the text
// at once.
package pattern

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Options vary how a pattern is read.
type Options struct {
	IgnoreCase bool
	// Multiline allows a match to span lines, and lets `.` match newlines, as ripgrep does with --multiline-dotall.
	Multiline bool
}

// Pattern is a compiled pattern. It is immutable.
type Pattern struct {
	Prog *syntax.Prog
	// Lines says that no match spans lines: each line is a text of its own.
	Lines bool
	// CRLF says that a carriage return ends a line too.
	CRLF bool
	// Literals are texts of which each match contains one. Nil if none are known that are worth searching for.
	Literals *Literals
	// Required are sets of texts; each match contains one of each set.
	Required []Literals
	// ByteRuns are characters of ASCII that each match contains.
	ByteRuns []ByteRun
}

// Compile reads a pattern. Its errors are *Error.
func Compile(text string, o Options) (*Pattern, error) {
	if len(text) > MaxLength {
		return nil, &Error{Msg: "too long", Hint: "A pattern may have 65,536 bytes."}
	}
	if i := invalidUTF8(text); i >= 0 {
		return nil, &Error{Pattern: text[:i], Pos: i, Msg: "not valid UTF-8"}
	}
	crlf := !mentionsReturn(text)
	re, err := parse(text, o, !o.Multiline, crlf)
	if err == nil && o.Multiline && !spansLines(re) {
		re, err = parse(text, o, true, crlf)
	}
	if err != nil {
		return nil, err
	}
	if asksNUL(re) {
		return nil, &Error{Pattern: text, Msg: "a NUL character is never matched",
			Hint: "A file with one is binary, and not searched as text."}
	}
	p := &Pattern{CRLF: crlf, Lines: !o.Multiline || !spansLines(re)}
	if n := steps(re); n > MaxSteps {
		return nil, &Error{Pattern: text, Msg: "too large", Hint: "Repeat less, or search for a part of it."}
	}
	re = re.Simplify()
	if p.Prog, err = syntax.Compile(re); err != nil {
		return nil, &Error{Pattern: text, Msg: err.Error()}
	}
	markAssertions(p.Prog)
	p.Required = required(re)
	p.Literals = literals(re, p.Required)
	p.ByteRuns = byteRuns(re)
	return p, nil
}

func parse(text string, o Options, lines, crlf bool) (*syntax.Regexp, error) {
	p := parser{scanner: scanner{text: text}, lines: lines, crlf: crlf,
		flags: flags{fold: o.IgnoreCase, multi: true, dotNL: o.Multiline}}
	re, err := p.parse()
	if e, ok := err.(*Error); ok {
		if once, changed := Unescape(text); changed && e.Hint == "" || changed && strings.Contains(e.Msg, "group") {
			q := parser{scanner: scanner{text: once}, lines: lines, crlf: crlf, flags: p.flags}
			if _, err := q.parse(); err == nil {
				e.Hint = "The pattern is escaped twice; probably meant: " + once
			}
		}
	}
	return re, err
}

// Unescape takes one level of backslashes from a pattern in which `\\` stands
// before something that a single `\` would have made sense for.
func Unescape(text string) (string, bool) {
	const special = `.+*?()|[]{}^$wWdDsSbBntr"'/`
	var b strings.Builder
	changed := false
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], `\\`) && i+2 < len(text) && strings.IndexByte(special, text[i+2]) >= 0 {
			changed = true
			b.WriteString(text[i+1 : i+3])
			i += 2
			continue
		}
		b.WriteByte(text[i])
		if text[i] == '\\' && i+1 < len(text) {
			i++
			b.WriteByte(text[i])
		}
	}
	return b.String(), changed
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

// mentionsReturn reports whether the pattern names carriage returns. Then they are
// ordinary characters.
func mentionsReturn(text string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc([]string{"\r", `\r`, `\x0d`, `\x{d}`, `\x{0d}`, `\u000d`, `\u{d}`, `\u{0d}`},
		func(s string) bool { return strings.Contains(lower, s) })
}

// spansLines reports whether a match can contain a newline.
func spansLines(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar:
		return true
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return set(re.Rune).has('\n')
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return true // they look at newlines, and so ripgrep searches the text as a whole
	}
	return slices.ContainsFunc(re.Sub, spansLines)
}

// asksNUL reports whether a pattern names the NUL character, as ripgrep sees it: alone, not in
// a class with others.
func asksNUL(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, 0)
	case syntax.OpCharClass:
		return slices.Equal(re.Rune, []rune{0, 0})
	}
	return slices.ContainsFunc(re.Sub, asksNUL)
}

// steps returns about how large the program of a node is. The result is bounded, so that it cannot overflow.
func steps(re *syntax.Regexp) int {
	const most = 1 << 40
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, s := range re.Sub {
		n += steps(s)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return min(n, most)
}

// markAssertions replaces the marks of the parser: a capture that encloses a
// word boundary becomes an assertion with the bits of the capture's number.
func markAssertions(prog *syntax.Prog) {
	for i := range prog.Inst {
		in := &prog.Inst[i]
		if in.Op == syntax.InstCapture && in.Arg&1 == 0 {
			prog.Inst[in.Out].Arg = in.Arg / 2
		}
	}
}
