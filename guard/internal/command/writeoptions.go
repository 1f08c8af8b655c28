package command

import "strings"

// outputOptions are options, without dashes, by which programs of every kind are told
// what to write; those that begin with "out" and "dest" are too.
const outputOptions = "o d target target-dir prefix root install-dir install-path download-dir coverprofile cpuprofile memprofile blockprofile mutexprofile trace exdir log-file logfile"

// Outputs returns the values of options that name, by convention, what a program writes
// that is not known: gcc -o x, go test -coverprofile=x, openssl rand -out x. [Simple.Paths] knows
// those of others.
func (c Simple) Outputs() (files []Word) {
	_, described := recordOf("programs", c.Name)
	if c.Name == "git" || c.ReadOnly() || len(c.Undecidable) == 0 && (c.transparent || c.Local || described && !c.OperandsUnknown()) {
		return nil
	}
	for i, word := range c.Args[1:] {
		text := word.Text
		if len(text) < 2 || text[0] != '-' || !word.Static {
			continue
		}
		name, value, attached := strings.Cut(strings.TrimLeft(text, "-"), "=")
		switch {
		case attached && isOutput(name):
			files = append(files, Word{Text: value, Static: true, Home: strings.HasPrefix(value, "~/"), single: true})
		case isOutput(name) && i+2 < len(c.Args):
			files = append(files, c.Args[i+2])
		case strings.HasPrefix(text, "-o") && len(text) > 2 && strings.ContainsRune("./~", rune(text[2])): // gcc -o../x
			files = append(files, Word{Text: text[2:], Static: true, single: true})
		}
	}
	return files
}

func isOutput(name string) bool {
	return oneOf(name, outputOptions) || strings.HasPrefix(name, "out") || strings.HasPrefix(name, "dest")
}

// tarPaths returns what tar reads and writes: which of its words is the archive, and
// whether that is written, depends on what it is to do.
func tarPaths(c Simple) (readsFrom, writesTo []Word) {
	args := tarParse(c)
	files := args.values("f file")
	switch {
	case args.has("c create r append u update A catenate concatenate"):
		return append(args.values("T files-from X exclude-from"), args.operands...), files
	case args.has("x extract get"):
		writesTo = append(args.values("C directory one-top-level"), args.values("keep-directory-symlink")...)
		if args.has("P absolute-names") {
			writesTo = append(writesTo, fixed("/")) // wherever the archive says
		}
		return append(args.values("T files-from X exclude-from"), files...), writesTo
	case args.has("delete"):
		return files, files
	}
	return append(args.values("T files-from X exclude-from"), files...), nil
}

// tarParse also reads the old form, whose first word is a cluster of letters and whose
// values follow in their order: tar cfC a.tar dir.
func tarParse(c Simple) parsed {
	spec := spec{short: "f:C:T:X:b:g:H:K:L:N:V:I:F:", long: "file: directory: files-from: exclude-from: exclude: transform: one-top-level:: strip-components: owner: group: mode: mtime:", permute: true, open: true}
	if len(c.Args) < 2 || !c.Args[1].Static || c.Args[1].Text == "" || c.Args[1].Text[0] == '-' {
		return spec.parse(c.Args)
	}
	args, rest := []Word{c.Args[0]}, c.Args[2:]
	for _, letter := range []byte(c.Args[1].Text) {
		args = append(args, fixed("-"+string(letter)))
		if spec.shortTakes(letter) == 1 && len(rest) > 0 {
			args, rest = append(args, rest[0]), rest[1:]
		}
	}
	return spec.parse(append(args, rest...))
}
