package command

import (
	"path"
	"slices"
	"strings"
)

// A role says what the operands of a program are.
type role uint8

const (
	noFiles  role = iota // words that name no file
	reads                // files that are read
	writes               // files that are written, made or removed
	copies               // files that are read, and last the one that is written
	moves                // files that are removed, and last the one that is written
	pattern              // a pattern or program, then files that are read
	settings             // a mode or an owner, then files that are changed
	inOut                // a file that is read, then one that is written
	outIn                // a file that is changed, then one that is read
	inPlace              // files that are replaced by others
)

// A program says which words of a command name files, and whether the command
// only reads.
type program struct {
	role     role
	readOnly bool
	short    string // options with values, as in spec
	long     string
	danger   string // options that end readOnly: they write or start something, or read what a file names
	reads    string // options whose value is a file that is read
	writes   string // options whose value is a file that is written
	instead  string // options that take the place of a leading pattern operand
}

// programs is the table of programs whose words are understood. Options are
// those of GNU coreutils 9, diffutils 3, findutils 4, grep 3 and of BSD where
// these differ; an option that is not listed is taken for one without value.
// Nothing writes to it.
var programs = map[string]program{
	"cat": {role: reads, readOnly: true}, "tac": {role: reads, readOnly: true, short: "s:"}, "nl": {role: reads, readOnly: true, short: "b:d:f:h:i:l:n:s:v:w:"},
	"head": {role: reads, readOnly: true, short: "c:n:"}, "tail": {role: reads, readOnly: true, short: "c:n:s:", long: "pid: sleep-interval: bytes: lines:"},
	"wc": {role: reads, readOnly: true, long: "files0-from:", reads: "files0-from"}, "ls": {role: reads, readOnly: true, short: "I:T:w:", long: "ignore: hide: width:"},
	"dir": {role: reads, readOnly: true}, "stat": {role: reads, readOnly: true, short: "c:f", long: "format: printf:"}, "file": {role: reads, readOnly: true, short: "e:F:f:m:P:", long: "files-from: magic-file: exclude: separator: parameter:", reads: "f files-from m magic-file", danger: "C compile f files-from m magic-file"},
	"du": {role: reads, readOnly: true, short: "B:d:t:X:", long: "exclude: exclude-from: files0-from: max-depth:", reads: "X exclude-from files0-from"}, "df": {role: reads, readOnly: true, short: "B:t:x:"},
	"diff": {role: reads, readOnly: true, short: "C:U:I:W:x:X:S:F:D:", long: "exclude-from: from-file: to-file:", reads: "X exclude-from from-file to-file", danger: "l paginate"},
	"cmp":  {role: reads, readOnly: true, short: "i:n:"}, "comm": {role: reads, readOnly: true}, "paste": {role: reads, readOnly: true, short: "d:"}, "join": {role: reads, readOnly: true, short: "1:2:a:e:j:o:t:v:"},
	"cut": {role: reads, readOnly: true, short: "b:c:d:f:", long: "bytes: characters: delimiter: fields: output-delimiter:"}, "fold": {role: reads, readOnly: true, short: "w:"}, "fmt": {role: reads, readOnly: true, short: "w:g:p:"},
	"expand": {role: reads, readOnly: true, short: "t:"}, "unexpand": {role: reads, readOnly: true, short: "t:"}, "pr": {role: reads, readOnly: true, short: "D:h:l:N:o:w:W:", long: "columns: date-format: header: length: first-line-number: indent: width: page-width:"}, "tsort": {role: reads, readOnly: true}, "rev": {role: reads, readOnly: true}, "column": {role: reads, readOnly: true, short: "c:s:o:N:O:R:T:H:t"},
	"sort": {role: reads, readOnly: true, short: "k:o:S:t:T:", long: "key: output: files0-from: temporary-directory: field-separator:", reads: "files0-from", writes: "o output T temporary-directory", danger: "o output compress-program T temporary-directory files0-from"},
	"uniq": {role: inOut, readOnly: true, short: "f:s:w:"}, "shuf": {role: reads, readOnly: true, short: "i:n:o:", long: "output: random-source:", writes: "o output", danger: "o output"},
	"md5sum": hashLike, "sha1sum": hashLike, "sha224sum": hashLike, "sha256sum": hashLike, "sha384sum": hashLike,
	"sha512sum": hashLike, "shasum": {role: reads, readOnly: true, short: "a:", danger: "c check"}, "md5": {role: reads, readOnly: true}, "b2sum": {role: reads, readOnly: true, short: "l:", danger: "c check"}, "cksum": {role: reads, readOnly: true, short: "a:l:", danger: "c check"}, "sum": {role: reads, readOnly: true},
	"od": {role: reads, readOnly: true, short: "A:j:N:S:t:w:"}, "hexdump": {role: reads, readOnly: true, short: "e:f:n:s:", reads: "f"}, "xxd": {role: inOut, readOnly: true, short: "c:g:l:o:s:n:"}, "strings": {role: reads, readOnly: true, short: "n:t:e:T:"},
	"base64": {role: reads, readOnly: true, short: "w:o:i:", reads: "i", writes: "o output", danger: "o output"}, "base32": {role: reads, readOnly: true, short: "w:"},
	"grep": grepLike, "egrep": grepLike, "fgrep": grepLike, "ggrep": grepLike,
	"rg": {role: pattern, readOnly: true, short: "A:B:C:e:f:g:j:m:M:t:T:r:E:", long: "regexp: file: glob: iglob: type: type-not: max-count: max-depth: context: replace: sort: sortr: ignore-file: color: colors: engine: encoding: threads: max-filesize: max-columns: type-add: pre: pre-glob: hostname-bin:",
		reads: "f file ignore-file", danger: "pre hostname-bin z search-zip", instead: "e f regexp file files type-list version V"},
	"fd": fdLike, "fdfind": fdLike,
	"jq":   {role: pattern, readOnly: true, short: "f:L:", long: "from-file: indent:", reads: "f from-file L", instead: "f from-file", danger: "f from-file L"},
	"tree": {role: reads, readOnly: true, short: "L:I:P:o:H:T:", long: "filelimit: charset: sort: timefmt: output: hintro: houtro: infofile: gitfile:", reads: "hintro houtro infofile gitfile", writes: "o output", danger: "o output R"}, "realpath": {role: reads, readOnly: true, long: "relative-to: relative-base:"}, "readlink": {role: reads, readOnly: true},
	"which": {readOnly: true}, "type": {readOnly: true}, "whereis": {readOnly: true}, "echo": {readOnly: true}, "printf": {readOnly: true, short: "v:"}, "pwd": {readOnly: true}, "true": {readOnly: true}, "false": {readOnly: true}, ":": {readOnly: true},
	"basename": {readOnly: true}, "dirname": {readOnly: true}, "seq": {readOnly: true}, "numfmt": {readOnly: true}, "sleep": {readOnly: true}, "tr": {readOnly: true}, "expr": {readOnly: true}, "uname": {readOnly: true}, "whoami": {readOnly: true}, "id": {readOnly: true}, "groups": {readOnly: true},
	"arch": {readOnly: true}, "nproc": {readOnly: true}, "uptime": {readOnly: true}, "free": {readOnly: true}, "cal": {readOnly: true}, "tty": {readOnly: true}, "getconf": {readOnly: true}, "locale": {readOnly: true}, "lsblk": {readOnly: true}, "lscpu": {readOnly: true},
	"date": {readOnly: true, short: "d:f:r:s:", long: "date: file: reference: set:", reads: "f file r reference", danger: "s set"}, "test": {readOnly: true}, "[": {readOnly: true}, "cd": {role: reads, readOnly: true}, "pushd": {role: reads, readOnly: true}, "popd": {readOnly: true}, "dirs": {readOnly: true},
	"exit": {readOnly: true}, "return": {readOnly: true}, "break": {readOnly: true}, "continue": {readOnly: true}, "shift": {readOnly: true}, "wait": {readOnly: true}, "read": {readOnly: true}, "set": {readOnly: true}, "shopt": {readOnly: true}, "unset": {readOnly: true}, "trap": {readOnly: true},
	"local": {readOnly: true}, "declare": {readOnly: true}, "typeset": {readOnly: true}, "readonly": {readOnly: true}, "export": {readOnly: true}, "getopts": {readOnly: true}, "mapfile": {readOnly: true}, "readarray": {readOnly: true}, "let": {readOnly: true}, "jobs": {readOnly: true, danger: "x"}, "umask": {readOnly: true}, "ulimit": {readOnly: true}, "eval": {},
	"find": {readOnly: true}, "gfind": {readOnly: true}, "sed": {readOnly: true}, "gsed": {readOnly: true}, "awk": {readOnly: true}, "gawk": {readOnly: true}, "mawk": {readOnly: true}, "nawk": {readOnly: true}, "git": {readOnly: true},

	"rm": {role: writes}, "rmdir": {role: writes}, "unlink": {role: writes}, "shred": {role: writes, short: "n:s:"}, "touch": {role: writes, short: "d:r:t:", long: "date: reference:", reads: "r reference"}, "mkdir": {role: writes, short: "m:", long: "mode:"},
	"mkfifo": {role: writes, short: "m:"}, "tee": {role: writes}, "truncate": {role: writes, short: "r:s:", long: "reference: size:", reads: "r reference"}, "mktemp": {role: noFiles, short: "p:", writes: "p"},
	"cp": copyLike, "mv": {role: moves, short: "S:t:", long: "suffix: target-directory:", writes: "t target-directory"}, "ln": copyLike, "install": {role: copies, short: "g:m:o:t:S:", long: "group: mode: owner: suffix: target-directory:", writes: "t target-directory"},
	"rsync": {role: copies, short: "e:f:B:T:M:", long: "exclude: include: exclude-from: include-from: files-from: log-file: write-batch: only-write-batch: backup-dir: temp-dir: partial-dir:", reads: "exclude-from include-from files-from",
		writes: "log-file write-batch only-write-batch backup-dir T temp-dir partial-dir"},
	"chmod": {role: settings, long: "reference:", reads: "reference"}, "chown": {role: settings, long: "reference: from:", reads: "reference"}, "chgrp": {role: settings, long: "reference:", reads: "reference"},
	"gzip": {role: inPlace, short: "S:"}, "gunzip": {role: inPlace, short: "S:"}, "bzip2": {role: inPlace}, "bunzip2": {role: inPlace}, "xz": {role: inPlace}, "unxz": {role: inPlace}, "zstd": {role: inPlace, short: "o:", writes: "o"},
	"zcat": {role: reads}, "bzcat": {role: reads}, "xzcat": {role: reads}, "zgrep": {role: pattern, short: "e:f:", reads: "f", instead: "e f"}, "less": {role: reads}, "more": {role: reads}, "bat": {role: reads, short: "l:r:H:"}, "batcat": {role: reads, short: "l:r:H:"}, "split": {role: inOut, short: "a:b:C:l:n:t:"},
	"curl":  {short: "o:H:d:X:u:A:e:b:c:F:T:x:w:K:D:E:m:", long: "output-dir: output: header: data: data-binary: request: upload-file: config: cookie: cookie-jar: dump-header: cert: key: cacert:", reads: "T upload-file K config b cookie cert E key cacert", writes: "o output output-dir c cookie-jar D dump-header"},
	"wget":  {short: "O:o:P:a:i:", long: "output-document: output-file: directory-prefix: append-output: input-file: post-file: body-file:", reads: "i input-file post-file body-file", writes: "O output-document o output-file P directory-prefix a append-output"},
	"patch": {role: outIn, short: "i:p:d:o:r:B:D:F:V:x:Y:z:", reads: "i input", writes: "o output r d directory", long: "input: output: directory:"}, "dos2unix": {role: inPlace}, "unix2dos": {role: inPlace},
	"tar": {}, "gtar": {}, "bsdtar": {}, "zip": {role: outIn, short: "b:n:t:x:i:P:s:", long: "out:", writes: "O out b"}, "unzip": {role: reads, short: "d:P:", writes: "d"},
}

