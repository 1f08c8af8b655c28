package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// A Question asks a person whether a call may run. It shows every effect of the call. Its texts are safe to show,
// except for Input.
type Question struct {
	// ID names the question in the audit log and in addresses of the console. It is not secret, and answering does not
	// require it.
	ID string
	// Gist is a summary of one line and at most [maxGist] characters, with the most dangerous part first.
	Gist string
	// Message is the whole question as text, the gist first. Long contents are shown by their first and last lines.
	Message string
	// Text is the whole command line, and Dir the directory it would run in. Both are empty if there is no command. Says
	// is what the agent says about it.
	Text, Dir, Says string
	// Unusual is what the person should know first, see [guard.Description.Unusual].
	Unusual []string
	// Items are all effects, including those that are already allowed.
	Items []guard.Item
	// Scripts are the texts that the asked commands run from files.
	Scripts []guard.Script
	// Notes say where and how the call would run.
	Notes []string
	// Always lists the rules that "always allow" would remember. If it is empty, "always allow" is not offered and
	// NoAlways gives the reason.
	Always   []string
	NoAlways string
	// Fixed says that what Always lists cannot be narrowed, and says itself where and how long it holds.
	Fixed bool
	// AllPrograms is what [AllowHost] would remember, or "" if it is not offered.
	AllPrograms string
	// State binds the answer to the call. It is opaque, signed, and valid once, within [approvals.Kept].
	State string
	// Input is the complete input that the call would run with, as JSON.
	Input json.RawMessage
	// Form is the params of an elicitation that replaces this question. If nil, the question is about a permission.
	Form json.RawMessage
	// Verdict says why approval is required, part by part.
	Verdict    guard.Verdict
	digest     []byte               // of the call
	entry      string               // of sandbox.network.programs, which "always allow" adds; "": it adds none
	classifier <-chan hook.Decision // nil if it is not asked

	// URL is the URL of the question's page at the console, or "" without a console.
	URL string
}

// The possible decisions of a person.
const (
	AllowOnce   = "allow once"
	AlwaysAllow = "always allow" // only if the question offers it
	// AllowHost allows a host to all programs in the workspace, only if the question offers it.
	AllowHost = "always allow for all programs"
	DenyIt    = "deny"
)

// Decisions returns the decisions that the question offers. Other decisions do not count.
func (q *Question) Decisions() []string {
	all := decisions(q.Always)
	if q.AllPrograms != "" {
		all = slices.Insert(all, len(all)-1, AllowHost)
	}
	return all
}

// decisions returns the decisions of a question that offers to remember the rules in always.
func decisions(always []string) []string {
	if len(always) == 0 {
		return []string{AllowOnce, DenyIt}
	}
	return []string{AllowOnce, AlwaysAllow, DenyIt}
}

// An offer holds the rules that "always allow" would remember, or the reason why it is not offered.
type offer struct {
	rules       []string
	fixed       bool
	allPrograms string // see [Question].AllPrograms
	none        string
	by          string // the agent that asks; "": the caller itself
}

// newQuestion returns a question about a call of a principal.
func (p *approver) newQuestion(principal, tool string, call *builtin.Call, d guard.Description, v guard.Verdict,
	o offer) *Question {
	q := &Question{
		ID: approvals.NewID(), Text: Sanitize(d.Text), Dir: guard.OneLine(d.Dir),
		Says: guard.OneLine(d.Says), Verdict: v,
		Always: o.rules, Fixed: o.fixed, AllPrograms: o.allPrograms, NoAlways: o.none,
	}
	if call != nil { // otherwise it is about an agent in a cell
		q.Input, _ = call.Input() // cannot fail: the call was bound from JSON
	}
	q.Gist = gist(tool, d)
	if o.by != "" {
		q.Gist = guard.Shorten(o.by+": "+q.Gist, maxGist)
	}
	for _, i := range d.Items {
		i.What, i.Rule, i.Source, i.Reason = Sanitize(i.What), guard.OneLine(i.Rule), guard.OneLine(i.Source),
			guard.OneLine(i.Reason)
		i.Removed, i.Added, i.Diff = Sanitize(i.Removed), Sanitize(i.Added), Sanitize(i.Diff)
		q.Items = append(q.Items, i)
	}
	slices.SortStableFunc(q.Items, func(a, b guard.Item) int { return asked(b) - asked(a) })
	for _, s := range d.Scripts {
		s.Command, s.File, s.Text, s.Note = guard.OneLine(s.Command), guard.OneLine(s.File), Sanitize(s.Text),
			guard.OneLine(s.Note)
		q.Scripts = append(q.Scripts, s)
	}
	for _, text := range d.Unusual() {
		q.Unusual = append(q.Unusual, guard.OneLine(text))
	}
	for _, note := range d.Notes {
		q.Notes = append(q.Notes, guard.OneLine(note))
	}
	q.URL = p.pageOf(principal, q.ID)
	q.Message = q.message(tool)
	return q
}

