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
	switch {
	case oneOf(c.Name, shells):
		w.shell(c, stdin)
	case oneOf(c.Name, builtins):
		w.builtin(c)
	case oneOf(c.Name, "find gfind bfs"):
		w.find(c)
	case oneOf(c.Name, "fd fdfind"):
		w.fd(c)
	case c.Name == "git":
		w.git(c)
	case c.Name == "git-"+gitProgram(c.Name): // /usr/lib/git-core/git-push
		w.inner(c.Name, append([]Word{fixed("git"), fixed(gitProgram(c.Name))}, c.Args[1:]...), nil, stdin)
	case oneOf(c.Name, "sed gsed"):
		w.sed(c)
	case oneOf(c.Name, awks):
		w.awk(c)
	case c.Name == "tee":
		_, writes := c.Paths()
		w.out.Writes = append(w.out.Writes, writes...)
	default:
		w.executes(c)
	}
}

const (
	shells   = "bash sh dash ash rbash zsh ksh mksh fish csh tcsh"
	builtins = "eval trap . source cd pushd popd alias enable hash shopt set bind complete compgen mapfile readarray fc jobs test [ printf read unset wait let getopts " +
		"declare typeset local export readonly nameref"
	awks = "awk gawk mawk nawk original-awk"
)

// executes deals with the programs that need no look of their own: those that
// run what they are given somewhere, and those that do so by an option.
func (w *walker) executes(c Simple) {
	switch {
	case isInterpreter(c.Name):
		if !asksVersion(c) {
			w.undecided(!interpretsFile(c), c.Name+" "+interprets)
		}
	case oneOf(c.Name, starters) || strings.HasPrefix(c.Name, "ld-linux") || strings.HasPrefix(c.Name, "ld-musl") || strings.HasPrefix(c.Name, "ld64.so"):
		if asksVersion(c) || pages(c) || c.Name == "crontab" && len(c.Args) == 2 && c.Args[1].Text == "-l" {
			return
		}
		w.undecided(true, c.Name+" "+startsOthers)
		w.launches(c)
	default:
		if starts := runner(c); len(starts) > 0 {
			w.runs(c, starts)
			return
		}
		w.launches(c)
	}
}

// interpreters are programs that take program text of their own.
const interpreters = "python pypy ipython perl ruby node nodejs deno bun php lua luajit tclsh wish expect Rscript R julia osascript pwsh powershell ts-node tsx groovy scala jshell " +
	"erl elixir iex ghci runghc ocaml guile sbcl clisp racket dc gdb lldb sqlite psql mysql irb xonsh nu elvish osh ysh yash octave octave-cli gnuplot clojure clj bb " +
	"duckdb litecli mycli pgcli usql mongosh mongo vite-node babel-node esno jiti zx coffee swipl"

func isInterpreter(name string) bool {
	return oneOf(strings.TrimRight(name, "0123456789."), interpreters)
}

// interpretsFile reports whether an interpreter is given a file or a module, not text of the line: such a
// file is no more hidden than what make runs.
func interpretsFile(c Simple) bool {
	if len(c.Args) < 2 || !c.Args[1].Static || oneOf(strings.TrimRight(c.Name, "0123456789."), "gdb lldb sqlite duckdb psql mysql litecli mycli pgcli usql mongosh mongo") {
		return false
	}
	first := c.Args[1].Text
	switch {
	case first == "-m" && strings.HasPrefix(c.Name, "python"):
		return len(c.Args) > 2 && !oneOf(c.Args[2].Text, "timeit code pdb bdb asyncio idlelib IPython")
	case oneOf(c.Name, "bun deno"):
		return !slices.ContainsFunc(c.Args[1:], func(w Word) bool { return !w.Static || oneOf(w.Text, "-e -p --eval --print eval repl -") })
	}
	return strings.ContainsAny(first, "./") && !isOption(first) && !strings.HasPrefix(first, "/dev/") && !strings.HasPrefix(first, "/proc/")
}