var (
	grepLike = program{role: pattern, readOnly: true, short: "A:B:C:D:d:e:f:m:", long: "after-context: before-context: context: regexp: file: max-count: include: exclude: exclude-from: exclude-dir: color:: colour:: label: binary-files: directories: devices:",
		reads: "f file exclude-from", instead: "e f regexp file"}
	fdLike = program{role: pattern, readOnly: true, short: "C:d:t:e:E:S:c:j:o:x:X:", long: "max-depth: min-depth: exact-depth: type: extension: exclude: size: changed-within: changed-before: owner: color: threads: base-directory: search-path: ignore-file: exec: exec-batch: format:",
		reads: "C base-directory search-path ignore-file", danger: "x X exec exec-batch l list-details"}
	// hashLike reads with -c what another file lists.
	hashLike = program{role: reads, readOnly: true, danger: "c check"}
	copyLike = program{role: copies, short: "S:t:", long: "suffix: target-directory:", writes: "t target-directory"}
)

// known reports whether a name means something to this package, so that a
// function of that name would mislead it.
func known(name string) bool {
	name = path.Base(name)
	if _, ok := programs[name]; ok {
		return true
	}
	if _, ok := wrapperOf(name); ok {
		return true
	}
	l := launcherOf(name)
	return isInterpreter(name) || l.names != "" || oneOf(name, starters) ||
		oneOf(name, "bash sh dash ash rbash zsh ksh mksh fish csh tcsh . source alias enable hash bind complete compgen fc dd kill bfs original-awk "+
			"npx bunx pnpx uvx npm pnpm yarn bundle poetry pipenv uv")
}

