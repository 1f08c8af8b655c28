package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// misread is the reason for a text that bash may read otherwise than the parser (3.14). Harmless cases are not told
// from the others.
const misread = "bash may read a part of the text in another way"

// misparsed reports whether bash may read a node otherwise than the parser.
func (w *walker) misparsed(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.ParamExp: // in "${x:-'$(rm x)'}" the inner quotes quote nothing for bash, and <(…) is a substitution
		text := ""
		if n.Exp != nil && n.Exp.Word != nil {
			text = w.source(n.Exp.Word)
		} else if n.Repl != nil {
			text = w.source(n)
		}
		return misreadQuotes().MatchString(unbroken(text))
	case *syntax.Redirect: // bash joins lines, and looks for the word that ends a heredoc before it reads expansions
		return n.Hdoc != nil && n.Word.Lit() != "" && !strings.Contains(n.Word.Lit(), "\\") && w.misreadHeredoc(n)
	case *syntax.CmdSubst: // bash ends `…` at a backquote in quotes or in a heredoc too
		return n.Backquotes && strings.ContainsAny(w.text[n.Left.Offset()+1:n.Right.Offset()], "\\`'\"<")
	case *syntax.CoprocClause, *syntax.ExtGlob: // bash may take its name for a program, and a pattern for a group
		return true
	case *syntax.Assign: // name=(…)#x is one word
		return n.Array != nil && strings.HasPrefix(w.text[n.End().Offset():], "#")
	case *syntax.Word:
		return w.misreadEnd(n)
	}
	return false
}

// misreadQuotes matches a process substitution, and single quotes next to what they may not quote.
var misreadQuotes = regular("[<>]\\(|'.*[$`\"}].*'|[$`\"}].*'")

// misreadHeredoc reports whether the word that ends a heredoc, or a backslash at the end of a line, stands where bash
// may end it elsewhere.
func (w *walker) misreadHeredoc(r *syntax.Redirect) bool {
	if w.heredocs++; w.heredocs > maxHeredocs {
		return true
	}
	end, before := r.Word.Lit(), ""
	for line := range strings.SplitSeq(w.text, "\n") {
		if strings.HasSuffix(before, "\\") && strings.HasSuffix(end, strings.TrimLeft(line, "\t")) {
			return true
		}
		before = line
	}
	return slices.ContainsFunc(r.Hdoc.Parts, func(part syntax.WordPart) bool {
		_, literal := part.(*syntax.Lit)
		return !literal && strings.Contains(w.source(part), end)
	})
}

// misreadEnd judges what follows a word, and its parts. "#" begins a comment only where a word would; between
// parentheses the parser finds one also after a quotation or an expansion, so that (echo 'a'#; rm x<LF>) would hide
// rm. Right before a redirection, bash evaluates the subscript of {name[subscript]}.
func (w *walker) misreadEnd(word *syntax.Word) bool {
	next := textAfter(w, word)
	if next != "" && strings.Contains("<>", next[:1]) && strings.HasSuffix(unbroken(w.source(word)), "]}") {
		return true
	}
	for i, part := range word.Parts {
		rest := textAfter(w, part)
		at := len(w.text) - len(rest)
		if strings.HasPrefix(rest, "#") && (i+1 == len(word.Parts) || int(word.Parts[i+1].Pos().Offset()) > at) {
			return true
		}
	}
	return false
}

// bashOnly matches what bash and a plain sh read differently: in dash, `[[ a && reboot ]]` runs reboot and
// $'…' ends at another place.
var bashOnly = regular(`\[\[|(^|[^$])\(\(|\$['"]|[<>]\(|\|&|&>|<<<|\b(coproc|let|function)\b|=\(|\{.*[,.].*\}`)