// starters are programs whose purpose is to start commands, in a way that this package does
// not look through, or to let a person do so.
const starters = "ssh scp sftp mosh su runuser pkexec chroot unshare nsenter systemd-run script at batch crontab parallel entr screen tmux strace ltrace perf valgrind proot fakeroot " +
	"catchsegv torify torsocks proxychains proxychains4 vi vim nvim view ex ed emacs emacsclient nano hx helix micro kak joe jed mcedit less more most man info ld.so nix-shell firejail " +
	"bwrap setpriv start-stop-daemon daemonize socat ncat nc watchexec nodemon concurrently run-parts dbus-run-session dbus-launch xvfb-run faketime linux32 linux64 setarch i386 x86_64 " +
	"prlimit cgexec numactl logsave cpulimit choom uclampset coreutils m4 rlwrap ssh-agent capsh hyperfine ansible gdbserver sg newgrp login run0 systemd-inhibit systemd-cat systemd-nspawn " +
	"machinectl runcon aa-exec gosu su-exec sshpass mpirun mpiexec pexec tini dumb-init catatonit chpst softlimit setuidgid envdir envuidgid setlock pgrphack with-contenv s6-setuidgid " +
	"s6-envdir s6-softlimit s6-applyuidgid eatmydata sem run-one run-this-one keep-one-running timelimit retry trickle nocache schedtool chronic ifne lckdo mispipe pee zrun vipe vidir vipw " +
	"visudo sudoedit logrotate mutt neomutt git-shell openvt dtach abduco toolbox distrobox distrobox-enter flatpak-spawn rr bpftrace gpg-agent tsp nsjail with-lock-ex dotlockfile wsl " +
	"s6-setsid s6-setlock s6-background s6-foreground s6-cd s6-fdredir execlineb winpty qemu-x86_64 qemu-aarch64 box64 wine aws-vault chamber doppler envchain foreman honcho " +
	"start-server-and-test cross-env-shell"

// HandsOver reports whether a command gives a program to another process to start: a service
// of the host, which no gate on the processes of the call sees.
func (c Simple) HandsOver() bool {
	args := texts(c.Args[min(len(c.Args), 1):])
	switch c.Name {
	case "systemd-run", "run0", "at", "batch", "machinectl", "emacsclient", "dbus-send", "gdbus", "flatpak-spawn", "wsl":
		return !asksVersion(c)
	case "crontab":
		return !slices.Equal(args, []string{"-l"})
	case "tmux", "screen":
		return !slices.ContainsFunc(args, func(a string) bool {
			return oneOf(a, "ls list-sessions has-session display-message capture-pane kill-session kill-server -ls -list -V -v")
		})
	case "docker", "podman", "nerdctl", "docker-compose":
		return slices.ContainsFunc(args, func(a string) bool { return oneOf(a, "run exec create") })
	case "ssh", "mosh":
		return slices.ContainsFunc(args, func(a string) bool {
			return oneOf(a[strings.LastIndexByte(a, '@')+1:], "localhost 127.0.0.1 ::1")
		})
	}
	return false
}

func texts(words []Word) (out []string) {
	for _, word := range words {
		out = append(out, word.Text)
	}
	return out
}

// asksVersion reports whether a command does nothing but print a version or a
// help text.
func asksVersion(c Simple) bool {
	return len(c.Args) == 2 && c.Args[1].Static && oneOf(c.Args[1].Text, "--version -V --help -v") && !(c.Args[1].Text == "-v" && !oneOf(c.Name, "node php ruby perl lua"))
}

// pages reports whether a pager is given files alone, and options that only say how to
// show them: no person is there to tell it to start something.
func pages(c Simple) bool {
	return oneOf(c.Name, "less more") && !slices.ContainsFunc(c.Args[1:], func(w Word) bool {
		if isOption(w.Text) {
			return !w.Static || strings.Trim(w.Text[1:], "NRSFXiIMmeEgsdu") != ""
		}
		return !w.Static && !w.Glob && !w.Home || strings.HasPrefix(w.Text, "+") || w.Glob && strings.IndexAny(w.Text, "*?[") == 0
	})
}

// IsBuiltin reports whether bash runs a command of that name itself.
func IsBuiltin(name string) bool {
	return oneOf(name, builtins+" command builtin exec exit return break continue shift times umask ulimit suspend logout let caller disown bg fg history echo true false : pwd kill test [ printf dirs")
}

// HasProgram reports whether the system has a program of the builtin's name as well.
func HasProgram(builtin string) bool { return oneOf(builtin, "kill echo true false pwd test [ printf") }
