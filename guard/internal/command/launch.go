package command

import "strings"

// A launcher is a program that starts another one only if an option says so.
type launcher struct {
	options spec   // those whose values must be told from options
	launch  string // options, or starts of them, that start a program
	words   string // words, or starts of options, for programs without getopt
}

// launcherOf returns the options of a program that start other programs.
func launcherOf(name string) launcher {
	switch name {
	case "tar", "gtar", "bsdtar":
		return launcher{spec{short: "f:C:T:X:b:g:H:K:L:N:V:", long: "file: directory: files-from: exclude-from: exclude: transform:", permute: true, open: true},
			"I F checkpoint-action to-command use-compress-program info-script new-volume-script rsh-command", ""}
	case "rg":
		return launcher{spec{short: "A:B:C:e:f:g:j:m:M:t:T:r:E:", permute: true, open: true}, "z pre hostname-bin search-zip", ""}
	case "sort", "gsort":
		return launcher{spec{short: "k:o:S:t:T:", permute: true, open: true}, "compress-program", ""}
	case "zip":
		return launcher{spec{permute: true, open: true}, "T unzip-command", ""}
	case "rsync":
		return launcher{spec{permute: true, open: true}, "e rsh rsync-path", ""}
	case "npx", "bunx", "pnpx", "npm", "pnpm", "yarn":
		return launcher{spec{permute: true, open: true}, "c call script-shell node-options shell-mode", ""}
	case "cargo", "hg":
		return launcher{spec{permute: true, open: true}, "config", ""}
	case "wget":
		return launcher{spec{short: "O:o:P:", permute: true, open: true}, "e execute use-askpass config", ""}
	case "curl":
		return launcher{spec{short: "o:H:d:X:u:A:e:b:c:F:T:x:w:", permute: true, open: true}, "K config", ""}
	case "install", "ginstall":
		return launcher{spec{short: "g:m:o:t:S:", permute: true, open: true}, "s strip strip-program", ""}
	case "split":
		return launcher{spec{short: "a:b:C:l:n:t:", permute: true, open: true}, "filter", ""}
	case "patch":
		return launcher{spec{short: "i:p:d:o:r:B:D:F:V:x:Y:z:", permute: true, open: true}, "e ed", ""}
	case "diff":
		return launcher{spec{short: "C:U:I:W:x:X:S:F:D:", permute: true, open: true}, "l paginate", ""}
	case "tcpdump":
		return launcher{spec{short: "i:w:r:c:C:G:W:s:F:", permute: true, open: true}, "z", ""}
	case "fzf":
		return launcher{spec{short: "q:f:d:n:m:", permute: true, open: true}, "preview bind", ""}
	case "ag", "bat", "batcat":
		return launcher{spec{permute: true, open: true}, "pager", ""}
	case "cpio":
		return launcher{spec{permute: true, open: true}, "rsh-command", ""}
	case "svn":
		return launcher{spec{permute: true, open: true}, "diff-cmd diff3-cmd editor-cmd config-option config-dir", ""}
	case "cmake":
		return launcher{launch: "E P", options: spec{short: "S:B:G:D:", permute: true, open: true}}
	case "apt", "apt-get", "dpkg":
		return launcher{spec{permute: true, open: true}, "o option c config-file pre-invoke post-invoke", ""}
	case "make", "gmake":
		return launcher{spec{short: "C:f:I:j::l::o:W:", long: "directory: file: makefile:", permute: true, open: true}, "E eval", "SHELL= .SHELLFLAGS= MAKEFLAGS="}
	case "go":
		return launcher{words: "-exec -toolexec -vettool --exec --toolexec --vettool"}
	case "gcc", "g++", "cc", "c++", "clang", "clang++":
		return launcher{words: "-wrapper -fplugin= -B -specs="}
	case "pdflatex", "xelatex", "lualatex", "latexmk", "tex", "latex":
		return launcher{words: "-shell-escape --shell-escape -enable-write18 --enable-write18 -e"}
	case "docker", "podman", "nerdctl", "kubectl", "oc":
		return launcher{words: "run exec create debug attach"}
	case "ip":
		return launcher{words: "exec -b -batch"}
	}
	return launcher{}
}