// systemDirs are the directories whose programs are what their names say.
const systemDirs = "/bin /usr/bin /sbin /usr/sbin"

// ReadOnly reports whether the command belongs to the built-in set that only
// looks, with none of the options that write or start something. The files it
// is given are a question of their own: see [Simple.Paths].
//
// A wrapper that changes nothing by itself (timeout, xargs, bash -c of fixed
// text) is read-only: what it runs is a command of its own in the Analysis. So
// is a call of a function whose body is in the text.
func (c Simple) ReadOnly() bool {
	if c.Name == "" || len(c.Undecidable) > 0 || c.unsafeEnv {
		return false
	}
	if dir := path.Dir(c.Args[0].Text); c.Args[0].Text != c.Name && !oneOf(dir, systemDirs) {
		return false // ./ls is somebody's program
	}
	if c.transparent || c.local {
		return true
	}
	p, ok := programs[c.Name]
	if !ok || !p.readOnly {
		return isInterpreter(c.Name) && asksVersion(c) || c.reports()
	}
	switch c.Name {
	case "git":
		return gitLooks(c)
	case "find", "gfind":
		return c.findLooks()
	case "sed", "gsed":
		_, _, parsed := sedParse(c)
		return !parsed.has("i in-place")
	case "date":
		return !c.hasDanger(p) && c.operandsStartWith("+")
	case "jq", "strings":
		return !c.hasDanger(p) && !c.readsByItself()
	case "uniq", "xxd":
		return len(p.parse(c).operands) < 2 && !c.manyWords()
	}
	return !c.hasDanger(p)
}

