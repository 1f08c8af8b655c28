package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A wrapper is a program that runs the command given in its own words.
type wrapper struct {
	options spec
	skip    int  // operands of its own before the command
	assigns bool // NAME=value words may precede the command

	// transparent: it adds nothing that a rule would want to see, so that an
	// allow rule for the inner command is enough.
	transparent bool
}

// wrapperOf returns how a program wraps another. The option lists are those of
// coreutils 9, util-linux 2.39, findutils 4.9, sudo 1.9 and bash 5.2. An
// option that is not in them makes the command undecidable.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "timeout", "gtimeout":
		return wrapper{options: spec{short: "fk:ps:v", long: "foreground kill-after: preserve-status signal: verbose help version"},
			skip: 1, transparent: true}, true
	case "nice":
		return wrapper{options: spec{short: "n:0123456789", long: "adjustment: help version"}, transparent: true}, true
	case "ionice":
		return wrapper{options: spec{short: "c:n:p:P:u:t", long: "class: classdata: pid: pgid: uid: ignore"}, transparent: true}, true
	case "nohup", "unbuffer", "builtin":
		return wrapper{transparent: true}, true
	case "ccache", "sccache", "distcc", "icecc": // an option of their own runs nothing
		return wrapper{options: spec{short: "F:M:o:k:d:x:X:", open: true}}, true
	case "stdbuf":
		return wrapper{options: spec{short: "i:o:e:", long: "input: output: error: help version"}, transparent: true}, true
	case "time":
		return wrapper{options: spec{short: "f:o:apvqV", long: "format: output: append portability verbose quiet"}, transparent: true}, true
	case "setsid":
		return wrapper{options: spec{short: "cfw", long: "ctty fork wait"}, transparent: true}, true
	case "chrt":
		return wrapper{options: spec{short: "abdfimoprvRT:P:D:", long: "all-tasks batch deadline fifo idle max other pid rr verbose reset-on-fork sched-runtime: sched-period: sched-deadline:"},
			skip: 1, transparent: true}, true
	case "taskset":
		return wrapper{options: spec{short: "apc", long: "all-tasks pid cpu-list"}, skip: 1, transparent: true}, true
	case "command":
		return wrapper{options: spec{short: "pvV"}, transparent: true}, true
	case "exec":
		return wrapper{options: spec{short: "cla:"}, transparent: true}, true
	case "caffeinate":
		return wrapper{options: spec{short: "disumt:w:"}, transparent: true}, true
	case "busybox", "toybox":
		return wrapper{}, true
	case "env", "genv":
		return wrapper{options: spec{short: "iu:0C:S:v", long: "ignore-environment unset: null chdir: split-string: block-signal:: default-signal:: ignore-signal:: list-signal-handling debug argv0: help version"},
			assigns: true, transparent: true}, true
	case "sudo":
		return wrapper{options: spec{short: "AbBC:D:eEg:Hh:iKklnNPp:R:r:sSt:T:u:U:Vv", long: "askpass background bell close-from: chdir: preserve-env:: edit group: set-home host: login remove-timestamp reset-timestamp list non-interactive no-update preserve-groups prompt: chroot: role: stdin shell type: command-timeout: other-user: user: version validate help"},
			assigns: true}, true
	case "doas":
		return wrapper{options: spec{short: "a:C:Lnsu:"}}, true
	case "xargs", "gxargs":
		return wrapper{options: spec{short: "0a:d:E:e::I:i::L:l::n:oP:prs:tx", long: "null arg-file: delimiter: eof:: replace:: max-lines:: max-args: open-tty max-procs: interactive process-slot-var: no-run-if-empty max-chars: show-limits verbose exit help version"},
			transparent: true}, true
	case "flock":
		return wrapper{options: spec{short: "seoxnuFvw:E:c:", long: "shared exclusive unlock nonblock nb timeout: wait: conflict-exit-code: close no-fork verbose command: help version"},
			skip: 1, transparent: true}, true
	}
	return wrapper{}, false
}