// launches makes a command undecidable that is told to start another program,
// in a way this package does not look through.
func (w *walker) launches(c Simple) {
	l := launcherOf(c.Name)
	if l.launch == "" && l.words == "" {
		return
	}
	for i, word := range c.Args[1:] {
		switch {
		case !word.Static && word.mayBeOption() && !word.single && !word.Glob:
			w.undecided(true, c.Name+" with a word that may be an option: "+word.Text)
			return
		case i == 0 && oneOf(c.Name, "tar gtar bsdtar") && word.Text != "" && word.Text[0] != '-' && strings.ContainsAny(word.Text, "IF"),
			namesLaunch(word.Text, l.words),
			l.words != "" && strings.ContainsAny(word.Text, "`$") && oneOf(c.Name, "make gmake"):
			w.undecided(true, c.Name+" starts a program that its words name: "+word.Text)
			return
		}
	}
	if l.launch == "" {
		return
	}
	p := l.options.parse(c.Args)
	if p.hasStartOf(l.launch) {
		w.undecided(true, c.Name+" starts a program that an option names")
	}
	for _, o := range p.options {
		if oneOf(c.Name, "make gmake") && oneOf(o.name, "f file makefile") && (!o.value.Static || o.value.Text == "-" || strings.HasPrefix(o.value.Text, "/dev/")) {
			w.undecided(true, c.Name+" reads its rules from its standard input")
		}
	}
}

// namesLaunch reports whether a word is in list, or starts with an element of
// it that is an option or a variable.
func namesLaunch(word, list string) bool {
	for list != "" {
		var field string
		field, list, _ = strings.Cut(list, " ")
		prefix := field[0] == '-' || strings.HasSuffix(field, "=")
		if word == field || prefix && strings.HasPrefix(word, field) {
			return true
		}
	}
	return false
}

// runner returns the index of the command in the words of a program that runs
// it with the tools of a project (npx, uv run, bundle exec …), or 0.
func runner(c Simple) int {
	i := 1
	switch c.Name {
	case "npx", "bunx", "pnpx", "uvx", "cross-env", "dotenv", "dotenvx":
	case "npm", "pnpm", "yarn", "bundle", "poetry", "pipenv", "pdm", "hatch", "rye", "uv", "pipx", "conda", "mamba", "micromamba",
		"mise", "asdf", "rbenv", "pyenv", "nodenv", "direnv", "devbox", "opam", "stack", "cabal":
		i = c.subcommand(1)
		if i == len(c.Args) || !oneOf(c.Args[i].Text, "exec x dlx run tool") || c.Args[i].Text == "run" && oneOf(c.Name, "npm pnpm yarn") {
			return 0
		}
		i++
		if c.Name == "direnv" {
			i++
		}
	default:
		return 0
	}
	for i < len(c.Args) {
		word := c.Args[i]
		switch {
		case word.Static && word.Text == "--":
			return min(i+1, len(c.Args)-1)
		case word.Static && oneOf(word.Text, "-p --package -n --name --with --python --from --env-file --extra --group --project --directory -w --workspace"):
			i++
		case word.Static && (strings.HasPrefix(word.Text, "-") || strings.Contains(word.Text, "=") || c.Name == "uv" && word.Text == "run"):
		default:
			return i
		}
		i++
	}
	return 0
}

// subcommand returns the index of the first word from i on that is no option.
func (c Simple) subcommand(i int) int {
	for i < len(c.Args) && c.Args[i].Static && strings.HasPrefix(c.Args[i].Text, "-") {
		i++
	}
	return i
}

// runs looks at the command that a runner runs. It is a program of the project
// as a rule, which the allow rule for the runner is meant for; a deny rule sees
// it as a form of the runner. Programs of the system are listed on their own.
func (w *walker) runs(c Simple, first int) {
	inner := c.Args[first:]
	c.Args = c.Args[:first] // the options after that are the inner program's
	w.launches(c)
	if !inner[0].Static {
		w.undecided(true, c.Name+" runs a program whose name is not known: "+inner[0].Text)
		return
	}
	cur := &w.out.Commands[w.current]
	cur.variants = append(cur.variants, join(inner))
	if known(inner[0].Text) {
		w.inner(c.Name, inner, nil, nil)
	}
}
