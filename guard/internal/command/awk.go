package command

import "strings"

// awkSpec lists the options of gawk 5 and mawk that run and write nothing.
var awkSpec = spec{short: "F:v:f:e:E:i:l:o::p::d::D::bcCghLMnNOrsStVW:",
	long: "field-separator: assign: file: source: exec: include: load: pretty-print:: profile:: dump-variables:: debug:: characters-as-bytes traditional csv lint:: bignum use-lc-numeric non-decimal-data optimize posix re-interval sandbox version help"}

// readAwk makes programs undecidable that may run commands or write files. The program is not
// read: it is searched for the words and characters by which one could.
func readAwk(w *walker, c Simple) {
	program, _, p := awkParse(c)
	doubt := p.unsure != "" || p.has("f file E exec i include l load o pretty-print p profile d dump-variables D debug e source W") || !program.Static
	for _, text := range [...]string{"system", "getline", "@", "ARGV", "\\\n", "|", ">"} {
		doubt = doubt || strings.Contains(program.Text, text)
	}
	if doubt {
		w.undecided(true, c.Name+" with a program that may run commands or write files")
	}
}

func awkParse(c Simple) (program Word, files []Word, p parsed) {
	p = awkSpec.parse(c.Args)
	program, files = Word{Static: true}, p.operands
	if !p.has("f file E exec e source") && len(files) > 0 {
		program, files = files[0], files[1:]
	}
	return program, files, p
}
