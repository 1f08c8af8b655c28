//go:build slow && linux

package attack

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/integration/host"
	"golang.org/x/text/unicode/norm"
)

// A wildRule is one rule on files.
type wildRule struct {
	list    string // deny or ask
	tool    string
	pattern string
	source  string // the settings file it stands in, or "--deny"
	root    string // what /p is relative to; "": every root
}

func (r wildRule) String() string { return r.tool + "(" + r.pattern + ")" }

// wildReads are the tools whose rules are on reading.
var wildReads = []string{"Read", "Read", "Read", "Grep", "Glob"}

func (w *wild) makeRules() {
	type place struct{ source, root string }
	places := []place{{"--deny", ""}, {"--deny", ""}, {filepath.Join(w.top, "more.json"), ""},
		{filepath.Join(w.home, ".claude", "settings.json"), ""}}
	for _, root := range w.roots {
		places = append(places, place{filepath.Join(root, ".claude", "settings.json"), root},
			place{filepath.Join(root, ".toolhost", "toolhost.json"), root})
	}
	for range 2 + w.rand.IntN(6) {
		at := pick(w.rand, places)
		r := wildRule{list: "deny", tool: pick(w.rand, wildReads), source: at.source, root: at.root}
		if w.oneIn(4) {
			r.tool = pick(w.rand, []string{"Edit", "Write"})
		}
		if w.oneIn(8) && at.source != "--deny" {
			r.list = "ask"
		}
		if r.pattern = w.pattern(at.root); r.pattern == "" {
			continue
		}
		if w.oneIn(9) {
			r.pattern = "!" + r.pattern
		}
		w.rules = append(w.rules, r)
	}
	w.writeRules()
}

// writeRules writes the settings files.
func (w *wild) writeRules() {
	files := map[string]map[string][]string{filepath.Join(w.top, "more.json"): {}}
	for _, r := range w.rules {
		if r.source == "--deny" {
			continue
		}
		if files[r.source] == nil {
			files[r.source] = map[string][]string{}
		}
		files[r.source][r.list] = append(files[r.source][r.list], r.String())
	}
	for path, lists := range files {
		settings := map[string]any{"permissions": lists}
		if path == filepath.Join(w.top, "more.json") {
			w.kind.adjust(settings)
		}
		raw, err := json.Marshal(settings)
		if err != nil {
			w.t.Fatal(err)
		}
		w.put(path, string(raw))
	}
}

// flags are those of the host.
func (w *wild) flags() []string {
	flags := []string{"--settings", filepath.Join(w.top, "more.json")}
	for _, root := range w.roots {
		flags = append(flags, "--root="+root)
	}
	for _, r := range w.rules {
		if r.source == "--deny" {
			flags = append(flags, "--deny="+r.String())
		}
	}
	return flags
}

// pattern makes a pattern of what is there: a name, some of it, or a part of it blurred.
func (w *wild) pattern(base string) string {
	target := pick(w.rand, w.files).path
	if w.oneIn(4) {
		target = pick(w.rand, w.dirs)
	}
	root := w.roots[0]
	for _, r := range w.roots {
		if strings.HasPrefix(target, r+"/") {
			root = r
		}
	}
	if base != "" && strings.HasPrefix(target, base+"/") {
		root = base
	}
	rel, err := filepath.Rel(root, target)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") || strings.Contains(target, "\n") {
		return ""
	}
	elements := strings.Split(rel, "/")
	for i, e := range elements {
		if elements[i] = quotedPattern(e); w.oneIn(3) {
			elements[i] = w.blur(e)
		}
	}
	if elements[0] == "~" {
		elements[0] = "[~]" // which is no home
	}
	last := elements[len(elements)-1]
	if strings.Trim(last, "*") == "" {
		last = quotedPattern(filepath.Base(target)) // a rule on all is one on the tool
		elements[len(elements)-1] = last
	}
	switch w.rand.IntN(8) {
	case 0, 1:
		return strings.Replace(last, "~", "?", 1)
	case 2:
		return "/" + strings.Join(elements, "/")
	case 3:
		return "//" + strings.TrimPrefix(quotedPattern(root), "/") + "/" + strings.Join(elements, "/")
	case 4:
		return "**/" + last
	case 5:
		return elements[0] + "/**"
	case 6:
		return strings.Join(elements[:1+w.rand.IntN(len(elements))], "/") + "/"
	}
	return strings.Join(elements, "/")
}

