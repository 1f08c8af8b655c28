package command

import (
	"slices"
	"strings"
)

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

// sed makes scripts undecidable that can run commands (e, s///e) or write files
// that are not among its words (w, s///w), and those it cannot read.
func (w *walker) sed(c Simple) {
	scripts, _, p := sedParse(c)
	if at := slices.IndexFunc(c.Args, func(word Word) bool { return word.given && !word.found }); p.unsure != "" && at > 1 {
		// Files that xargs supplies: the script is judged as if none were an option.
		c.Args = slices.Clone(c.Args)
		c.Args[at].found = true
		if w.sed(c); len(w.out.Commands[w.current].Undecidable) == 0 {
			w.undecided(true, c.Name+suppliedOptions)
		}
		return
	}
	switch {
	case p.unsure != "":
		w.undecided(true, c.Name+": "+p.unsure)
		return
	case p.has("f file"):
		w.undecided(true, c.Name+" reads its script from a file")
		return
	}
	texts := make([]string, 0, len(scripts))
	for _, s := range scripts {
		if !s.Static {
			w.undecided(true, c.Name+" with a dynamic script")
			return
		}
		texts = append(texts, s.Text)
	}
	files, ok := sedScript(strings.Join(texts, "\n"))
	if !ok {
		w.undecided(true, c.Name+" with a script that may run commands or write files")
		return
	}
	for _, name := range files {
		w.out.Reads = append(w.out.Reads, Word{Text: name, Static: true, single: true})
	}
}

// sedScript reports whether a script can neither run commands nor write files,
// and returns the files it reads.
func sedScript(s string) (reads []string, ok bool) {
	r := sedReader{s: s}
	for {
		r.skip(" \t\n;{}")
		if r.s == "" {
			return r.reads, true
		}
		if !r.address() || !r.command() {
			return nil, false
		}
	}
}

// A sedReader reads a sed script from its start.
type sedReader struct {
	s     string
	reads []string
}

func (r *sedReader) skip(cutset string) { r.s = strings.TrimLeft(r.s, cutset) }

// address reads the addresses in front of a command: 3, $, /re/I, \cREc,
// 2~3, a,b, a,+3, a,~4, !.
func (r *sedReader) address() bool {
	for {
		switch {
		case r.s == "":
			return false
		case r.s[0] == '/':
			if r.s = r.s[1:]; !r.until('/') {
				return false
			}
			r.skip("IM")
		case r.s[0] == '\\' && len(r.s) > 1:
			delim := r.s[1]
			if r.s = r.s[2:]; !r.until(delim) {
				return false
			}
			r.skip("IM")
		case strings.IndexByte("0123456789$~+", r.s[0]) >= 0:
			r.skip("0123456789$~+")
		}
		r.skip(" \t")
		if r.s == "" || r.s[0] != ',' {
			break
		}
		r.s = r.s[1:]
		r.skip(" \t")
	}
	r.skip("! \t")
	return r.s != ""
}

// until reads up to and with the next delimiter that is not escaped.
func (r *sedReader) until(delim byte) bool {
	for i := 0; i < len(r.s); i++ {
		switch {
		case r.s[i] == '\\':
			i++
		case r.s[i] == delim:
			r.s = r.s[i+1:]
			return true
		}
	}
	return false
}

// command reads one command.
func (r *sedReader) command() bool {
	op := r.s[0]
	r.s = r.s[1:]
	switch op {
	case '{', '}':
		return true
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return r.end()
	case 'q', 'Q', 'l', 'L':
		r.skip(" \t0123456789")
		return r.end()
	case 'a', 'i', 'c':
		r.lines()
		return true
	case ':', 'b', 't', 'T':
		r.skip(" \t")
		label := strings.IndexAny(r.s, " \t\n;}")
		if label < 0 {
			label = len(r.s)
		}
		r.s = r.s[label:]
		return r.end()
	case '#':
		_, r.s, _ = strings.Cut(r.s, "\n")
		return true
	case 'r', 'R':
		var name string
		name, r.s, _ = strings.Cut(r.s, "\n")
		r.reads = append(r.reads, strings.TrimSpace(name))
		return true
	case 's':
		return r.substitute() && r.flags()
	case 'y':
		return r.substitute() && r.end()
	}
	return false // e, w, W, v and what is not known
}

// end reports whether nothing but a separator follows.
func (r *sedReader) end() bool {
	r.skip(" \t")
	return r.s == "" || strings.IndexByte("\n;}#", r.s[0]) >= 0
}

// lines skips the text of a, i and c: to the end of the line, and on where that
// ends in a backslash.
func (r *sedReader) lines() {
	for r.s != "" {
		i := strings.IndexAny(r.s, "\\\n")
		if i < 0 {
			r.s = ""
			return
		}
		escaped := r.s[i] == '\\'
		r.s = r.s[i+1:]
		if !escaped {
			return
		}
		if r.s != "" {
			r.s = r.s[1:]
		}
	}
}

func (r *sedReader) substitute() bool {
	if r.s == "" || r.s[0] == '\\' || r.s[0] == '\n' {
		return false
	}
	delim := r.s[0]
	r.s = r.s[1:]
	if !r.until(delim) {
		return false
	}
	return r.until(delim)
}

// flags reads the flags of s; e and w are not among the harmless ones.
func (r *sedReader) flags() bool {
	r.skip("gpiImM0123456789")
	return r.end()
}