// wrapped looks behind a wrapper.
func (w *walker) wrapped(wr wrapper, stdin []*syntax.Redirect) {
	c := w.out.Commands[w.current]
	p := wr.options.parse(c.Args)
	if p.unsure != "" {
		w.undecided(true, c.Name+": "+p.unsure)
		return
	}
	w.out.Commands[w.current].transparent = wr.transparent
	inner := c.Args[min(p.rest, len(c.Args)):]
	var assigns []string
	for wr.assigns && len(inner) > 0 {
		if inner[0].Static && inner[0].Text == "-" {
			inner = inner[1:] // env -, the same as -i
			continue
		}
		name, value, ok := strings.Cut(inner[0].Text, "=")
		if !ok || !inner[0].Static && !isName(name) {
			break
		}
		if !inner[0].Static {
			value = "$"
		}
		assigns = append(assigns, name)
		w.leadsNamed(w.current, name, value)
		inner = inner[1:]
	}
	if !w.wrapperOptions(c.Name, p, &inner) {
		return
	}
	if len(inner) < wr.skip {
		return
	}
	for _, word := range inner[:wr.skip] {
		if !word.Static && !word.single {
			w.undecided(true, c.Name+" with an operand that may become several words: "+word.Text)
		}
	}
	if inner = inner[wr.skip:]; len(inner) == 0 {
		w.alone(c.Name)
		return
	}
	if c.Name == "xargs" || c.Name == "gxargs" {
		inner, stdin = supplied(p, inner), nil
	}
	w.inner(c.Name, inner, append(assigns, c.Assigns...), stdin)
}

// wrapperOptions deals with options that change what a wrapper does. It
// reports whether the words after them are a command still.
func (w *walker) wrapperOptions(name string, p parsed, inner *[]Word) bool {
	switch name {
	case "command":
		if p.has("v V") {
			return false
		}
	case "env", "genv":
		if p.has("S split-string") {
			w.undecided(true, "env -S splits text into a command")
			return false
		}
		if p.has("C chdir") {
			w.moves()
		}
		for _, o := range p.options {
			if oneOf(o.name, "u unset") {
				w.setsVariable(o.value.Text, "")
			}
		}
	case "sudo", "doas":
		if p.has("D chdir R chroot i login") {
			w.moves()
		}
		if p.has("e edit") {
			w.undecided(true, "sudo -e starts an editor")
			return false
		}
		if len(*inner) == 0 && p.has("i s login shell") {
			w.undecided(true, name+" starts a shell that reads its standard input")
		}
	case "ionice", "taskset", "chrt":
		if p.has("p pid P pgid u uid") {
			return false
		}
	case "time":
		for _, o := range p.options {
			if oneOf(o.name, "o output") {
				w.out.Writes = append(w.out.Writes, o.value)
			}
		}
	case "xargs", "gxargs":
		for _, o := range p.options {
			if oneOf(o.name, "a arg-file") {
				w.out.Reads = append(w.out.Reads, o.value)
			}
			if o.name == "process-slot-var" {
				w.setsVariable(o.value.Text, "0")
			}
		}
	case "flock":
		return w.flock(p, *inner)
	}
	return true
}

// watchSpec lists the options of procps 4.
var watchSpec = spec{short: "bcCd::eEfgn:pq:rs:tvwx", long: "beep color no-color differences:: errexit chgexit follow interval: precise equexit: no-rerun shotsdir: no-title no-wrap exec help version"}

// watch runs its words as the text of a shell, time and again.
func (w *walker) watch(c Simple) {
	p := watchSpec.parse(c.Args)
	if p.unsure != "" {
		w.undecided(true, c.Name+": "+p.unsure)
		return
	}
	if len(p.operands) == 0 {
		return
	}
	w.out.Commands[w.current].transparent = true
	script := Word{Text: join(p.operands), Static: true}
	for _, word := range p.operands {
		script.Static = script.Static && word.Static && !word.Home
	}
	if p.has("x exec") {
		w.inner(c.Name, p.operands, nil, nil)
		return
	}
	w.textOf(c.Name, script, true, nil)
}

