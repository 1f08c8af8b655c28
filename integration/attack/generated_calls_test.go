//go:build slow && linux

package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A wildStep is one call, or something done from outside.
type wildStep struct {
	tool, args string
	beside     bool   // the next step does not wait for its answer
	wanted     bool   // no rule speaks of it, so it must be done
	want       string // what its answer then holds
	outside    func() // in place of a call
	ruled      string // a file that a rule denies from then on, which is waited for
	says       string // what outside does
}

func (s wildStep) String() string {
	if s.outside != nil {
		return "from outside: " + s.says
	}
	beside := ""
	if s.beside {
		beside = " &"
	}
	return s.tool + " " + s.args + beside
}

func wildCall(tool string, args map[string]any) wildStep {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // strings and numbers
	}
	return wildStep{tool: tool, args: string(raw)}
}

// attacks makes so many steps against what the rules deny.
func (w *wild) attacks(n int) []wildStep {
	var steps []wildStep
	for len(steps) < n {
		switch w.rand.IntN(16) {
		case 0:
			steps = append(steps, w.fromOutside())
		case 1:
			steps = append(steps, w.swapped()...)
		case 2, 3, 4, 5, 6:
			step := w.ownCall(w.target())
			step.beside = w.oneIn(3)
			steps = append(steps, step)
		default:
			step := w.bash(w.command())
			step.beside = w.oneIn(4)
			steps = append(steps, step)
		}
	}
	return steps
}

// target is a file to attack: one that is denied, most of the time.
func (w *wild) target() *wildFile {
	f := w.some(func(f *wildFile) bool { return f.unread })
	if f == nil || w.oneIn(4) {
		f = w.some(func(f *wildFile) bool { return f.unwritten })
	}
	if f == nil || w.oneIn(6) {
		f = pick(w.rand, w.files)
	}
	return f
}

// spelt is one of the many ways to write the name of a file.
func (w *wild) spelt(f *wildFile) string {
	name := pick(w.rand, w.namesOf(f))
	dir, base := filepath.Dir(name), filepath.Base(name)
	switch w.rand.IntN(14) {
	case 0:
		return dir + "/../" + filepath.Base(dir) + "/./" + base
	case 1:
		return strings.ReplaceAll(name, "/", "//")
	case 2:
		return "/proc/self/root" + name
	case 3:
		if rel, err := filepath.Rel(w.roots[0], name); err == nil {
			return "/proc/self/cwd/" + rel
		}
	case 4:
		return norm.NFD.String(name)
	case 5:
		return norm.NFC.String(name)
	case 6:
		return name + "/"
	case 7, 8, 9:
		if rel, err := filepath.Rel(w.roots[0], name); err == nil {
			return rel
		}
	case 10:
		return dir + "/" + strings.ToUpper(base)
	}
	return name
}

// ownCall is a call of a tool on a file or the directory that it is in.
func (w *wild) ownCall(f *wildFile) wildStep {
	name := w.spelt(f)
	dir := pick(w.rand, []string{filepath.Dir(name), w.roots[0], filepath.Dir(f.path), pick(w.rand, w.dirs)})
	glob := pick(w.rand, []string{"**/*", "*", "**/.*", "**/*" + filepath.Ext(name), "**/*zq*", filepath.Base(name),
		f.path, "**/" + filepath.Base(f.path) + "*", "{,.}*", "**"})
	switch w.rand.IntN(9) {
	case 0, 1:
		args := map[string]any{"file_path": name}
		if w.oneIn(2) {
			args["offset"], args["limit"] = w.rand.IntN(4), 1+w.rand.IntN(4)
		}
		return wildCall("Read", args)
	case 2:
		return wildCall("Glob", map[string]any{"pattern": glob, "path": dir})
	case 3:
		return wildCall("Glob", map[string]any{"pattern": glob})
	case 4:
		return wildCall("Edit", map[string]any{"file_path": name, "old_string": pick(w.rand, []string{"first line", "last line\n", "", "\n"}), "new_string": "changed", "replace_all": w.oneIn(2)})
	case 5:
		return wildCall("Write", map[string]any{"file_path": pick(w.rand, []string{name, name + "/x", dir + "/new"}),
			"content": "written\n"})
	case 6:
		return wildCall("NotebookEdit", map[string]any{"notebook_path": name, "new_source": "x", "edit_mode": "insert"})
	}
	args := map[string]any{
		"pattern":     pick(w.rand, []string{wildCanary, ".", "(?s).*", "line$", "zq", "WILD[0-9]+z", "first line\\nCAN", "^"}),
		"output_mode": pick(w.rand, []string{"content", "files_with_matches", "count"}),
	}
	if w.oneIn(2) {
		args["path"] = pick(w.rand, []string{name, dir})
	}
	if w.oneIn(2) {
		args["glob"] = glob
	}
	for _, option := range []string{"no_ignore", "multiline", "-o", "-i"} {
		if w.oneIn(3) {
			args[option] = true
		}
	}
	if w.oneIn(3) {
		args["-C"] = 2
	}
	return wildCall("Grep", args)
}

