package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// misreadOperand judges the words of an expansion. In "${x:-'$(rm x)'}" the inner quotes quote nothing
// for bash; <(…) there is a substitution to bash alone; and bash (5.2) forgets that $'…' was a
// quotation.
func misreadOperand(w *walker, p *syntax.ParamExp) {
	var words []*syntax.Word
	if p.Exp != nil {
		words = append(words, p.Exp.Word)
	}
	if p.Repl != nil {
		words = append(words, p.Repl.Orig, p.Repl.With)
	}
	for _, word := range words {
		if word == nil {
			continue
		}
		text := unbroken(w.source(word))
		if strings.Contains(text, "<(") || strings.Contains(text, ">(") || strings.Contains(text, "'") && strings.ContainsAny(text, "$`\"}") {
			w.undecided(true, "quotes or a process substitution within an expansion")
		}
	}
}

// misreadHeredoc judges where a heredoc ends. Bash joins lines that end in a backslash, and looks for the word that
// ends the heredoc before it looks at expansions in the lines.
func misreadHeredoc(w *walker, r *syntax.Redirect) {
	end := r.Word.Lit()
	if r.Hdoc == nil || end == "" || strings.Contains(end, "\\") {
		return // quoted: its lines are taken as they are
	}
	for _, part := range r.Hdoc.Parts {
		if _, ok := part.(*syntax.Lit); !ok && hasLine(w.source(part), end) {
			w.undecided(true, "the word that ends a heredoc stands in an expansion in it")
		}
	}
	joined, continues := "", false
	for line := range strings.SplitSeq(w.text, "\n") {
		joined += line
		if continues && (strings.TrimLeft(line, "\t") == end || strings.TrimLeft(joined, "\t") == end) {
			w.undecided(true, "a line of a heredoc ends in a backslash, before the word that ends it")
			return
		}
		if joined, continues = strings.CutSuffix(joined, "\\"); !continues {
			joined = ""
		}
	}
}

// hasLine reports whether a line of text is end, but for the tabs before it.
func hasLine(text, end string) bool {
	lines := strings.Split(leadingTabs().ReplaceAllString(text, ""), "\n")
	return slices.Contains(lines, end)
}

// misreadBackquotes judges where `…` ends. For bash it is at the next backquote without a
// backslash; the parser passes over one in quotes or in a heredoc.
func misreadBackquotes(w *walker, c *syntax.CmdSubst) {
	start, end := int(c.Left.Offset())+1, int(c.Right.Offset())
	if !c.Backquotes || start > end || end > len(w.text) {
		return
	}
	inner := strings.NewReplacer(`\\`, "", "\\`", "").Replace(w.text[start:end])
	if strings.Contains(inner, "`") {
		w.undecided(true, "a backquote within backquotes, at which bash ends them")
	}
}

// misreadEnd judges what follows a word, and its parts. "#" begins a comment only where a word would; between
// parentheses the parser finds one also after a quotation or an expansion, so that (echo 'a'#; rm x<LF>) would hide
// rm. Right before a redirection, bash evaluates the subscript of {name[subscript]}; the parser knows only subscripts
// without expansions.
func misreadEnd(w *walker, word *syntax.Word) {
	source, next := w.source(word), textAfter(w, word)
	if next != "" && strings.Contains("<>", next[:1]) && strings.HasSuffix(unbroken(source), "]}") {
		w.undecided(true, "a redirection of a name that bash evaluates: "+source)
	}
	for i, part := range word.Parts {
		rest := textAfter(w, part)
		at := len(w.text) - len(rest)
		if strings.HasPrefix(rest, "#") && (i+1 == len(word.Parts) || int(word.Parts[i+1].Pos().Offset()) > at) {
			w.undecided(true, "a # right after a word, which bash takes for a part of it")
		}
	}
}

// readCoproc judges the name of a coproc, and reports whether its nodes can be walked. Bash never takes the first
// word of a simple command for the name (`coproc rm x=1` runs rm); the parser does where an assignment follows, and
// what it makes of the rest must not be walked.
func readCoproc(w *walker, n *syntax.CoprocClause) bool {
	call, ok := callOf(n.Stmt)
	if n.Name == nil && !(ok && len(call.Assigns) > 0 && len(call.Args) > 0) {
		return true
	}
	w.undecided(true, "a coproc whose name may be a program")
	return false
}

// bashOnly matches what bash and a plain sh read differently: in dash, `[[ a && reboot ]]` runs reboot and
// $'…' ends at another place.
var bashOnly = regular(`\[\[|(^|[^$])\(\(|\$['"]|[<>]\(|\|&|&>|<<<|\b(coproc|let|function)\b|=\(|\{.*[,.].*\}`)
