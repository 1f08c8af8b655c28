//go:build unix

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// An attack is one row of testdata/attacks: a call, and what must become of it.
type attack struct {
	class, source string
	profiles      []string
	verb          string // refused, held, passes or gap
	tool, args    string
	place         string // file:line
	repeats       bool   // it has a $REPEAT
}

// attacks reads every row.
func attacks(t testing.TB) []attack {
	t.Helper()
	files, err := filepath.Glob("testdata/attacks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no attacks are found: %v", err)
	}
	var all []attack
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := parseAttacks(filepath.Base(file), string(raw))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
	}
	return all
}

func parseAttacks(file, text string) ([]attack, error) {
	var all []attack
	var now attack
	number := 0
	for line := range strings.Lines(text) {
		number++
		now.place = fmt.Sprintf("%s:%d", file, number)
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "":
		case "class":
			now.class, now.source, now.profiles = rest, "", nil
		case "from":
			now.source = rest
		case "in":
			now.profiles = strings.Fields(rest)
		case "refused", "held", "passes", "gap":
			row := now
			row.verb = word
			row.tool, row.args, _ = strings.Cut(rest, " ")
			if row.tool == "bash" {
				command, err := json.Marshal(row.args)
				if err != nil {
					return nil, err
				}
				row.tool, row.args = "Bash", `{"command":`+string(command)+`}`
			}
			row.repeats = strings.Contains(row.args, "$REPEAT(")
			if row.args = repeated(row.args); !json.Valid([]byte(row.args)) {
				return nil, fmt.Errorf("%s: the arguments are no JSON: %s", row.place, row.args)
			}
			all = append(all, row)
		default:
			return nil, fmt.Errorf("%s: unknown word %q", now.place, word)
		}
		if len(all) > 0 && (now.class == "" || all[len(all)-1].source == "" || all[len(all)-1].profiles == nil) {
			return nil, fmt.Errorf("%s: the row has no class, source or profile", now.place)
		}
	}
	return all, nil
}

// repeated writes out $REPEAT(TEXT,N): commands that are too long for a line. The text ends at the last comma.
func repeated(text string) string {
	for {
		before, rest, found := strings.Cut(text, "$REPEAT(")
		if !found {
			return text
		}
		i := 0
		for i < len(rest) && !(rest[i] == ',' && i+1 < len(rest) && rest[i+1] >= '0' && rest[i+1] <= '9') {
			i++
		}
		count, after, _ := strings.Cut(rest[i+1:], ")")
		n, err := strconv.Atoi(count)
		if err != nil {
			return text
		}
		text = before + strings.Repeat(rest[:i], n) + after
	}
}

// denials are the rules of the hosts that are attacked.
var denials = []string{"--deny", "Read(.env)", "--deny", "Read(secrets/**)", "--deny", "Edit(locked/**)"}

// profileFlags are the flags of each kind of host.
func profileFlags(w *world, profile string) []string {
	flags := []string{"--root", w.ws}
	switch profile {
	case "rules": // rules on files and commands
		return append(append(flags, denials...), "--deny", "Bash(rm:*)", "--deny", "Bash(curl:*)")
	case "kernel": // rules on files alone, so that nearly every command runs
		return append(flags, denials...)
	case "uncontained": // rules on files, and nothing to hold them
		return append(append(flags, denials...), "--settings", filepath.Join(w.root, "uncontained.json"))
	case "asking": // rules that ask, and no one to be asked
		return append(flags, "--settings", filepath.Join(w.root, "asking.json"))
	case "frozen": // a rule on every edit
		return append(flags, "--deny", "Edit")
	case "frozenbelow": // the same, as a pattern
		return append(flags, "--deny", "Edit(**)")
	case "late": // rules on files that do not exist yet
		return append(flags, "--deny", "Edit(*.lock)", "--deny", "Edit(/generated/**)")
	case "planned": // plan mode, in which every command runs
		return append(append(flags, denials...), "--settings", filepath.Join(w.root, "planned.json"))
	case "plan": // only what reads is run, and nothing holds it
		return append(flags, "--settings", filepath.Join(w.root, "plan.json"))
	case "allowed": // only what rules allow is run, and nothing holds it
		return append(flags, "--settings", filepath.Join(w.root, "allowed.json"))
	case "words": // rules of several words
		return append(flags, "--deny", "Bash(chmod 777:*)", "--deny", "Bash(git tag -d:*)", "--deny",
			"Bash(*--no-verify*)", "--deny", "Bash(dd of=*)", "--deny", "Bash(python3 -m venv:*)")
	case "flags":
		return append(flags, "--deny", "Bash(chmod -R *)", "--deny", "Bash(git push --force *)", "--deny",
			"Bash(cp -rf *)",
			"--deny", "Bash(rm -rf*)", "--deny", "Bash(*shred -uz*)", "--deny", "Bash(git push --force*)")
	case "broken":
		return append(flags, "--settings", filepath.Join(w.root, "broken.json"))
	}
	return nil
}

