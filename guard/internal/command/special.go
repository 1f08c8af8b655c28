package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// special looks at what the current command runs or changes by itself.
func (w *walker) special(stdin []*syntax.Redirect) {
	c := w.out.Commands[w.current]
	if defined, ok := w.funcs[c.Args[0].Text]; ok {
		w.out.Commands[w.current].local = defined
	}
	if wr, ok := wrapperOf(c.Name); ok {
		w.wrapped(wr, stdin)
		return
	}
	switch c.Name {
	case "bash", "sh", "dash", "ash", "rbash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh":
		w.shell(c, stdin)
	case "eval", "trap", ".", "source", "cd", "pushd", "popd", "alias", "enable", "hash", "shopt", "set", "bind", "complete", "compgen",
		"mapfile", "readarray", "fc", "jobs", "test", "[", "printf", "read", "unset", "wait", "let", "getopts",
		"declare", "typeset", "local", "export", "readonly", "nameref":
		w.builtin(c)
	case "find", "gfind", "bfs":
		w.find(c)
	case "fd", "fdfind":
		w.fd(c)
	case "git":
		w.feed(stdin)
		w.git(c)
	case "git-" + gitProgram(c.Name): // /usr/lib/git-core/git-push
		w.inner(c.Name, append([]Word{fixed("git"), fixed(gitProgram(c.Name))}, c.Args[1:]...), nil, stdin)
	case "sed", "gsed":
		w.sed(c)
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		w.awk(c)
	case "watch":
		w.watch(c)
	case "tee":
		_, writes := c.Paths()
		w.out.Writes = append(w.out.Writes, writes...)
	default:
		w.executes(c, stdin)
	}
}

// feed notes what heredocs and here-strings give to the current command.
func (w *walker) feed(stdin []*syntax.Redirect) {
	for _, r := range stdin {
		switch {
		case r.Hdoc != nil:
			w.out.Commands[w.current].input += w.source(r.Hdoc)
		case r.Op == syntax.WordHdoc:
			w.out.Commands[w.current].input += w.source(r.Word)
		}
	}
}

// executes deals with the programs that need no look of their own: those that
// run what they are given somewhere, and those that do so by an option.
func (w *walker) executes(c Simple, stdin []*syntax.Redirect) {
	w.feed(stdin)
	switch {
	case isInterpreter(c.Name):
		if !asksVersion(c) {
			harmless := w.harmlessText(c, stdin)
			w.out.Commands[w.current].harmless = harmless
			w.undecided(!harmless, c.Name+" "+interprets)
		}
		return
	case startsCommands(c.Name) && (asksVersion(c) || pages(c) || c.Name == "crontab" && len(c.Args) == 2 && c.Args[1].Text == "-l"):
		return
	case startsCommands(c.Name):
		w.undecided(true, c.Name+" "+startsOthers)
		w.launches(c)
		return
	}
	if starts := runner(c); len(starts) > 0 {
		w.runs(c, starts)
		return
	}
	w.launches(c)
}

// isInterpreter reports whether a program takes program text of its own:
// what that runs is beyond an analysis of shell text.
func isInterpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	switch name {
	case "python", "pypy", "ipython", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "wish", "expect", "Rscript", "R", "julia",
		"osascript", "pwsh", "powershell", "ts-node", "tsx", "groovy", "scala", "jshell", "erl", "elixir", "iex", "ghci", "runghc", "ocaml",
		"guile", "sbcl", "clisp", "racket", "dc", "gdb", "lldb", "sqlite", "psql", "mysql", "irb", "xonsh", "nu", "elvish", "osh", "ysh", "yash",
		"octave", "octave-cli", "gnuplot", "clojure", "clj", "bb",
		"duckdb", "litecli", "mycli", "pgcli", "usql", "mongosh", "mongo",
		"vite-node", "babel-node", "esno", "jiti", "zx", "coffee", "swipl":
		return true
	}
	return false
}

