package command

import "strings"

// A Task is what a task runner is asked for: the targets of a makefile, the scripts of a
// package.
type Task struct {
	Runner string            // "make", "scripts", "just" or "task"
	Names  []string          // what it is asked for, none for the usual; "" for one that is not known
	Dirs   []Word            // it changes to, one after the other
	Files  []Word            // it is told to read
	Vars   map[string]string // of the command line
	Every  bool              // of every package of a workspace
	Dry    bool              // it prints what it would run
}

// The options of task runners that take a value, those that name a directory and a file.
var taskOptions = []struct {
	names, dirs, files string
	spec               spec
}{
	{"make gmake", "C directory", "f file makefile", spec{short: "C:f:I:j::l::o:W:", long: "directory: file: makefile: include-dir: jobs:: load-average:: old-file: what-if: new-file: assume-old: assume-new: eval:", permute: true, open: true}},
	{"just", "d working-directory", "f justfile", spec{short: "f:d:c:", long: "justfile: working-directory: set: dotenv-path: shell: chooser: color:", permute: true, open: true}},
	{"task go-task", "d dir", "t taskfile", spec{short: "d:t:o:C:I:", long: "dir: taskfile: output: concurrency: interval:", permute: true, open: true}},
	{"npm pnpm yarn bun composer deno", "C prefix dir cwd working-dir", "", spec{short: "C:w:F:", long: "prefix: dir: cwd: working-dir: workspace: filter: userconfig: registry: loglevel: color: config: cache:", permute: true, open: true}},
	{"npm-run-all npm-run-all2 run-s run-p", "", "", spec{permute: true, open: true}},
}

// Task returns what a task runner is asked for.
func (c Simple) Task() (t Task, ok bool) {
	if c.Name == "node" {
		return c.nodeRun()
	}
	for _, o := range taskOptions {
		if !oneOf(c.Name, o.names) {
			continue
		}
		p := o.spec.parse(c.Args)
		t = Task{Dirs: p.values(o.dirs), Files: p.values(o.files), Vars: map[string]string{}, Runner: c.Name}
		switch c.Name {
		case "make", "gmake":
			t.Runner, t.Dry = "make", p.has("n just-print dry-run recon q question t touch")
			t.targets(p.operands)
		case "just":
			t.targets(p.operands)
		case "task", "go-task":
			t.Runner = "task"
			t.targets(p.operands)
		case "npm-run-all", "npm-run-all2", "run-s", "run-p":
			t.Runner = "scripts"
			t.targets(p.operands)
		default:
			t.Runner, t.Every = "scripts", p.has("w workspace workspaces ws F filter r recursive")
			t.Names = scriptsOf(c.Name, texts(p.operands))
		}
		return t, true
	}
	return t, false
}

// nodeRun knows node --run NAME.
func (c Simple) nodeRun() (Task, bool) {
	for i, word := range c.Args {
		if name, value, attached := strings.Cut(word.Text, "="); name == "--run" {
			if !attached && i+1 < len(c.Args) {
				value = c.Args[i+1].Text
			}
			return Task{Runner: "scripts", Names: []string{value}}, true
		}
	}
	return Task{}, false
}

// targets takes the operands apart: names, and values of variables.
func (t *Task) targets(operands []Word) {
	for _, word := range operands {
		if name, value, ok := strings.Cut(word.Text, "="); !word.Static {
			t.Names = append(t.Names, "")
		} else if ok {
			t.Vars[strings.TrimRight(name, ":?+")] = value
		} else {
			t.Names = append(t.Names, word.Text)
		}
	}
}

func texts(words []Word) (out []string) {
	for _, word := range words {
		if word.Static {
			out = append(out, word.Text)
		} else {
			out = append(out, "")
		}
	}
	return out
}

// scriptsOf returns the scripts that a package manager runs for a subcommand.
func scriptsOf(program string, words []string) []string {
	if len(words) == 0 {
		if program == "yarn" || program == "bun" {
			words = []string{"install"}
		} else {
			return nil
		}
	}
	sub := words[0]
	if usual := usualName("npm", sub); usual != "" && program != "deno" {
		sub = usual
	}
	if program == "yarn" && sub == "workspace" && len(words) > 2 {
		return scriptsOf(program, words[2:])
	}
	switch sub {
	case "run", "task", "run-script":
		if len(words) > 1 {
			return words[1:2]
		}
		return nil
	case "test", "start", "stop":
		return []string{sub}
	case "restart":
		return []string{"restart", "stop", "start"}
	case "install", "ci", "add", "rebuild", "link", "update":
		return []string{"install", "prepublish", "prepare", "post-install-cmd", "pre-install-cmd", "post-autoload-dump", "post-update-cmd"}
	case "publish", "pack":
		return []string{"publish", "pack", "prepare", "prepublishOnly"}
	case "version":
		return []string{"version"}
	}
	if program == "npm" || program == "deno" {
		return nil
	}
	return []string{sub}
}

// Texts returns what stands in the words of a command, and in what it is given by
// heredocs, that could be the content of a file: with the escapes of printf and echo -e
// as what they stand for.
func (c Simple) Texts() (out []string) {
	escapes := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`)
	for _, word := range c.Args[1:] {
		if strings.ContainsAny(word.Text, " \n") {
			out = append(out, escapes.Replace(word.Text))
		}
	}
	if text := strings.TrimPrefix(c.input, "$"); text != "" {
		out = append(out, c.input, escapes.Replace(strings.Trim(text, `'"`)))
	}
	return out
}
