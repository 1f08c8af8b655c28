package command

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// steers reports whether a variable can change which program runs, or make one
// run something else: search paths, preloads, start-up files, pagers, editors,
// compiler and interpreter options, files of configuration that may hold
// commands.
func steers(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "HOME", "CDPATH", "SHELL", "FPATH", "ZDOTDIR", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND",
		"SHELLOPTS", "EXECIGNORE", "GLOBIGNORE", "INPUTRC", "FCEDIT", "HISTFILE",
		"PAGER", "MANPAGER", "SYSTEMD_PAGER", "EDITOR", "VISUAL", "SUDO_EDITOR", "BROWSER", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY",
		"EXINIT", "VIMINIT", "MYVIMRC", "SUDO_ASKPASS", "SSH_ASKPASS", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS",
		"TERMINFO", "TERMCAP", "GCONV_PATH", "LOCPATH", "NLSPATH", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
		"PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR",
		"AWKPATH", "AWKLIBPATH", "POSIXLY_CORRECT", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS",
		"GOFLAGS", "GOROOT", "GOENV", "GOTOOLCHAIN", "GOPROXY", "GOAUTH", "GOCACHEPROG", "CC", "CXX", "LD", "AR",
		"MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "MFLAGS", "RUSTC", "RUSTDOC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO_HOME", "RUSTUP_HOME",
		"TAR_OPTIONS", "TAPE", "RSYNC_RSH", "CVS_RSH", "RIPGREP_CONFIG_PATH", "KUBECONFIG", "KUBE_EDITOR", "KUBECTL_EXTERNAL_DIFF", "AWS_CONFIG_FILE",
		"DOCKER_HOST", "DOCKER_CONFIG", "COMPOSER_HOME", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE", "WGETRC", "CURL_HOME", "SCREENRC", "TMUX":
		return true
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "BASH_", "PYTHON", "NODE_", "NPM_CONFIG_", "npm_config_", "PIP_", "UV_", "YARN_",
		"CARGO_TARGET_", "CARGO_BUILD_", "DOTNET_"} {
		if strings.HasPrefix(name, prefix) {
			return !oneOf(name, "NODE_ENV NODE_NO_WARNINGS PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8 PYTHONFAULTHANDLER "+
				"GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE "+
				"CARGO_TARGET_DIR CARGO_BUILD_JOBS PIP_NO_CACHE_DIR PIP_DISABLE_PIP_VERSION_CHECK DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_NOLOGO")
		}
	}
	return false
}

// harmlessValue reports whether a steering variable is given a value that
// steers nowhere.
func harmlessValue(name, value string) bool {
	switch name {
	case "PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER":
		return value == "cat" || value == ""
	case "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL":
		return value == "true" || value == "false" || value == ":"
	case "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS":
		return value == "0" || value == "1"
	case "SHELL":
		return value == "/bin/bash" || value == "/bin/sh"
	}
	plain, ok := harmlessOptions[name]
	return ok && plain().MatchString(value)
}

// harmlessOptions are what variables that hold options are given as a rule: none of
// these names a program or a file.
var harmlessOptions = map[string]func() *regexp.Regexp{
	"NODE_OPTIONS": regular(`^(--(max-old-space-size=\d+|no-warnings|enable-source-maps|experimental-vm-modules|openssl-legacy-provider|trace-\w+)\b ?)*$`),
	"GOFLAGS":      regular(`^(-(mod=(mod|vendor|readonly)|count=\d+|tags=[\w,]+|buildvcs=(true|false|auto)|p=\d+|race|v|trimpath)\b ?)*$`),
	"MAKEFLAGS":    regular(`^-?(j ?\d*|s|k)$`),
	"RUSTFLAGS":    regular(`^(-[ADW] ?[\w-]+|-C ?(target-cpu|opt-level|debuginfo)=[\w-]+| )*$`),
	"CC":           regular(`^(gcc|clang|cc|tcc)(-\d+)?$`),
	"CXX":          regular(`^(g\+\+|clang\+\+|c\+\+)(-\d+)?$`),
	"MAVEN_OPTS":   regular(`^(-Xm[sx]\d+[kmg]? ?)*$`),
	"GOPROXY":      regular(`^(direct|off|https://proxy\.golang\.org(,direct)?)$`),
	"GOTOOLCHAIN":  regular(`^(local|auto)$`),
}

