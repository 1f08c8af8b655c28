package command

import "strings"

// A launcher is a program that starts another one only if an option says so.
type launcher struct {
	names  string // that the program goes by
	short  string // options with values, which must be told from options
	launch string // options, or starts of them, that start a program
	words  string // words, or starts of options, for programs without getopt
}

// launcherOf returns the options of a program that start other programs.
func launcherOf(name string) launcher {
	if tool, version, ok := strings.Cut(name, "-"); ok && strings.Trim(version, "0123456789.") == "" {
		name = tool // gcc-13
	}
	for _, l := range launchers {
		if oneOf(name, l.names) {
			return l
		}
	}
	return launcher{}
}

// rustLinkers are the options of the Rust compiler that name the linker.
const rustLinkers = "-Clinker= linker= --codegen=linker="

// launchers are looked at one after the other: a map of them would be built at each start.
var launchers = [...]launcher{
	{names: "tar gtar bsdtar", short: "f:C:T:X:b:g:H:K:L:N:V:", launch: "I F checkpoint-action to-command use-compress-program info-script new-volume-script rsh-command rmt-command"},
	{names: "rg", short: "A:B:C:e:f:g:j:m:M:t:T:r:E:", launch: "z pre hostname-bin search-zip"},
	{names: "sort gsort", short: "k:o:S:t:T:", launch: "compress-program"},
	{names: "zip", launch: "T unzip-command"},
	{names: "rsync", launch: "e rsh rsync-path"},
	{names: "npx bunx pnpx npm pnpm yarn", launch: "c call script-shell node-options shell-mode", words: "--userconfig --globalconfig --viewer --editor --git="},
	{names: "cargo", launch: "config", words: rustLinkers},
	{names: "hg", launch: "config"},
	{names: "ssh", short: "B:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w:", launch: "F I"},
	{names: "scp sftp", short: "c:D:F:i:J:l:o:P:S:X:b:B:R:s:", launch: "F S D"},
	{names: "man", launch: "P pager H html C config-file preprocessor t troff p"},
	{names: "pandoc", short: "f:t:r:w:o:F:L:V:M:d:H:B:A:T:c:", launch: "F filter L lua-filter pdf-engine d defaults"},
	{names: "wget", short: "O:o:P:", launch: "e execute use-askpass config"},
	{names: "curl", short: "o:H:d:X:u:A:e:b:c:F:T:x:w:", launch: "K config"},
	{names: "install ginstall", short: "g:m:o:t:S:", launch: "s strip strip-program"},
	{names: "split", short: "a:b:C:l:n:t:", launch: "filter"},
	{names: "patch", short: "i:p:d:o:r:B:D:F:V:x:Y:z:", launch: "e ed"},
	{names: "diff", short: "C:U:I:W:x:X:S:F:D:", launch: "l paginate"},
	{names: "tcpdump", short: "i:w:r:c:C:G:W:s:F:", launch: "z"},
	{names: "fzf", short: "q:f:d:n:m:", launch: "preview bind"},
	{names: "ag ack bat batcat delta", launch: "pager"},
	{names: "cpio", launch: "rsh-command"},
	{names: "svn", launch: "diff-cmd diff3-cmd editor-cmd config-option config-dir"},
	{names: "cmake", short: "S:B:G:D:", launch: "E P"},
	{names: "apt apt-get dpkg", launch: "o option c config-file pre-invoke post-invoke"},
	{names: "make gmake", short: "C:f:I:j::l::o:W:", launch: "E eval", words: "SHELL= .SHELLFLAGS= MAKEFLAGS="},
	{names: "go", words: "-exec -toolexec -vettool --exec --toolexec --vettool -ldflags=-extld --ldflags=-extld GOFLAGS="},
	{names: "gcc g++ cc c++ c99 clang clang++ gfortran tcc", words: "-wrapper -fplugin= -fpass-plugin= -iplugindir= -B -specs= --specs= -fuse-ld=/ -fuse-ld=. --ld-path= -Xclang -Xlinker -Wl,-plugin -Wl,--plugin -run @="},
	{names: "ld ld.bfd ld.gold ld.lld gold", words: "-plugin --plugin @="},
	{names: "ghc", words: "-e -F -pgm -fplugin= --interactive --run"},
	{names: "openssl", words: "-engine -provider"},
	{names: "exiftool", words: "-if -config -p -@"},
	{names: "nmap", words: "--script --datadir"},
	{names: "gs", words: "-dNOSAFER"},
	{names: "pdflatex xelatex lualatex latexmk tex latex pdftex xetex luatex lualatex-dev", words: "-sh --sh -enable-write18 --enable-write18 -e -lua --lua"},
	{names: "docker docker-compose podman podman-compose nerdctl kubectl oc lxc incus", words: "run exec create debug attach --kubeconfig --host -H --context --config"},
	{names: "helm", words: "plugin --kubeconfig --post-renderer"},
	{names: "rustc", words: rustLinkers},
	{names: "java", words: "-XX:OnError= -XX:OnOutOfMemoryError= -agentpath: -agentlib:"},
	{names: "gpg gpg2", words: "--photo-viewer --exec-path --agent-program --dirmngr-program --pinentry-program --options --homedir"},
	{names: "mypy pip pip3", words: "--python --editor"},
	{names: "nix", words: "run shell develop -c --command"},
	{names: "op infisical teller", words: "run plugin"},
	{names: "sops", words: "exec-env exec-file"},
	{names: "guix", words: "shell environment time-machine repl"},
	{names: "flatpak", words: "--command"},
	{names: "vagrant", words: "ssh -c --command"},
	{names: "just", words: "-c --command --shell --shell-arg --shell-command --chooser -e --edit"},
	{names: "ip", words: "exec -b -batch"},
}