// reports tells of programs that do nothing but say something when they are called so. Those
// that may be another program by what stands in the workspace (cargo, yarn) are not among
// them.
func (c Simple) reports() bool {
	args := texts(c.Args[1:])
	text := strings.Join(args, " ")
	switch c.Name {
	case "ps": // not "e": the environment of each
		return text == "" || oneOf(text, "aux ax -ef -e -A -eo -u -f")
	case "hostname", "history", "times":
		return text == ""
	case "gcc", "g++", "clang", "make", "cmake", "npm", "java", "javac", "docker", "kubectl", "gh":
		return oneOf(text, "--version") || c.Name == "npm" && text == "-v"
	case "unzip":
		return len(args) > 1 && args[0] == "-l" && !slices.ContainsFunc(args[1:], isOption)
	case "tar":
		return len(args) > 1 && strings.Contains(args[0], "t") && strings.Trim(args[0], "-tvzjJf") == "" && !slices.ContainsFunc(args[1:], isOption)
	}
	return false
}

// FollowsLinks reports whether a read-only command goes through the symbolic links
// that it meets below the directories it is given.
func (c Simple) FollowsLinks() bool {
	p, ok := programs[c.Name]
	if !ok {
		return false
	}
	has := p.parse(c).hasStartOf
	switch c.Name {
	case "grep", "egrep", "fgrep", "ggrep":
		return has("R dereference-recursive")
	case "rg", "fd", "fdfind", "du":
		return has("L follow dereference")
	case "ls", "dir":
		return has("R recursive") && has("L dereference")
	case "tree":
		return has("l")
	case "diff":
		return has("r recursive") && !has("no-dereference")
	case "find", "gfind":
		return slices.ContainsFunc(c.Args[1:], func(w Word) bool { return oneOf(w.Text, "-L -follow") })
	}
	return false
}