// evaluates reports whether bash takes a value given to the variable for an
// arithmetic expression, which may hold a command: RANDOM='a[$(id)]' runs id.
func evaluates(name string) bool {
	return oneOf(name, "RANDOM SECONDS OPTIND HISTCMD LINENO SRANDOM BASHPID BASH_SUBSHELL EPOCHSECONDS HISTSIZE HISTFILESIZE TMOUT")
}

// safeLead reports whether an allow rule passes the variable in front of a
// command: those that only change locale, colour, verbosity or the target of a
// build.
func safeLead(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "DEBUG",
		"NODE_ENV", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8",
		"GOOS", "GOARCH", "GOARM", "GOAMD64", "CGO_ENABLED", "GO111MODULE", "GOEXPERIMENT", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK", "GODEBUG",
		"RUST_BACKTRACE", "RUST_LOG", "CARGO_TERM_COLOR", "RAILS_ENV", "RACK_ENV", "DJANGO_DEBUG", "FLASK_ENV", "APP_ENV", "LOG_LEVEL", "VERBOSE", "HOST", "PORT",
		"DEBIAN_FRONTEND":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// addsToPath matches a PATH that keeps what it has, with directories after it or, from
// the home directory or the system, before it.
var addsToPath = regular(`^"?(((\$HOME|~|/usr|/opt)/[\w./-]+):)*\$(PATH|\{PATH\})(:[\w./$~-]+)*"?$`)

// setsVariable judges an assignment that lasts: value is its text, or "$" where
// that is not known.
func (w *walker) setsVariable(name, value string) {
	switch {
	case name == "PATH" && addsToPath().MatchString(value):
		w.undecided(false, growsPath)
	case steers(name) && !harmlessValue(name, value):
		w.undecided(true, setsPrefix+name)
	case evaluates(name) && strings.Trim(value, "0123456789") != "":
		w.undecided(true, "sets "+name+", which bash evaluates")
	}
}

// leads judges an assignment in front of the command c.
func (w *walker) leads(c *Simple, a *syntax.Assign) {
	name := a.Name.Value
	c.Assigns = append(c.Assigns, name)
	// `IFS= read -r line` changes nothing but how read splits its line.
	if name == "IFS" && c.Args[0].Static && c.Args[0].Text == "read" {
		return
	}
	value := w.value(a)
	if name == "PATH" && value == "$" && a.Value != nil && !a.Append {
		value = w.source(a.Value)
	}
	w.setsVariable(name, value)
	c.unsafeEnv = c.unsafeEnv || !safeLead(name) && !harmlessValue(name, value)
}

// leadsNamed is leads for an assignment in the words of the command at index.
func (w *walker) leadsNamed(index int, name, value string) {
	w.setsVariable(name, value)
	c := &w.out.Commands[index]
	c.Assigns = append(c.Assigns, name)
	c.unsafeEnv = c.unsafeEnv || !safeLead(name) && !harmlessValue(name, value)
}

// value returns what is assigned, "$" if that is not known.
func (w *walker) value(a *syntax.Assign) string {
	switch {
	case a.Array != nil || a.Append:
		return "$"
	case a.Value == nil:
		return ""
	}
	if v := w.word(a.Value); v.Static && !v.Home {
		return v.Text
	}
	return "$"
}

// declaration lists export, declare, local, readonly, typeset and nameref as
// the builtins they are.
func (w *walker) declaration(d *syntax.DeclClause) {
	c := Simple{Via: w.via, Outer: w.outer, Places: w.standing, Args: []Word{{Text: d.Variant.Value, Static: true, single: true}}}
	for _, a := range d.Args {
		c.Args = append(c.Args, w.declared(a))
	}
	c.Source = w.source(d)
	w.simple(c, nil)
	w.current = -1
}

// declared turns one operand of a declaration into a word again.
func (w *walker) declared(a *syntax.Assign) Word {
	switch {
	case a.Name == nil && a.Value != nil:
		return w.word(a.Value)
	case a.Name == nil:
		return Word{Text: w.source(a)}
	case a.Naked:
		return Word{Text: a.Name.Value, Static: a.Index == nil, single: true, prefix: a.Name.Value}
	}
	word := Word{Text: w.source(a), single: true, prefix: a.Name.Value + "=", array: a.Array != nil}
	if a.Array != nil || a.Index != nil || a.Value == nil {
		return word
	}
	v := w.word(a.Value)
	switch {
	case v.Home:
	case v.Static && !a.Append:
		word.Text, word.Static = word.prefix+v.Text, true
	default:
		word.prefix += v.prefix
	}
	return word
}

// arrays are the variables of a text that are arrays, and those that are declared
// with a value that is not known. Bash expands the value of a declared array that
// begins with "(", though it was quoted: declare -a 'a=($(rm x))'.
type arrays struct {
	names    map[string]bool
	declared []declared
}

// declared is a variable and the index of the command that declares it.
type declared struct {
	name    string
	command int
}

func (a *arrays) add(name string) {
	if a.names == nil {
		a.names = map[string]bool{}
	}
	a.names[name] = true
}

// array notes a variable that is an array. To bash, name=(…)#x is one word; the
// parser takes what follows "#" for a comment.
func (w *walker) array(a *syntax.Assign) {
	if a.Name == nil || a.Array == nil && a.Index == nil {
		return
	}
	w.out.arrays.add(a.Name.Value)
	if end := int(a.End().Offset()); a.Array != nil && end < len(w.text) && w.text[end] == '#' {
		w.undecided(true, "a comment right after an array, which bash takes for a part of it")
	}
}

const expandsArray = "the value of an array, which bash expands"

// declaresArrays judges the declarations whose value was not known, now that it is
// known which variables are arrays.
func (w *walker) declaresArrays() {
	for _, d := range w.out.arrays.declared {
		if w.out.arrays.names[d.name] {
			w.current = d.command
			w.undecided(true, expandsArray)
		}
	}
}

// valueOf judges what a declaration gives a variable.
func (w *walker) valueOf(name, value string, word Word, isArray bool) {
	known := word.prefix
	if _, after, ok := strings.Cut(word.prefix, "="); ok {
		known = after
	}
	if isArray || word.array {
		w.out.arrays.add(name)
	}
	switch {
	case word.array || !strings.Contains(word.Text, "="):
	case word.Static && !strings.HasPrefix(value, "("), known != "" && known[0] != '(' && !word.Static:
	case isArray:
		w.undecided(true, expandsArray)
	default:
		w.out.arrays.declared = append(w.out.arrays.declared, declared{name, w.current})
	}
}

// declares judges a declaration, whether the parser took it for one or it was
// found behind a wrapper or quotes.
func (w *walker) declares(c Simple) {
	isArray := slices.ContainsFunc(c.Args[1:], func(word Word) bool {
		return len(word.Text) > 1 && word.Text[0] == '-' && strings.ContainsAny(word.Text, "aA")
	})
	for _, word := range c.Args[1:] {
		name, value, _ := strings.Cut(word.Text, "=")
		name = strings.TrimSuffix(name, "+")
		switch {
		case word.Static && len(word.Text) > 1 && (word.Text[0] == '-' || word.Text[0] == '+'):
			if word.Text[0] == '-' && strings.ContainsAny(word.Text, "in") {
				w.undecided(true, "an integer or reference variable, whose value bash evaluates")
			}
			continue
		case !word.Static && !isName(strings.TrimSuffix(strings.TrimSuffix(word.prefix, "="), "+")):
			// `declare "$x"` may name a variable as a[$(cmd)].
			if i := strings.IndexByte(word.Text, '='); i < 0 || !isName(name) {
				w.undecided(true, c.Name+" of a dynamic name")
				continue
			}
		}
		if !isName(name) {
			w.undecided(true, c.Name+" of a name that bash evaluates: "+name)
			continue
		}
		w.valueOf(name, value, word, isArray)
		if strings.Contains(word.Text, "=") && !slices.Contains(w.out.values[name], value) {
			w.mayHoldOther(name)
		}
		if !word.Static && !(name == "PATH" && addsToPath().MatchString(value)) {
			value = "$"
		}
		w.setsVariable(name, value)
		if c.Name == "export" && !safeLead(name) {
			w.out.Commands[w.current].unsafeEnv = true
		}
	}
}

// arithmetic judges an arithmetic expression. Bash evaluates the value of a
// variable in it as an expression again, and a subscript in that may hold
// $(…): a='x[$(rm f)]'; echo $((a)).
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	found := false
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			found = found || !numeric(n) && !w.holdsNumber(n)
			return false
		case *syntax.CmdSubst:
			found = true // its output is evaluated
			return false
		case *syntax.Lit:
			found = found || namesVariable(n.Value) && !w.number[n.Value]
		case *syntax.SglQuoted:
			found = found || n.Dollar || namesVariable(n.Value)
		}
		return true
	})
	if found {
		w.undecided(true, "a variable in arithmetic, whose value bash evaluates")
	}
}

