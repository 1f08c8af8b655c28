package command

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
		w.undecided(true, c.Name+" with a script that may run commands or write files")
	}
}
