package guard

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// A Description is what people see of a call before it is allowed, and in logs. Its texts are as the agent wrote
// them: sanitize them before showing them.
type Description struct {
	// Text is the whole command line, "" if Items show all of it.
	Text string
	// Dir is the directory that a command starts in.
	Dir string
	// Items are all effects of the call, including those that are allowed already.
	Items []Item
	// Notes say where and how the call would run: outside the sandbox, in the background.
	Notes []string
	// Says is what the agent says that the command does.
	Says string
	// Scripts are the texts that the asked commands run from files, see [Policy.Scripts].
	Scripts []Script
}

// outsideSandbox is the note about a command that nothing contains.
const outsideSandbox = "outside the sandbox"

// An Item is one effect of a call: a command of a line, a file, a host.
type Item struct {
	// What is the effect in words, the verb first: "run rm -rf x".
	What string
	// Action, Rule, Source and Reason are the verdict on the effect.
	Action               Action
	Rule, Source, Reason string
	// Removed and Added are the text that a write removes and adds. Diff is the unified diff of the file, "" if it is
	// not known.
	Removed, Added, Diff string

	danger danger
	judged string // [Part.What] of its verdict, if it differs from What
}

// A danger says how much harm an effect may do.
type danger uint8

const (
	harmless  danger = iota // changes nothing
	changes                 // may change something
	writes                  // writes files
	reaches                 // reaches other machines
	unknown                 // the effect is not known before it runs
	deletes                 // deletes files, or ends processes
	escalates               // runs with other rights
)

// ByDanger returns the items, the most dangerous first.
func (d Description) ByDanger() []Item {
	return slices.SortedStableFunc(slices.Values(d.Items), func(a, b Item) int { return int(b.danger) - int(a.danger) })
}

// A describer is an [Effect] that shows more than its record.
type describer interface {
	describe() Description
	summary() string // one line
}

// Describe returns what people see of a call, with the verdict on each part.
func (in Intent) Describe(v Verdict) Description {
	var d Description
	for _, e := range in.Effects {
		one := describe(e)
		d.Items, d.Notes = append(d.Items, one.Items...), append(d.Notes, one.Notes...)
		if one.Text != "" {
			d.Text, d.Dir, d.Says = one.Text, one.Dir, one.Says
		}
	}
	for i := range d.Items {
		d.Items[i].decided(v, d.Text)
	}
	for _, p := range v.Parts {
		whole := d.Text != "" && p.What == "run "+d.Text
		if !whole && !slices.ContainsFunc(d.Items, func(i Item) bool { return i.judged == p.What || i.What == p.What }) {
			d.Items = append(d.Items, Item{What: p.What, Action: p.Action, Rule: p.Rule, Source: p.Source,
				Reason: p.Reason, danger: dangerOf(p.What)})
		}
	}
	return d
}

// Summary returns one line about the call: a pattern, a range of lines, "+3 -1".
func (in Intent) Summary() string {
	for _, e := range in.Effects {
		if one, ok := e.(describer); ok && one.summary() != "" {
			return one.summary()
		}
	}
	return ""
}

func describe(e Effect) Description {
	if one, ok := e.(describer); ok {
		return one.describe()
	}
	if e == nil {
		return Description{}
	}
	verb, value := e.Record()
	if verb == "" {
		return Description{}
	}
	return Description{Items: []Item{{What: verb + " " + value, danger: dangerOf(verb + " ")}}}
}

// dangerOf returns the danger of an effect that is known by its words only.
func dangerOf(what string) danger {
	switch verb, _, _ := strings.Cut(what, " "); verb {
	case "read", "search", "compute":
		return harmless
	case "write":
		return writes
	case "fetch":
		return reaches
	}
	return unknown
}

// decided sets the verdict on an item: the verdict on the parts of the item, or else on the whole call. line is the
// command line that the item belongs to, if any.
func (i *Item) decided(v Verdict, line string) {
	if i.judged == "" {
		i.judged = i.What
	}
	i.Action, i.Rule, i.Source, i.Reason = v.Action, v.Rule, v.Source, v.Reason
	found := false
	for _, p := range v.Parts {
		if p.What == i.judged && (!found || p.Action < i.Action) {
			i.Action, i.Rule, i.Source, i.Reason, found = p.Action, p.Rule, p.Source, p.Reason, true
		}
	}
	if found || v.Action == Deny {
		return
	}
	for _, p := range v.Parts { // a rule that allows the whole line allows its commands
		if p.Action == Allow && p.What == "run "+line {
			i.Action, i.Rule, i.Source, i.Reason = p.Action, p.Rule, p.Source, p.Reason
		}
	}
}

