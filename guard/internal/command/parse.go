package command

import (
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// parsers holds *syntax.Parser, which are costly to make and not safe to share.
var parsers = sync.Pool{New: func() any {
	return syntax.NewParser(syntax.Variant(syntax.LangBash))
}}

// parse returns the statements of text up to the first error: bash runs what
// comes before a syntax error on a later line, so rules must see it.
func parse(text string) ([]*syntax.Stmt, error) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	var stmts []*syntax.Stmt
	var failure error
	// The loop is not left early: the parser (3.14) calls its body again after an
	// error in a heredoc, which the runtime answers with a panic.
	for stmt, err := range p.StmtsSeq(strings.NewReader(text)) {
		switch {
		case failure != nil:
		case err != nil:
			failure = err
		default:
			stmts = append(stmts, stmt)
		}
	}
	return stmts, failure
}

// unreadable returns why bash and the parser may read a text differently, or "". A carriage return is part of a word
// to bash; the parser drops it, which would join `a \<CR><LF>rm x` into one command.
func unreadable(text string) string {
	switch {
	case len(text) > MaxLength:
		return "the command is longer than 64 KiB"
	case strings.ContainsAny(text, "\x00\r"):
		return "the command holds a NUL byte or a carriage return"
	case !utf8.ValidString(text):
		return "the command is not valid UTF-8"
	case bracketDepth(text) > maxBrackets:
		return "the command nests brackets very deep"
	case strings.Contains(text, "\\\n") && misreadContinuation().MatchString(text):
		return "a line ends in a backslash in a comment, after a dollar sign or within an operator"
	}
	return ""
}

// misreadContinuation finds lines that end in a backslash where bash and the parser (3.14) differ. Bash ends
// a comment there; the parser joins the next line to the command, so that `ls # \` would hide the line below in
// the words of ls. Elsewhere bash joins the lines first: the parser takes what follows a dollar sign for plain
// text, so that "$\<LF>(rm x)" would hide rm, and y of `rm x &\<LF>>o y` for a program.
var misreadContinuation = regular("(^|[ \t\n;&|()<>`])#[^\n]*\\\\\n(?s:.)" +
	`|\$\\\n|[&|<>](\\\n)+[&|<>]|[<>](\\\n)+\(|;(\\\n)+[;&]|\((\\\n)+\(`)

// bracketDepth returns the largest number of brackets that are open at once, quoted or not.
func bracketDepth(text string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}