// asked orders effects: those that a person is asked about come first.
func asked(i guard.Item) int {
	if i.Action == guard.Allow {
		return 0
	}
	return 1
}

// Bounds of what a question shows.
const (
	// maxGist is the longest gist, in characters: some clients show that much.
	maxGist = 200
	// maxShown is the longest command line that is shown whole, in characters. It is more than guard reads of a command
	// line.
	maxShown = 12_000
	// firstLines and lastLines are how many lines are shown of a longer text, and of the content of a file.
	firstLines, lastLines = 40, 20
	// maxItem and maxGistItem are the longest effects that are shown whole in the message and in the gist, in
	// characters.
	maxItem, maxGistItem = 1000, 60
	// maxScriptShown is the longest script that the message shows whole, in bytes, and shownDigest how many digits of
	// its digest.
	maxScriptShown, shownDigest = 4000, 12
)

// gist returns the gist of a call.
func gist(tool string, d guard.Description) string {
	items := d.ByDanger()
	var b strings.Builder
	b.WriteString(tool)
	for _, note := range d.Notes {
		if !strings.Contains(note, "(") { // the message shows unknown items
			b.WriteString(" " + note)
		}
	}
	b.WriteString(": ")
	if n := countRuns(items); n > 1 {
		fmt.Fprintf(&b, "%d commands: ", n)
	}
	used := utf8.RuneCountInString(b.String())
	for i, item := range items {
		text := strings.TrimPrefix(item.What, "run ")
		if verb, what, _ := strings.Cut(text, " "); strings.EqualFold(verb, tool) {
			text = what
		}
		if item.Removed+item.Added != "" {
			text += ": " + strings.TrimSpace(item.Added)
		}
		rest := ""
		if left := len(items) - i - 1; left > 0 {
			rest = fmt.Sprintf(" and %d more", left)
		}
		room := maxGist - used - len(rest) - len("; ")
		if len(items) > 1 && i < len(items)-1 {
			room = min(room, maxGistItem)
		}
		if room < 12 {
			b.WriteString(fmt.Sprintf(" and %d more", len(items)-i))
			break
		}
		if i > 0 {
			b.WriteString("; ")
			used += 2
		}
		text = guard.Shorten(guard.OneLine(text), room)
		b.WriteString(text)
		used += utf8.RuneCountInString(text)
	}
	return guard.Shorten(guard.OneLine(b.String()), maxGist)
}

func countRuns(items []guard.Item) (n int) {
	for _, i := range items {
		if strings.HasPrefix(i.What, "run ") {
			n++
		}
	}
	return n
}