// namesVariable reports whether text in an arithmetic expression may be the name
// of a variable.
func namesVariable(s string) bool {
	return !isNumber(s) && strings.ContainsFunc(s, func(r rune) bool { return r == '_' || r > 0x7f || isLetter(byte(r)) })
}

// isNumber reports whether a literal is a number in one of bash's notations.
func isNumber(s string) bool {
	return s != "" && isDigit(s[0]) && strings.Trim(s, "0123456789abcdefABCDEFxX#") == ""
}

// numeric reports whether an expansion is always a number: $?, $#, $$, $!,
// ${#name}.
func numeric(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Index != nil || p.Exp != nil || p.Slice != nil || p.Repl != nil || p.Excl {
		return false
	}
	return p.Length || oneOf(p.Param.Value, "? # $ !")
}

// param judges a parameter expansion that evaluates text: a subscript, an
// offset, ${!name}, ${name@P}, ${name:=value}.
func (w *walker) param(p *syntax.ParamExp) {
	if p.Index != nil {
		w.arithmetic(plainSubscript(p.Index))
	}
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset)
		w.arithmetic(p.Slice.Length)
	}
	if p.Excl && p.Names == 0 && !isListIndex(p.Index) {
		w.undecided(true, "an indirect expansion, whose name bash evaluates")
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			w.setsVariable(p.Param.Value, "$")
		}
	case syntax.OtherParamOps:
		if p.Exp.Word == nil || !oneOf(p.Exp.Word.Lit(), "Q U u L A a K k E") {
			w.undecided(true, "a prompt expansion, which runs commands in its value")
		}
	}
}

