package command

import "mvdan.cc/sh/v3/syntax"

// readCoproc judges the name of a coproc. To bash the first word of a simple command
// is none (`coproc rm x=1` runs rm); the parser takes it for one where an
// assignment follows, and what it makes of the rest is not to be walked.
func readCoproc(w *walker, n *syntax.CoprocClause) bool {
	if n.Name == nil {
		if call, ok := callOf(n.Stmt); ok && len(call.Assigns) > 0 && len(call.Args) > 0 && call.Assigns[0].Pos().After(call.Args[0].Pos()) {
			w.undecided(true, "an assignment among the words of a coproc")
			return false
		}
		return true
	}
	var compound bool
	if n.Stmt != nil {
		switch n.Stmt.Cmd.(type) {
		case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
			compound = true
		}
	}
	if !compound || n.Name.Lit() == "" {
		w.undecided(true, "a coproc whose name may be a program")
		return false
	}
	return true
}

// bashOnly matches what bash and a plain sh read differently: in dash, `[[ a && reboot ]]` runs reboot and
// $'…' ends at another place.
var bashOnly = regular(`\[\[|(^|[^$])\(\(|\$['"]|[<>]\(|\|&|&>|<<<|\b(coproc|let|function)\b|=\(|\{.*[,.].*\}`)