// startsCommands reports whether the purpose of a program is to start commands,
// in a way that this package does not look through, or to let a person do so.
func startsCommands(name string) bool {
	switch name {
	case "ssh", "scp", "sftp", "mosh", "su", "runuser", "pkexec", "chroot", "unshare", "nsenter", "systemd-run", "script", "at", "batch", "crontab",
		"parallel", "entr", "screen", "tmux", "strace", "ltrace", "perf", "valgrind", "proot", "fakeroot", "catchsegv", "torify", "torsocks", "proxychains", "proxychains4",
		"vi", "vim", "nvim", "view", "ex", "ed", "emacs", "emacsclient", "nano", "hx", "helix", "micro", "kak", "joe", "jed", "mcedit", "less", "more", "most", "man", "info", "ld.so",
		"nix-shell", "firejail", "bwrap", "setpriv", "start-stop-daemon", "daemonize", "socat", "ncat", "nc", "watchexec", "nodemon", "concurrently",
		"run-parts", "dbus-run-session", "dbus-launch", "xvfb-run", "faketime", "linux32", "linux64", "setarch", "i386", "x86_64", "prlimit", "cgexec", "numactl",
		"logsave", "cpulimit", "choom", "uclampset", "coreutils", "m4", "rlwrap", "ssh-agent", "capsh", "hyperfine", "ansible", "gdbserver",
		"sg", "newgrp", "login", "run0", "systemd-inhibit", "systemd-cat", "systemd-nspawn", "machinectl", "runcon", "aa-exec", "gosu", "su-exec", "sshpass", "mpirun", "mpiexec", "pexec", "tini", "dumb-init", "catatonit",
		"chpst", "softlimit", "setuidgid", "envdir", "envuidgid", "setlock", "pgrphack", "with-contenv", "s6-setuidgid", "s6-envdir", "s6-softlimit", "s6-applyuidgid",
		"eatmydata", "sem", "run-one", "run-this-one", "keep-one-running", "timelimit", "retry", "trickle", "nocache", "schedtool",
		"chronic", "ifne", "lckdo", "mispipe", "pee", "zrun", "vipe", "vidir", "vipw", "visudo", "sudoedit", "logrotate", "mutt", "neomutt", "git-shell",
		"openvt", "dtach", "abduco", "toolbox", "distrobox", "distrobox-enter", "flatpak-spawn", "rr", "bpftrace",
		"gpg-agent", "tsp", "nsjail", "with-lock-ex", "dotlockfile", "wsl",
		"s6-setsid", "s6-setlock", "s6-background", "s6-foreground", "s6-cd", "s6-fdredir", "execlineb", "winpty", "qemu-x86_64", "qemu-aarch64", "box64", "wine",
		"aws-vault", "chamber", "doppler", "envchain", "foreman", "honcho", "start-server-and-test", "cross-env-shell":
		return true
	}
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld64.so")
}

// asksVersion reports whether a command does nothing but print a version or a
// help text.
func asksVersion(c Simple) bool {
	return len(c.Args) == 2 && c.Args[1].Static && oneOf(c.Args[1].Text, "--version -V --help -v") && !(c.Args[1].Text == "-v" && !oneOf(c.Name, "node php ruby perl lua"))
}

// pages reports whether a pager is given files alone, and options that only say how to
// show them: it has nobody here who could tell it to start something.
func pages(c Simple) bool {
	return oneOf(c.Name, "less more") && !slices.ContainsFunc(c.Args[1:], func(w Word) bool {
		if isOption(w.Text) {
			return !w.Static || strings.Trim(w.Text[1:], "NRSFXiIMmeEgsdu") != ""
		}
		return !w.Static && !w.Glob && !w.Home || strings.HasPrefix(w.Text, "+") || w.Glob && strings.IndexAny(w.Text, "*?[") == 0
	})
}
