package command

// sedLooks matches a script that prints, deletes and replaces: it neither runs commands (e,
// s///e) nor touches files (w, r).
var sedLooks = regular(`^(ADDR(\s*,\s*\+?ADDR)?\s*!?\s*([pdqQ=hHgGxnND]\s*|PART\s*)(;|\n|$)\s*)*$`, "ADDR",
	`(\d+|\$|/(TEXT)*/I?)?`,
	"PART", `[sy](/(TEXT)*/(TEXT)*/|\|([^|\\\n[]|\\[^\n])*\|([^|\\\n[]|\\[^\n])*\||#([^#\\\n[]|\\[^\n])*#([^#\\\n[]|\\[^\n])*#)[gpiIM0-9]*`,
	"TEXT", `[^/\\\n[]|\\[^\n]|\[\^?[^]/\n[]+\]`)

// awkActs matches what a program of awk needs to run commands, to read files or to write them. The program is not
// read otherwise.
var awkActs = regular(`system|getline|ARGV|[@|>]|\\\n`)

// readScript makes a command of sed or awk undecidable whose script may do more than print.
func readScript(w *walker, c Simple) {
	r, _ := recordOf("programs", c.Name)
	p := r.parse(c.Args)
	scripts := p.values("e expression")
	if len(p.operands) > 0 && len(scripts) == 0 {
		script := p.operands[0]
		if p.has(r.lists["changes"]) && script.Static && script.Text == "" && len(p.operands) > 1 { // the suffix of BSD's -i
			script = p.operands[1]
		}
		scripts = append(scripts, script)
	}
	doubt := p.hasStartOf(r.lists["scripts"])
	for _, s := range scripts {
		looks := sedLooks().MatchString(s.Text)
		if oneOf(c.Name, awks) {
			looks = !awkActs().MatchString(s.Text)
		}
		doubt = doubt || !s.Static || !looks
	}
	for _, word := range c.Args[1:] {
		doubt = doubt || hidesOption(word) && !word.Glob
	}
	if doubt {
		w.startsByPurpose(true, c.Name+" with a script that may run commands or write files")
	}
}