// bash is a call of Bash. One that runs in the background is looked at later, by whoever knows its number.
func (w *wild) bash(command string) wildStep {
	args := map[string]any{"command": command, "timeout": 4000}
	if w.oneIn(12) {
		args["run_in_background"] = true
	}
	return wildCall("Bash", args)
}

// fromOutside is what another program does to a denied file: it replaces it, or makes one more that the rules deny.
func (w *wild) fromOutside() wildStep {
	f := w.some(func(f *wildFile) bool { return f.unread && len(f.more) == 0 })
	if f == nil {
		return w.ownCall(w.target())
	}
	canary := w.canary()
	if w.oneIn(3) { // a rule for one file more, of which no one has seen what it holds from then on
		if g := w.some(func(g *wildFile) bool { return g.free && len(g.more) == 0 && !strings.Contains(g.path, "\n") }); g != nil {
			return w.tighten(g, canary)
		}
	}
	return wildStep{says: "replaces " + f.path, outside: func() { w.replace(f, canary) }}
}

// replace puts a new file in the place of one.
func (w *wild) replace(f *wildFile, canary string) {
	f.text = "first line\n" + canary + "\nlast line\n"
	next := filepath.Join(w.top, "next")
	w.put(next, f.text)
	if w.kind.user != 0 {
		_ = os.Lchown(next, w.kind.user, w.kind.user)
	}
	if err := os.Rename(next, f.path); err != nil {
		w.t.Fatal(err)
	}
	f.info, _ = os.Lstat(f.path)
	w.secret(canary, f.path)
}

func (w *wild) tighten(f *wildFile, canary string) wildStep {
	rule := wildRule{list: "deny", tool: "Read", pattern: "/" + quotedPath(f.path),
		source: filepath.Join(w.home, ".claude", "settings.json")}
	return wildStep{says: "denies " + f.path, ruled: f.path, outside: func() {
		if f.info, _ = os.Lstat(f.path); f.info == nil || !f.info.Mode().IsRegular() {
			return // an attack has moved it, or what it is in
		}
		w.rules = append(w.rules, rule)
		w.writeRules()
		w.later = func() {
			w.replace(f, canary)
			f.unread, f.unwritten = true, true
		}
	}}
}

// swapped leads a link from one file to another in the background while tools use it.
func (w *wild) swapped() []wildStep {
	f, other := w.target(), pick(w.rand, w.files)
	link := filepath.Join(w.roots[0], fmt.Sprintf("swap%d", w.rand.IntN(1000)))
	to, also := f.path, other.path
	if w.oneIn(2) {
		to, also = filepath.Dir(to), filepath.Dir(also)
	}
	loop := fmt.Sprintf("for i in {1..300}; do ln -sfn %s %[2]s.n; mv -T %[2]s.n %[2]s; ln -sfn %[3]s %[2]s.n; mv -T %[2]s.n %[2]s; done", shellWord(also), shellWord(link), shellWord(to))
	steps := []wildStep{wildCall("Bash", map[string]any{"command": loop, "run_in_background": true})}
	name := link
	if to != f.path {
		name = filepath.Join(link, filepath.Base(f.path))
	}
	for range 6 {
		step := pick(w.rand, []wildStep{
			wildCall("Read", map[string]any{"file_path": name}),
			wildCall("Grep", map[string]any{"pattern": ".", "path": name, "output_mode": "content"}),
			wildCall("Grep", map[string]any{"pattern": ".", "path": link, "output_mode": "content"}),
			wildCall("Write", map[string]any{"file_path": name, "content": "swapped\n"}),
			wildCall("Edit", map[string]any{"file_path": name, "old_string": "first line", "new_string": "swapped"}),
			wildCall("Bash", map[string]any{"command": "cat " + shellWord(name) + "; echo x >> " + shellWord(name),
				"timeout": 4000}),
		})
		step.beside = true
		steps = append(steps, step)
	}
	return steps
}

// benign are calls on what no rule speaks of, which must all be done.
func (w *wild) benign() []wildStep {
	var steps []wildStep
	add := func(want, tool string, args map[string]any) {
		step := wildCall(tool, args)
		step.wanted, step.want = true, want
		steps = append(steps, step)
	}
	for _, f := range w.files {
		if !f.free || len(f.more) > 0 {
			continue
		}
		add(f.canary, "Read", map[string]any{"file_path": f.path})
		add(f.canary, "Grep", map[string]any{"pattern": wildCanary, "path": f.path, "output_mode": "content"})
		if w.kind.runs {
			add(f.canary, "Bash", map[string]any{"command": "cat -- " + shellWord(f.path)})
			add(f.canary, "Bash", map[string]any{"command": "cd -- " + shellWord(filepath.Dir(f.path)) +
				" && grep -n . ./" + shellWord(filepath.Base(f.path))})
		}
		if w.kind.edits {
			add("", "Edit", map[string]any{"file_path": f.path, "old_string": "first line", "new_string": "1st line"})
		}
		if w.kind.runs && w.kind.edits {
			add("", "Bash", map[string]any{"command": "cp -- " + shellWord(f.path) + " \"$TMPDIR/c\" && echo more >> " +
				shellWord(f.path)})
		}
	}
	return steps
}
