package command

import "strings"

// awkSpec lists the options of gawk 5 and mawk that run and write nothing.
var awkSpec = spec{short: "F:v:f:e:E:i:l:o::p::d::D::bcCghLMnNOrsStVW:",
	long: "field-separator: assign: file: source: exec: include: load: pretty-print:: profile:: dump-variables:: debug:: characters-as-bytes traditional csv lint:: bignum use-lc-numeric non-decimal-data optimize posix re-interval sandbox version help"}

// awk makes programs undecidable that can run commands or write files. The
// program is searched as text: inside strings and patterns too, for telling
// those from the rest would have to be right about every awk.
func (w *walker) awk(c Simple) {
	program, _, p := awkParse(c)
	switch {
	case p.unsure != "":
		w.undecided(true, c.Name+": "+p.unsure)
	case p.has("f file E exec i include l load o pretty-print p profile d dump-variables D debug e source W"):
		w.undecided(true, c.Name+" takes its program from elsewhere, or writes a file by an option")
	case p.has("version help V h") || len(program.Text) == 0 && program.Static:
	case !program.Static:
		w.undecided(true, c.Name+" with a dynamic program")
	case !awkHarmless(program.Text):
		w.undecided(true, c.Name+" with a program that may run commands or write files")
	}
}

func awkParse(c Simple) (program Word, files []Word, p parsed) {
	p = awkSpec.parse(c.Args)
	program = Word{Static: true}
	files = p.operands
	if !p.has("f file E exec e source") && len(files) > 0 {
		program, files = files[0], files[1:]
	}
	return program, files, p
}

// awkHarmless reports whether a program contains no system(), getline, pipe,
// output to a file, directive (@load), indirect call (@f()) or
// file named by ARGV. Pipes and output
// to files need a print before them; before one, "|" and ">" stand in patterns
// and comparisons.
func awkHarmless(program string) bool {
	for _, word := range [...]string{"system", "getline", "@", "ARGV", "\\\n"} {
		if strings.Contains(program, word) {
			return false
		}
	}
	i := strings.Index(program, "print")
	if i < 0 {
		return true
	}
	rest := strings.ReplaceAll(program[i:], "||", "")
	return !strings.ContainsAny(rest, "|>")
}
