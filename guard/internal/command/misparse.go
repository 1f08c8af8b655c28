package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// misreadOperand judges the words of an expansion. In "${x:-'$(rm x)'}" the inner quotes quote nothing
// for bash; <(…) there is a substitution to bash alone; and bash (5.2) forgets that $'…' was a
// quotation.
func misreadOperand(w *walker, p *syntax.ParamExp) {
	text := ""
	if p.Exp != nil && p.Exp.Word != nil {
		text = w.source(p.Exp.Word)
	}
	if p.Repl != nil {
		text = w.source(p)
	}
	if misreadQuotes().MatchString(unbroken(text)) {
		w.undecided(true, "quotes or a process substitution within an expansion")
	}
}

// misreadQuotes matches a process substitution, and single quotes next to what they may not quote.
var misreadQuotes = regular("[<>]\\(|'.*[$`\"}]|[$`\"}].*'")

// misreadHeredoc judges where a heredoc ends. Bash joins lines that end in a backslash, and looks for
// the word that ends it before it looks at what is there.
func misreadHeredoc(w *walker, r *syntax.Redirect) {
	end := r.Word.Lit()
	if r.Hdoc == nil || end == "" || strings.Contains(end, "\\") {
		return // quoted: its lines are taken as they are
	}
	for _, part := range r.Hdoc.Parts {
		if _, ok := part.(*syntax.Lit); !ok && strings.Contains(w.source(part), end) {
			w.undecided(true, "the word that ends a heredoc stands in an expansion in it")
		}
	}
	before := ""
	for line := range strings.SplitSeq(w.text, "\n") {
		if strings.HasSuffix(before, "\\") && strings.HasSuffix(end, strings.TrimLeft(line, "\t")) {
			w.undecided(true, "a line of a heredoc ends in a backslash, before the word that ends it")
		}
		before = line
	}
}

// misreadBackquotes judges where `…` ends. For bash it is at the next backquote without a
// backslash; the parser passes over one in quotes or in a heredoc.
func misreadBackquotes(w *walker, c *syntax.CmdSubst) {
	start, end := int(c.Left.Offset())+1, int(c.Right.Offset())
	if c.Backquotes && start < end && end <= len(w.text) &&
		strings.Contains(strings.NewReplacer(`\\`, "", "\\`", "").Replace(w.text[start:end]), "`") {
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
