package command

import "strings"

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
	return oneOf(name, "NODE_OPTIONS GOFLAGS MAKEFLAGS RUSTFLAGS CC CXX MAVEN_OPTS GOPROXY GOTOOLCHAIN") && harmlessOptions().MatchString(value)
}

// harmlessOptions matches what variables that hold options are given as a rule: it names no program
// of the workspace and no file.
var harmlessOptions = regular(`^(--(max-old-space-size=\d+|no-warnings|enable-source-maps|experimental-vm-modules|trace-\w+)\b ?|-(mod=(mod|vendor|readonly)|count=\d+|tags=[\w,]+|p=\d+|race|v|trimpath)\b ?)*$|` +
	`^-?(j ?\d*|s|k)$|^(-[ADW] ?[\w-]+|-C ?(target-cpu|opt-level|debuginfo)=[\w-]+| )*$|^(gcc|clang|cc|g\+\+|clang\+\+|c\+\+)(-\d+)?$|^(-Xm[sx]\d+[kmg]? ?)*$|^(direct|off|local|auto)$`)

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