// plainSubscript drops the subscripts @ and *, which are not evaluated.
func plainSubscript(x syntax.ArithmExpr) syntax.ArithmExpr {
	if isListIndex(x) {
		return nil
	}
	return x
}

func isListIndex(x syntax.ArithmExpr) bool {
	word, ok := x.(*syntax.Word)
	return ok && (word.Lit() == "@" || word.Lit() == "*")
}

// binaryTest judges [[ a -eq b ]], whose operands are arithmetic.
func (w *walker) binaryTest(t *syntax.BinaryTest) {
	switch t.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{t.X, t.Y} {
			if word, ok := side.(*syntax.Word); ok {
				w.arithmetic(unquoted(word))
			}
		}
	}
}

// unquoted looks through the quotes around a whole word.
func unquoted(word *syntax.Word) *syntax.Word {
	if len(word.Parts) == 1 {
		if q, ok := word.Parts[0].(*syntax.DblQuoted); ok {
			return &syntax.Word{Parts: q.Parts}
		}
	}
	return word
}

// unaryTest judges [[ -v name ]] and [[ -R name ]].
func (w *walker) unaryTest(t *syntax.UnaryTest) {
	if t.Op != syntax.TsVarSet && t.Op != syntax.TsRefVar {
		return
	}
	if word, ok := t.X.(*syntax.Word); ok {
		w.variableName("[[ "+t.Op.String(), w.word(word))
	}
}

// variableName judges a word that a builtin takes for the name of a variable
// and evaluates if it has a subscript.
func (w *walker) variableName(of string, word Word) {
	switch {
	case !word.Static:
		w.undecided(true, of+" of a dynamic name")
	case !isName(word.Text):
		if i := strings.IndexByte(word.Text, '['); i > 0 {
			sub := strings.TrimSuffix(word.Text[i+1:], "]")
			if isName(word.Text[:i]) && (sub == "@" || sub == "*" || sub != "" && strings.Trim(sub, "0123456789") == "") {
				return
			}
		}
		w.undecided(true, of+" of a name that bash evaluates: "+word.Text)
	}
}