// setsUp reports whether a word of the command sets what it, or its next call, runs.
func (c Simple) setsUp(i int) bool {
	text := c.Args[i].Text
	switch c.Name {
	case "go":
		return strings.Contains(text, "-extld") || text == "-w" && i > 1 && c.Args[1].Text == "env"
	case "gh":
		return i == 1 && oneOf(text, "alias extension extensions ext codespace cs") || i == 2 && text == "set" && c.Args[1].Text == "config"
	case "aws":
		return strings.Contains(text, "credential_process")
	case "ssh", "scp", "sftp": // -o ProxyCommand=x, in any case of letters
		text = strings.ToLower(text)
		return (strings.HasPrefix(text, "-o") || c.Args[i-1].Text == "-o") && (strings.Contains(text, "command") || strings.Contains(text, "include") || strings.Contains(text, "provider"))
	}
	return false
}

// launches makes a command undecidable that is told to start another program, or may be
// by a word that is not known.
func (w *walker) launches(c Simple) {
	l := launcherOf(c.Name)
	if l.names == "" && !oneOf(c.Name, "gh aws") {
		return
	}
	p := spec{short: l.short, permute: true, open: true}.parse(c.Args)
	for i, word := range c.Args[1:] {
		switch {
		// The options of curl and diff make them read and write files, no more.
		case !word.Static && word.MayBeOption() && !oneOf(c.Name, "curl diff") && (!word.Glob || oneOf(c.Name, "tar gtar bsdtar zip rsync")):
			w.undecided(true, c.Name+" with a word that may be an option: "+word.Text)
			return
		case i == 0 && oneOf(c.Name, "tar gtar bsdtar") && !isOption(word.Text) && strings.ContainsAny(word.Text, "IF"),
			namesLaunch(word.Text, l.words), c.setsUp(i + 1),
			oneOf(c.Name, "make gmake") && (strings.ContainsAny(word.Text, "`$") || oneOf(c.Args[i].Text, "-f --file --makefile") && (word.Text == "-" || strings.HasPrefix(word.Text, "/dev/"))):
			w.undecided(true, c.Name+" starts a program that its words name: "+word.Text)
			return
		}
	}
	if l.launch != "" && p.hasStartOf(l.launch) {
		w.undecided(true, c.Name+" starts a program that an option names")
	}
	if oneOf(c.Name, "npm pnpm yarn") && len(p.operands) > 1 && (p.operands[0].Text == "set" || oneOf(p.operands[0].Text, "config c") && oneOf(p.operands[1].Text, "set edit")) {
		w.undecided(true, c.Name+" config can set what runs its scripts")
	}
}

