package command

import "strings"

// sedSpec lists the options of GNU sed 4.9 and BSD sed.
var sedSpec = spec{short: "nrEsuzi::be:f:l:", permute: true,
	long: "quiet silent debug expression: file: follow-symlinks in-place:: line-length: posix regexp-extended separate sandbox unbuffered null-data zero-terminated binary help version"}

// sedParse tells the script of sed from its files. BSD's -i takes the suffix as
// a word of its own, which is empty as a rule: sed -i "" s/a/b/ f.
func sedParse(c Simple) (scripts, files []Word, p parsed) {
	p = sedSpec.parse(c.Args)
	for _, o := range p.options {
		if oneOf(o.name, "e expression") {
			scripts = append(scripts, o.value)
		}
	}
	files = p.operands
	if p.has("i in-place") && len(files) > 0 && files[0].Static && files[0].Text == "" {
		files = files[1:]
	}
	if len(scripts) == 0 && !p.has("f file") && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	return scripts, files, p
}

// sedLooks matches a script that prints, deletes and replaces: it neither runs commands (e,
// s///e) nor touches files (w, r).
var sedLooks = regular(`^(ADDR(\s*,\s*\+?ADDR)?\s*!?\s*([pdqQ=hHgGxnND]\s*|PART\s*)(;|\n|$)\s*)*$`, "ADDR", `(\d+|\$|/(TEXT)*/I?)?`,
	"PART", `[sy](/(TEXT)*/(TEXT)*/|\|([^|\\\n[]|\\[^\n])*\|([^|\\\n[]|\\[^\n])*\||#([^#\\\n[]|\\[^\n])*#([^#\\\n[]|\\[^\n])*#)[gpiIM0-9]*`,
	"TEXT", `[^/\\\n[]|\\[^\n]|\[\^?[^]/\n[]+\]`)

// readSed makes scripts undecidable that do more than [sedLooks] matches.
func readSed(w *walker, c Simple) {
	scripts, _, p := sedParse(c)
	doubt := p.unsure != "" || p.has("f file")
	for _, s := range scripts {
		doubt = doubt || !s.Static || !sedLooks().MatchString(s.Text)
	}
	if doubt {
		w.undecided(true, c.Name+" "+ownScript)
	}
}

// awkSpec lists the options of gawk 5 and mawk that run and write nothing.
var awkSpec = spec{short: "F:v:f:e:E:i:l:o::p::d::D::bcCghLMnNOrsStVW:",
	long: "field-separator: assign: file: source: exec: include: load: pretty-print:: profile:: dump-variables:: debug:: characters-as-bytes traditional csv lint:: bignum use-lc-numeric non-decimal-data optimize posix re-interval sandbox version help"}

// readAwk makes programs undecidable that may run commands or write files. The program is not parsed, but searched
// for the words and characters that this takes.
func readAwk(w *walker, c Simple) {
	program, _, p := awkParse(c)
	doubt := p.unsure != "" || p.has("f file E exec i include l load o pretty-print p profile d dump-variables D debug e source W") || !program.Static
	for _, text := range [...]string{"system", "getline", "@", "ARGV", "\\\n", "|", ">"} {
		doubt = doubt || strings.Contains(program.Text, text)
	}
	if doubt {
		w.undecided(true, c.Name+" "+ownScript)
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