// TestAttacks runs the rows of testdata/attacks on one host for each profile, and looks after each row at what was shown and what has
// changed. Of the commands that must be refused or held, a few of each class are run. With -tags slow, every command that must be
// held is run in at least one profile, and a quarter of those that rules refuse: package guard judges all of these without a host.
func TestAttacks(t *testing.T) {
	t.Parallel()
	held := host.Contained(t)
	if !held {
		t.Log("nothing contains commands on this machine: rows of Bash must be refused, and those that must pass are left out")
	}
	rows := map[string][]attack{}
	commands, some := map[string]int{}, samples.Step(1)*samples.Step(1)
	for _, a := range attacks(t) {
		for _, p := range a.profiles {
			kind, step := p+" "+a.class+" "+a.verb, some*samples.Step(1)
			switch {
			case p == "planned": // nothing stays of what a row makes
				step = some
			case a.verb == "passes": // a later row may need what it makes
				step = 1
			case p == "rules" && a.verb == "refused" && !a.repeats, // package guard judges them all
				p == "rules" && slices.Contains(a.profiles, "kernel"): // which has the same rules on files
				step *= 4
			}
			if a.tool == "Bash" {
				if commands[kind]++; (commands[kind]-1)%step != 0 {
					continue
				}
			}
			rows[p] = append(rows[p], a)
		}
	}
	for _, profile := range slices.Sorted(maps.Keys(rows)) {
		run := func(user int, rows []attack) func(*testing.T) {
			return func(t *testing.T) {
				t.Parallel() // the rows of a profile wait for commands that never end by themselves
				attackProfile(t, profile, user, rows, held && profile != "uncontained")
			}
		}
		t.Run(profile, run(0, rows[profile]))
		if profile == "kernel" && os.Geteuid() == 0 { // what holds root may not hold a user, and the other way round
			touched := slices.DeleteFunc(slices.Clone(rows[profile]), func(a attack) bool { return a.verb == "refused" }) // by rules, for all
			t.Run(profile+"-user", run(ordinaryUser, samples.Few(touched)))
		}
	}
}

// attackProfile runs rows on one host.
func attackProfile(t *testing.T, profile string, user int, rows []attack, held bool) {
	w := newWorld(t)
	if user != 0 {
		w.giveTo(t, user)
	}
	switch profile {
	case "plan":
		w.forms[canaryOutside] = "a file outside of the root"
	case "planned":
		w.whole = true
		w.before = w.snapshot()
	}
	h := w.host(t, host.StdioModern, profileFlags(w, profile)...)
	for _, a := range rows {
		w.attack(t, h, a, held)
	}
	w.end(t, h)
}

// taskOf finds the id of a task in what was said of its start.
var taskOf = regexp.MustCompile(`TaskOutput \{"task_id":"([^"]+)"\}`)

// attack runs one row and judges it.
func (w *world) attack(t *testing.T, h *witness, a attack, held bool) {
	t.Helper()
	if a.tool == "Bash" && !held && a.verb == "passes" {
		return
	}
	args := w.expand(a)
	said := h.call(t, a.tool, args, a.place)
	problem := func(format string, more ...any) {
		t.Helper()
		text := fmt.Sprintf("%s: %s %s %s: %s", a.place, a.verb, a.tool, host.Clip(args, 200),
			fmt.Sprintf(format, more...))
		if a.verb == "gap" {
			t.Log("known gap: " + text)
			return
		}
		t.Error(text)
	}
	if task := taskOf.FindStringSubmatch(said.text); task != nil { // what it changes is settled when it has ended
		h.call(t, "TaskOutput", `{"task_id":"`+task[1]+`"}`, a.place)
	}
	if leak := w.leaks(said.raw, args); leak != "" {
		problem("%s was shown:\n%s", leak, host.Clip(said.raw, 600))
	}
	for _, change := range w.changes() {
		problem("%s", change)
	}
	switch {
	case a.verb == "passes" && !said.ok:
		problem("it was not done:\n%s", host.Clip(said.text, 600))
	case a.verb == "refused" && said.ok,
		a.verb == "held" && a.tool == "Bash" && !held && said.ok:
		problem("it was done:\n%s", host.Clip(said.text, 600))
	}
}

// attackTime is how long the command of an attack may run, in milliseconds: some read from what never ends.
const attackTime = 1000