// message returns the whole question as text.
func (q *Question) message(tool string) string {
	var b strings.Builder
	b.WriteString(q.Gist + "\n\n")
	for _, text := range q.Unusual {
		b.WriteString("! " + guard.Shorten(text, maxItem) + "\n")
	}
	b.WriteString(tool + " asks to be allowed")
	for _, note := range q.Notes {
		b.WriteString(", " + note)
	}
	if q.Dir != "" {
		b.WriteString(", in " + q.Dir)
	}
	b.WriteString(":\n")
	if q.Text != "" {
		b.WriteString(q.excerpt("", q.Text, maxShown))
	}
	if q.Says != "" {
		b.WriteString("The agent says: " + guard.Shorten(q.Says, maxItem) + "\n")
	}
	if len(q.Items) > 1 || q.Text == "" {
		b.WriteString("\nEverything that it does:\n")
		for _, i := range q.Items {
			q.writeItem(&b, i)
		}
	}
	for _, s := range q.Scripts {
		b.WriteString("\n" + scriptHead(s) + ":\n" + q.excerpt("", s.Text, maxScriptShown))
		if s.Cut > 0 {
			fmt.Fprintf(&b, "  … %d more bytes are not shown.\n", s.Cut)
		}
	}
	if len(q.Items) == 0 || q.Text == "" && !slices.ContainsFunc(q.Items,
		func(i guard.Item) bool { return i.Removed+i.Added != "" }) {
		b.WriteString("\nIts input:\n" + q.excerpt("", Sanitize(string(q.Input)), maxShown))
	}
	fmt.Fprintf(&b, "\n%s (rule: %s", guard.OneLine(q.Verdict.Reason), guard.OneLine(q.Verdict.Rule))
	if q.Verdict.Source != "" {
		fmt.Fprintf(&b, ", %s", guard.OneLine(q.Verdict.Source))
	}
	b.WriteString(")\n\n")
	if len(q.Always) > 0 {
		fmt.Fprintf(&b, "Always allowing it remembers: %s", guard.OneLine(strings.Join(q.Always, ", ")))
		if q.AllPrograms != "" {
			fmt.Fprintf(&b, "; for all programs of this workspace: %s", guard.OneLine(q.AllPrograms))
		}
	} else {
		fmt.Fprintf(&b, "It can be allowed once only: %s.", guard.OneLine(q.NoAlways))
	}
	return b.String()
}

// writeItem writes an effect, the verdict on it, and the text that it removes and adds.
func (q *Question) writeItem(b *strings.Builder, i guard.Item) {
	what := guard.Shorten(i.What, maxItem)
	fmt.Fprintf(b, "- %s [%s", guard.OneLine(what), verdictWord(i.Action))
	if i.Rule != "" {
		fmt.Fprintf(b, ": %s", guard.OneLine(i.Rule))
	}
	b.WriteString("]\n" + q.leftOut(what != i.What))
	if i.Diff != "" {
		b.WriteString(q.excerpt("", i.Diff, 0))
		return
	}
	b.WriteString(q.excerpt("-", i.Removed, 0) + q.excerpt("+", i.Added, 0))
}

// scriptHead returns a line that names a script.
func scriptHead(s guard.Script) string {
	head := guard.Shorten(s.Command, maxItem) + " runs " + guard.Shorten(s.File, maxItem)
	if s.Digest != "" {
		head += " (SHA-256 " + s.Digest[:shownDigest] + "…)"
	}
	if s.Note != "" {
		head += ", " + s.Note
	}
	return head
}

func verdictWord(a guard.Action) string {
	if a == guard.Ask {
		return "asks"
	}
	return map[guard.Action]string{guard.Allow: "allowed", guard.Deny: "denied"}[a]
}

// excerpt returns a text with a mark before each line, so that no line can be mistaken for a part of the question. A
// text of more than whole characters is cut to its first and last lines.
func (q *Question) excerpt(mark, text string, whole int) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var b strings.Builder
	cut, shortened := len(text) > whole, false
	for n, line := range lines {
		if skipped := len(lines) - firstLines - lastLines; cut && n >= firstLines && n < firstLines+skipped {
			if n == firstLines {
				fmt.Fprintf(&b, "  … %d lines left out: %s\n", skipped, q.whereWhole())
			}
			continue
		}
		if short := guard.Shorten(line, maxItem); cut && short != line {
			line, shortened = short, true
		}
		b.WriteString("  |" + mark + " " + line + "\n")
	}
	return b.String() + q.leftOut(shortened)
}

// leftOut returns a note that the middle of a line above was left out, if it was.
func (q *Question) leftOut(shortened bool) string {
	if !shortened {
		return ""
	}
	return "  … the middle of a long line left out: " + q.whereWhole() + "\n"
}

// whereWhole says where a person can see what the message leaves out.
func (q *Question) whereWhole() string {
	if q.URL != "" {
		return "the whole is at " + q.URL
	}
	return "the whole is in the call, and at the console (toolhost console)"
}

// Sanitize is [guard.Sanitize].
func Sanitize(s string) string { return guard.Sanitize(s) }