// Recurses reports whether a read-only command may go into the directories that it is
// given.
func (c Simple) Recurses() bool {
	switch c.Name {
	case "cat", "tac", "nl", "head", "tail", "wc", "sed", "awk", "file", "stat", "cut", "od", "xxd", "strings", "md5sum", "sha1sum", "sha256sum", "basename", "dirname", "echo", "realpath":
		return false
	case "grep", "egrep", "fgrep":
		return programs[c.Name].parse(c).hasStartOf("r R recursive dereference-recursive d directories")
	}
	return true
}

// readsByItself reports whether a word makes jq or strings read files that are not
// among its words: import "x" {search: "/d"}, and @file, which holds further words.
func (c Simple) readsByItself() bool {
	for _, word := range c.Args[1:] {
		switch text := word.Text; {
		case c.Name == "strings" && (strings.HasPrefix(text, "@") || !word.Static && !word.single && word.prefix == ""),
			c.Name == "jq" && (strings.Contains(text, "import") || strings.Contains(text, "include")):
			return true
		}
	}
	return false
}

func (p program) parse(c Simple) parsed {
	return spec{short: p.short, long: p.long, permute: true, open: true}.parse(c.Args)
}

// hasDanger reports whether an option that ends read-only is there, or may be:
// hidden in a dynamic word, or shortened.
func (c Simple) hasDanger(p program) bool {
	if p.danger == "" {
		return false
	}
	for _, word := range c.Args[1:] {
		if !word.Static && word.MayBeOption() {
			return true
		}
	}
	return p.parse(c).hasStartOf(p.danger)
}

// manyWords reports whether a word may become several.
func (c Simple) manyWords() bool {
	for _, word := range c.Args[1:] {
		if !word.Static && !word.single {
			return true
		}
	}
	return false
}

func (c Simple) operandsStartWith(prefix string) bool {
	for _, word := range programs[c.Name].parse(c).operands {
		if !strings.HasPrefix(word.Text, prefix) || !word.Static && !word.single {
			return false
		}
	}
	return true
}

// findLooks reports whether find does nothing but print names, and run commands that
// are judged by themselves: not those that it runs in other directories.
func (c Simple) findLooks() bool {
	for i, word := range c.Args[1:] {
		if !word.Static && word.MayBeOption() && !oneOf(c.Args[i].Text, findTakes) {
			return false
		}
		if word.Static && oneOf(word.Text, "-execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from") {
			return false
		}
	}
	return true
}