// namesLaunch reports whether a word is in list, or starts with an element of
// it that is an option or a variable; "@=" stands for a file of options.
func namesLaunch(word, list string) bool {
	for field := range strings.FieldsSeq(list) {
		prefix := field[0] == '-' || strings.HasSuffix(field, "=")
		if field == "@=" {
			field = "@"
		}
		if word == field || prefix && strings.HasPrefix(word, field) {
			return true
		}
	}
	return false
}

// runners are programs that run a command with the tools of a project, and
// subcommandRunners those that do so by a subcommand of runVerbs. npm, pnpm and yarn run a
// script of their project by "run", which is no program.
const (
	runners           = "npx bunx pnpx uvx cross-env dotenv dotenvx"
	subcommandRunners = "npm pnpm yarn bundle poetry pipenv pdm hatch rye uv pipx conda mamba micromamba mise asdf rbenv pyenv nodenv direnv devbox opam stack cabal pixi tox nvm fnm rvm"
	runVerbs          = "exec x dlx run tool do"
)

// runner returns where in the words of a program the command may begin that it runs with the
// tools of a project (npx, uv run, bundle exec …). A word after an option may be its value, or
// the program: both are looked at.
func runner(c Simple) (starts []int) {
	running := oneOf(c.Name, runners)
	if !running && !oneOf(c.Name, subcommandRunners) {
		return nil
	}
	option, found := false, false
	for i, word := range c.Args[1:] {
		switch {
		case word.Static && word.Text == "--":
			if running && i+2 < len(c.Args) {
				starts = append(starts, i+2)
			}
			return starts
		case found:
		case word.Static && isOption(word.Text):
			option = !strings.Contains(word.Text, "=") && !oneOf(word.Text, "-y --yes -q --quiet -s --silent")
		case word.Static && oneOf(word.Text, runVerbs) && !(word.Text == "run" && oneOf(c.Name, "npm pnpm yarn")) && (!running || oneOf(c.Name, "uv dotenv dotenvx")):
			running, option = true, false
		case !running:
			if !option && !(c.Name == "yarn" && strings.HasPrefix(word.Text, "workspace")) && !(c.Name == "yarn" && i > 0 && strings.HasPrefix(c.Args[i].Text, "workspace")) {
				return nil
			}
			option = false
		case word.Static && strings.Contains(word.Text, "="):
		default:
			starts = append(starts, i+1)
			found, option = !option && !oneOf(c.Name, "direnv nvm rvm mise opam dotenv"), false
		}
	}
	return starts
}

// runs looks at the commands that a runner may run. It is a program of the
// project as a rule, which the allow rule for the runner is meant for; a deny rule
// sees it as a form of the runner. Programs of the system are listed on their own.
func (w *walker) runs(c Simple, starts []int) {
	args := c.Args
	c.Args = args[:starts[0]] // the options after that are the inner program's
	w.launches(c)
	for _, first := range starts {
		inner := args[first:]
		if !inner[0].Static {
			w.undecided(true, c.Name+" runs a program whose name is not known: "+inner[0].Text)
			return
		}
		w.out.Commands[w.current].spelled(inner)
		if known(inner[0].Text) {
			w.inner(c.Name, inner, nil, nil)
		}
	}
}
