package command

import "mvdan.cc/sh/v3/syntax"

// readCoproc judges the name of a coproc. To bash the first word of a simple command
// is none (`coproc rm x=1` runs rm); the parser takes it for one where an
// assignment follows, and what it makes of the rest is not to be walked.
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