// describe implements describer: every command of the line, and every file that it redirects to or from.
func (e Exec) describe() Description {
	a := e.analysis()
	d := Description{Text: e.Text, Dir: e.Dir.String(), Says: e.Description}
	if e.Unsandboxed {
		d.Notes = append(d.Notes, outsideSandbox)
	}
	if e.Background {
		d.Notes = append(d.Notes, "in the background")
	}
	for _, s := range a.Commands {
		d.Items = append(d.Items, Item{What: "run " + textOf(s), judged: "run " + s.Text, danger: dangerOfCommand(s, a)})
	}
	for _, w := range a.Writes {
		d.Items = append(d.Items, e.redirect("write ", w, writes))
	}
	for _, w := range a.Reads {
		if !w.Stream() {
			d.Items = append(d.Items, e.redirect("read ", w, harmless))
		}
	}
	if len(d.Items) == 0 {
		d.Items = []Item{{What: "run " + e.Text, danger: unknown}}
	}
	if len(a.Undecidable) > 0 {
		d.Notes = append(d.Notes, "not all that it does is known before it runs ("+
			strings.Join(a.Undecidable, "; ")+")")
	}
	return d
}

func (e Exec) summary() string {
	if e.Description != "" {
		return firstLine(e.Description) + ": " + firstLine(e.Text)
	}
	return firstLine(e.Text)
}

func (e Exec) redirect(verb string, w command.Word, d danger) Item {
	i := Item{What: verb + w.Text, danger: d}
	if isStream(w.Text) {
		i.danger = harmless
	}
	if w.Static && !w.Home && !filepath.IsAbs(w.Text) {
		i.judged = verb + filepath.Join(e.Dir.String(), w.Text)
	}
	return i
}

func (e Write) describe() Description {
	i := Item{What: "write " + e.Path.String(), Removed: e.Removed, Added: e.Added, danger: writes}
	if e.Note != "" {
		i.judged = i.What
		i.What += ", " + e.Note
	}
	if e.Preview != nil {
		i.Diff = e.Preview()
	}
	return Description{Items: []Item{i}}
}

// summary returns how many lines are added and removed, without the common beginning and end of both texts.
func (e Write) summary() string {
	before, after := e.Removed, e.Added
	same := 0
	for i := 0; i < min(len(before), len(after)) && before[i] == after[i]; i++ {
		if before[i] == '\n' {
			same = i + 1
		}
	}
	before, after = before[same:], after[same:]
	same = 0
	for i := 1; i <= min(len(before), len(after)) && before[len(before)-i] == after[len(after)-i]; i++ {
		if before[len(before)-i] == '\n' {
			same = i - 1
		}
	}
	return fmt.Sprintf("+%d -%d", countLines(after[:len(after)-same]), countLines(before[:len(before)-same]))
}

func countLines(s string) int {
	if s == "" || strings.HasSuffix(s, "\n") {
		return strings.Count(s, "\n")
	}
	return strings.Count(s, "\n") + 1
}

func (e Read) describe() Description {
	return Description{Items: []Item{{What: "read " + e.Path.String()}}}
}
func (e Read) summary() string { return e.Range }

func (e Search) describe() Description {
	return Description{Items: []Item{{What: "search " + e.Path.String()}}}
}
func (e Search) summary() string { return e.Pattern }

func (e ReadTask) describe() Description {
	return Description{Items: []Item{{What: "read task " + e.ID, judged: "read a task"}}}
}
func (e ReadTask) summary() string { return "task " + e.ID }

func (e StopTask) describe() Description {
	return Description{Items: []Item{{What: "stop task " + e.ID, judged: "stop a task", danger: changes}}}
}
func (e StopTask) summary() string { return "task " + e.ID }

// dangerous are programs that can do more harm than a change of a few files.
var dangerous = map[danger]string{
	reaches:   " curl docker ftp gh kubectl nc ncat podman rsync scp sftp socat ssh telnet wget ",
	deletes:   " dd fdisk kill killall mkfs mkswap pkill reboot rm rmdir shred shutdown srm truncate unlink wipefs ",
	escalates: " chroot doas nsenter pkexec su sudo systemctl ",
}

func dangerOfCommand(s command.Simple, of *command.Analysis) danger {
	d := changes
	if s.ReadOnly() {
		d = harmless
	}
	if _, written := s.Files(); len(written) > 0 {
		d = writes
	}
	if len(s.Undecidable) > 0 {
		d = unknown
	}
	words := strings.Fields(s.Text)
	if s.Name == "git" && slices.Contains(words, "push") {
		d = max(d, reaches)
	}
	if slices.Contains(words, "-delete") || s.Name == "git" &&
		(slices.Contains(words, "clean") || slices.Contains(words, "--hard")) {
		d = max(d, deletes)
	}
	name, _, _ := strings.Cut(s.Name, ".") // mkfs.ext4
	for level, names := range dangerous {
		if strings.Contains(names, " "+name+" ") {
			d = max(d, level)
		}
	}
	for outer := s.Outer; outer >= 0; outer = of.Commands[outer].Outer {
		if strings.Contains(dangerous[escalates], " "+of.Commands[outer].Name+" ") {
			d = escalates
		}
	}
	return d
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
