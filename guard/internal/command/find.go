package command

import (
	"slices"
	"strings"
)

// findTakes holds the tests and actions of find (GNU 4.9 and BSD) that take one
// word.
const findTakes = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -atime -ctime -mmin -amin -cmin " +
	"-newer -anewer -cnewer -user -group -uid -gid -perm -links -inum -samefile -fstype -maxdepth -mindepth -printf -context -used -regextype -D -flags -Btime -Bmin"

// find looks at the commands that find runs and the files it writes.
func (w *walker) find(c Simple) {
	for i := 1; i < len(c.Args); i++ {
		word := c.Args[i]
		switch {
		case !word.Static:
			w.findDynamic(c, i)
		case oneOf(word.Text, "-exec -execdir -ok -okdir"):
			i = w.findExec(c, i)
		case oneOf(word.Text, "-fprint -fprint0 -fls -fprintf"):
			if i++; i < len(c.Args) {
				w.out.Writes = append(w.out.Writes, c.Args[i])
			}
			if word.Text == "-fprintf" {
				i++
			}
		case word.Text == "-files0-from":
			if i++; i < len(c.Args) {
				w.out.Reads = append(w.out.Reads, c.Args[i])
			}
		case oneOf(word.Text, findTakes) || strings.HasPrefix(word.Text, "-newer"):
			if i++; i < len(c.Args) && !c.Args[i].Static && !c.Args[i].single {
				w.findDynamic(c, i)
			}
		}
	}
}

// findDynamic judges a word that could turn out to be -exec. Alone, with a test
// after it, it could not name a program.
func (w *walker) findDynamic(c Simple, i int) {
	word := c.Args[i]
	if !word.mayBeOption() {
		return
	}
	if word.Glob { // "*.go" matches no action
		if tail := word.Text[strings.LastIndexByte(word.Text, '*')+1:]; strings.Contains(tail, ".") {
			return
		}
	} else if word.single {
		if i+1 == len(c.Args) {
			return
		}
		if next := c.Args[i+1]; next.Static && next.Text != "" && strings.IndexByte("-(!", next.Text[0]) >= 0 {
			return
		}
	}
	w.undecided(true, c.Name+" with a word that may be -exec: "+word.Text)
}

// findExec lists the command after -exec and returns the index of its last
// word.
func (w *walker) findExec(c Simple, i int) int {
	start := i + 1
	end := start
	ended := 0 // the index of the last word that may turn out to be ";"
	for end < len(c.Args) && !(c.Args[end].Static && (c.Args[end].Text == ";" || c.Args[end].Text == "+" && mayBeBraces(c.Args[end-1]))) {
		switch word := c.Args[end]; {
		case ended > 0 && word.Static && oneOf(word.Text, "-exec -execdir -ok -okdir"):
			w.inner(c.Name+" "+c.Args[i].Text, fill(c.Args[start:ended], "{}"), nil, nil)
			w.findExec(c, end)
			ended = 0
		case ended > 0 && word.mayBeOption() && !word.Static && end+2 < len(c.Args):
			w.undecided(true, c.Name+" with a word that may be -exec: "+word.Text)
		case end > start && !word.Static && !word.Glob && (word.prefix == "" || word.prefix == ";"):
			ended = end
		}
		end++
	}
	if ended > 0 && (c.Args[ended].prefix == ";" || end == len(c.Args)) { // ';'$x, or nothing else ends it
		w.inner(c.Name+" "+c.Args[i].Text, fill(c.Args[start:ended], "{}"), nil, nil)
	}
	if end > start {
		args := fill(c.Args[start:end], "{}")
		for k := range args {
			args[k].found = args[k].Text == "{}" && !args[k].Static && c.findsNoOption()
		}
		if end < len(c.Args) && c.Args[end].Text == "+" {
			args[len(args)-1].single = false // {} is many files
		}
		w.inner(c.Name+" "+c.Args[i].Text, args, nil, nil)
	}
	return end
}

// findsNoOption reports whether no name that find finds looks like an option: they begin
// with what it is given, or with "./".
func (c Simple) findsNoOption() bool {
	readsFrom, _ := c.findPaths()
	return !slices.ContainsFunc(readsFrom, func(w Word) bool { return !w.Static || w.Text == "" }) &&
		!slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "--" || w.Text == "-f" })
}

// mayBeBraces reports whether a word is the {} that "+" must follow, or may be.
func mayBeBraces(word Word) bool {
	return word.Text == "{}" || !word.Static && (word.prefix == "" || word.prefix == "{}")
}

// fd looks at the command that fd runs for each result: all words after -x, up
// to ";".
func (w *walker) fd(c Simple) {
	for i := 1; i < len(c.Args); i++ {
		word := c.Args[i]
		if !word.Static {
			if word.mayBeOption() && !word.single {
				w.undecided(true, c.Name+" with a word that may be -x: "+word.Text)
			}
			continue
		}
		name, value, attached := strings.Cut(word.Text, "=")
		long := len(name) > 3 && (strings.HasPrefix("--exec", name) || strings.HasPrefix("--exec-batch", name))
		short := len(name) > 1 && name[0] == '-' && name[1] != '-' && strings.ContainsAny(name, "xX")
		switch {
		case long && attached || short && !strings.HasSuffix(name, "x") && !strings.HasSuffix(name, "X"):
			w.undecided(true, c.Name+" runs "+value)
		case long || short:
			end := i + 1
			for end < len(c.Args) && c.Args[end].Text != ";" {
				end++
			}
			if end > i+1 {
				w.inner(c.Name+" -x", fdFill(c.Args[i+1:end]), nil, nil)
			}
			i = end
		}
	}
}

// fdFill fills in the placeholders of fd ({}, {/}, {.} …); without any the file
// comes last.
func fdFill(args []Word) []Word {
	for _, word := range args {
		if strings.Contains(word.Text, "{") {
			return fill(args, "{")
		}
	}
	return fill(args, "")
}