// quotedPattern is the pattern that matches exactly a name.
func quotedPattern(name string) string {
	var b strings.Builder
	for i, c := range []byte(name) {
		if strings.IndexByte(`*?[]\{}`, c) >= 0 || i == 0 && strings.IndexByte("!#", c) >= 0 ||
			i == len(name)-1 && c == ' ' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// blur makes a pattern that matches a name among others.
func (w *wild) blur(name string) string {
	runes := []rune(name)
	at := w.rand.IntN(len(runes))
	if runes[at] > 127 {
		return quotedPattern(name) // a ? is a byte to git, and a character to us
	}
	before, after := quotedPattern(string(runes[:at])), quotedPattern(string(runes[at+1:]))
	switch w.rand.IntN(6) {
	case 0:
		return before + "?" + after
	case 1:
		return before + "*" + after
	case 2:
		return "*" + quotedPattern(filepath.Ext(name))
	case 3:
		return before + "*"
	case 4:
		if c := runes[at]; c < 128 && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return before + "[" + string(c) + "Q]" + after
		}
		return before + "[!/]" + after
	}
	return before + "[a-z0-9]" + after
}

// classify asks git which files the rules are on. What is denied for certain is what git ignores by some name without a
// symbolic link; what is free is what it ignores by no name, in the widest sense of the rules.
func (w *wild) classify() {
	narrowRead, narrowEdit := w.ignored("deny", wildReads, false), w.ignored("deny", []string{"Edit", "Write"}, false)
	wide := map[string]bool{}
	for _, list := range []string{"deny", "ask"} {
		for _, tools := range [][]string{wildReads, {"Edit", "Write"}} { // neither takes back what the other says
			maps.Copy(wide, w.ignored(list, tools, true))
		}
	}
	namesGit := slices.ContainsFunc(w.rules, func(r wildRule) bool {
		return !slices.Contains(wildReads, r.tool) && strings.Contains(r.pattern, ".git")
	})
	writesHeld := func(name string) bool { // git must be able to work, unless a rule speaks of what it keeps
		return narrowRead[name] || narrowEdit[name] && (namesGit || !strings.Contains(name, "/.git/"))
	}
	for _, f := range w.files {
		f.free = !w.special(f)
		for _, name := range w.namesOf(f) {
			real := slices.Contains(append([]string{f.path}, f.more...), name)
			f.unread = f.unread || real && narrowRead[name]
			f.unwritten = f.unwritten || real && writesHeld(name)
			f.free = f.free && !wide[name]
		}
	}
}

// special reports whether something else than the rules of this ground protects a file.
func (w *wild) special(f *wildFile) bool {
	for _, name := range append([]string{f.path}, f.more...) {
		if strings.Contains(name, "/.git/") || strings.Contains(name, "/.claude/") || strings.HasSuffix(name, "/.env") {
			return true
		}
	}
	return false
}

// namesOf returns the names of a file, those through links to directories and to itself too.
func (w *wild) namesOf(f *wildFile) []string {
	names := append([]string{f.path}, f.more...)
	for range 2 { // links that lie behind links
		for _, l := range w.links {
			to := l.to
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(l.path), to)
			}
			for _, name := range names {
				if rest, ok := strings.CutPrefix(name, to); ok && (rest == "" || rest[0] == '/') &&
					!slices.Contains(names, l.path+rest) && len(names) < 200 {
					names = append(names, l.path+rest)
				}
			}
		}
	}
	return names
}