// flock runs `flock FILE -c SCRIPT` by a shell; any other form is a plain
// wrapper.
func (w *walker) flock(p parsed, inner []Word) bool {
	if len(inner) > 1 {
		w.out.Writes = append(w.out.Writes, inner[0]) // made if it is not there
	}
	if len(inner) > 2 && inner[1].Static && oneOf(inner[1].Text, "-c --command") {
		w.textOf("flock -c", inner[2], true, nil)
		return false
	}
	if p.has("c command") {
		w.undecided(true, "flock runs a script by a shell")
		return false
	}
	return true
}

// alone is a wrapper without a command.
func (w *walker) alone(name string) {
	switch name {
	case "env", "genv", "sudo", "doas", "busybox", "toybox":
		// It prints the environment or a help text, or starts a shell: no
		// longer something to look through.
		w.out.Commands[w.current].transparent = false
	}
}

// supplied returns the command of xargs: words that hold the replace string are
// filled in, or else words are added at the end.
func supplied(p parsed, inner []Word) []Word {
	replace := ""
	for _, o := range p.options {
		if oneOf(o.name, "I i replace") {
			replace = "{}"
			if o.has {
				replace = o.value.Text
			}
			if o.has && !o.value.Static {
				return []Word{{Text: join(inner)}} // any word may be filled in
			}
		}
	}
	return fill(inner, replace)
}

// fill marks the words that a program like xargs or find writes into, which are
// those that hold replace. Without replace a word is added.
func fill(inner []Word, replace string) []Word {
	out := make([]Word, 0, len(inner)+1)
	for _, word := range inner {
		switch {
		case replace == "":
		case !word.Static:
			word.prefix = "" // what is filled in may come out of it
		case strings.Contains(word.Text, replace):
			word.Static, word.single, word.given = false, true, word.Text == replace
			word.prefix, _, _ = strings.Cut(word.Text, replace)
		}
		out = append(out, word)
	}
	if replace == "" {
		out = append(out, Word{Text: "{}", given: true})
	}
	return out
}

// inner analyses a command that stands in the words of the current one.
func (w *walker) inner(via string, args []Word, assigns []string, stdin []*syntax.Redirect) {
	outer := w.current
	sub := *w
	sub.via, sub.outer = w.within(via), outer
	sub.depth++
	sub.funcs = nil // programs run programs, not functions
	c := Simple{Args: args, Assigns: assigns, Via: sub.via, Outer: outer, Places: w.out.Commands[outer].Places, unsafeEnv: w.out.Commands[outer].unsafeEnv}
	sub.simple(c, stdin)
	w.current = outer
}

func (w *walker) within(via string) string {
	if w.via == "" {
		return via
	}
	return w.via + " > " + via
}

// textOf analyses a script given as a word. A plain sh may be any shell: posix
// tells so. funcs are the functions it can call.
func (w *walker) textOf(via string, script Word, posix bool, funcs map[string]bool) {
	outer := w.current
	if !script.Static {
		w.undecided(true, via+" of dynamic text")
		return
	}
	if w.depth > maxDepth {
		w.unread("too many commands, or nested too deep")
		return
	}
	sub := &walker{out: w.out, via: w.within(via), outer: outer, current: -1, depth: w.depth + 1, posix: posix, funcs: funcs}
	sub.sameShell = via == "eval"
	if via != "trap" { // which runs anywhere
		sub.start = w.out.Commands[outer].Places
	}
	before := len(w.out.Undecidable)
	sub.script(script.Text)
	w.current = outer
	if len(w.out.Undecidable) > before { // what the script hides, the command that runs it hides
		c := &w.out.Commands[outer]
		for _, reason := range w.out.Undecidable[before:] {
			c.Undecidable = appendNew(c.Undecidable, reason)
		}
	}
}