// expand puts the places of this world into the arguments. Commands have the variables of the shell.
func (w *world) expand(a attack) string {
	if a.tool == "Bash" {
		if a.verb == "passes" {
			return a.args
		}
		return strings.TrimSuffix(a.args, "}") + `,"timeout":` + strconv.Itoa(attackTime) + "}"
	}
	return strings.NewReplacer("$ROOT", w.root, "$WS", w.ws, "$HOME", w.home, "$STATE", w.state).Replace(a.args)
}

// A witness is a host is one of which everything it says is kept.
type witness struct {
	*host.Host
	mu    sync.Mutex
	notes []string // notifications since the last call was answered
}

// said is everything that a call brought back.
type said struct {
	raw  string // the answer as it came, and the notifications on the way
	text string
	ok   bool
}

// call makes a call in a conversation of its own for commands, whose working directory carries over.
func (h *witness) call(t *testing.T, tool, args, label string) said {
	t.Helper()
	return h.callWithin(t, host.Patience, tool, args, label)
}

// callWithin is call with another time for the answer.
func (h *witness) callWithin(t *testing.T, most time.Duration, tool, args, label string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	meta := map[string]any{"progressToken": "p-" + label}
	if tool == "Bash" {
		meta["threadId"] = "thread-" + label
	}
	p, err := h.Start(ctx, tool, args, meta)
	if err != nil {
		t.Fatalf("%s: the host is gone: %v\n%s", label, err, h.Stderr)
	}
	raw, err := p.Wait(ctx)
	h.mu.Lock()
	out := said{raw: string(raw) + strings.Join(h.notes, "\n")}
	h.notes = nil
	h.mu.Unlock()
	var refused *client.Error
	if errors.As(err, &refused) {
		out.text = refused.Error()
		out.raw += out.text
		return out
	}
	if err != nil {
		t.Fatalf("%s: no answer to %s %s: %v\n%s", label, tool, host.Clip(args, 300), err, h.Stderr)
	}
	var result client.Result
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	out.text, out.ok = result.Text(), !result.IsError
	return out
}

// host starts a host in the world and watches it.
func (w *world) host(t *testing.T, s host.Setting, flags ...string) *witness {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
	defer cancel()
	started, err := host.StartHostAs(ctx, w.as, s, w.ws, host.CleanEnv(w.home), flags...)
	if err != nil {
		t.Fatal(err)
	}
	h := &witness{Host: started}
	t.Cleanup(func() { // before its files are removed, which a host that runs would go on writing
		if !h.Ended {
			_ = h.Stop() // what ended the test early has been told
		}
	})
	h.OnNotification = func(n client.Notification) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.notes = append(h.notes, fmt.Sprint(n.Params))
	}
	return h
}

// end stops the host and looks at what it leaves: its log and everything in its state.
func (w *world) end(t *testing.T, h *witness) {
	t.Helper()
	if err := h.Stop(); err != nil {
		t.Errorf("the host did not end well: %v", err)
	}
	if leak := w.leaks(h.Stderr.String(), ""); leak != "" {
		t.Errorf("%s is in what the host logged:\n%s", leak, host.Clip(h.Stderr.String(), 600))
	}
	err := filepath.WalkDir(w.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "audit.jsonl" {
			return err
		}
		raw, err := os.ReadFile(path)
		if leak := w.leaks(string(raw), ""); leak != "" && leak != "a denied name" {
			t.Errorf("%s is kept in %s", leak, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestAttackCoverage lists the threat classes and what holds them; none may be without.
func TestAttackCoverage(t *testing.T) {
	rows := map[string]int{}
	sources := map[string]string{}
	for _, a := range attacks(t) {
		rows[a.class]++
		sources[a.class] = a.source
		if !slices.ContainsFunc(threats, func(c threat) bool { return c.class == a.class }) {
			t.Errorf("%s: the class %q is not in the list of threats", a.place, a.class)
		}
	}
	declared := declaredTests(t)
	total := 0
	for _, c := range threats {
		for _, name := range c.tests {
			if !declared[name] {
				t.Errorf("the class %q names %s, and there is no such test", c.class, name)
			}
		}
		n := rows[c.class]
		total += n
		if n == 0 && len(c.tests) == 0 {
			t.Errorf("nothing holds the class %q", c.class)
		}
		by := make([]string, 0, len(c.tests)+1)
		if n > 0 {
			by = append(by, fmt.Sprintf("TestAttacks (%d rows)", n))
		}
		t.Logf("%-30s %s", c.class, strings.Join(append(by, c.tests...), ", "))
	}
	t.Logf("%d classes, %d rows", len(threats), total)
}