// ignored returns the names of files that git ignores by the patterns of a list, each source by itself.
func (w *wild) ignored(list string, tools []string, wide bool) map[string]bool {
	sources := map[string][]string{}
	for _, r := range w.rules {
		if r.list == list && slices.Contains(tools, r.tool) {
			for _, p := range w.translate(r, wide) {
				sources[r.source] = append(sources[r.source], strings.ReplaceAll(p, ".git", ".gjt"))
			}
		}
	}
	var names []string
	for _, f := range w.files {
		names = append(names, w.namesOf(f)...)
	}
	all := map[string]bool{}
	for _, patterns := range sources {
		w.checkIgnore(patterns, names, func(name string) string { return name }, all)
		if wide { // forms of Unicode are forms of one name
			w.checkIgnore([]string{norm.NFC.String(strings.Join(patterns, "\n"))}, names, norm.NFC.String, all)
		}
	}
	return all
}

// checkIgnore adds those of the names that git ignores in a form. It looks at a copy of the layout, in which nothing is but
// the names.
func (w *wild) checkIgnore(patterns, names []string, form func(string) string, to map[string]bool) {
	back := map[string][]string{}
	var in bytes.Buffer
	for _, name := range names {
		at := strings.ReplaceAll(form(name), ".git", ".gjt") // which git would take for a repository of its own
		key := strings.TrimPrefix(at, "/")
		if back[key] = append(back[key], name); len(back[key]) > 1 {
			continue
		}
		if in.WriteString(key + "\x00"); !w.shadowed[key] {
			w.put(filepath.Join(w.shadow(), at), "")
			w.shadowed[key] = true
		}
	}
	list := filepath.Join(w.shadow(), ".git", "list")
	w.put(list, strings.Join(patterns, "\n")+"\n")
	out := w.run(w.shadow(), &in, "-c", "core.excludesFile="+list, "-c", "core.ignorecase=false", "check-ignore",
		"--no-index", "-z", "--stdin")
	for _, key := range strings.Split(out, "\x00") {
		for _, name := range back[key] {
			to[name] = true
		}
	}
}

// shadow is the repository in which git is asked, as bare as one can be.
func (w *wild) shadow() string {
	dir := w.top + ".shadow"
	if w.shadowed == nil {
		w.shadowed = map[string]bool{}
		w.t.Cleanup(func() { removeWild(w.t, dir) })
		w.put(filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n")
		w.put(filepath.Join(dir, ".git", "objects", "none"), "")
		w.put(filepath.Join(dir, ".git", "refs", "none"), "")
	}
	return dir
}

func (w *wild) run(dir string, in *bytes.Buffer, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, host.CleanEnv(w.home)
	if in != nil {
		cmd.Stdin = in
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1 && errs.Len() == 0) { // 1: nothing is ignored
		w.t.Fatalf("git %q: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// translate writes a rule as the patterns of an excludes file of the whole disk: as it stands, or in every sense that may
// be meant.
func (w *wild) translate(r wildRule, wide bool) []string {
	pattern, carve := r.pattern, ""
	if rest, ok := strings.CutPrefix(pattern, "!"); ok {
		pattern, carve = rest, "!"
	}
	bases := w.roots
	if r.root != "" && strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "//") {
		bases = []string{r.root}
	}
	senses := []string{pattern}
	if wide && carve == "" {
		if dir, ok := strings.CutSuffix(pattern, "/**"); ok && !strings.Contains(dir, "/") {
			senses = append(senses, "**/"+pattern)
		}
		senses = append(senses, strings.ReplaceAll(pattern, "[", `\[`), strings.TrimSuffix(pattern, "/**"),
			strings.ReplaceAll(strings.ReplaceAll(pattern, "?", "*"), "[!/]", "*")) // one character, which is several bytes to git
	}
	var all []string
	for _, p := range senses {
		switch {
		case strings.HasPrefix(p, "//"):
			all = append(all, carve+p[1:])
			continue
		case strings.HasPrefix(p, "/"):
		case !strings.Contains(strings.TrimSuffix(p, "/"), "/"):
			p = "/**/" + p
		default:
			p = "/" + p
		}
		for _, base := range bases {
			all = append(all, carve+strings.ReplaceAll(quotedPath(base), "\n", "")+p)
		}
	}
	return all
}

// quotedPath is the pattern of a path that has any characters in it.
func quotedPath(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = quotedPattern(e)
	}
	return strings.Join(elements, "/")
}
