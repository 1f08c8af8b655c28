//go:build slow && linux

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

var (
	wildSeed  = flag.Uint64("seed", 0, "the seed that TestAttackGenerated begins with; 0: one of the clock with -samples=100, otherwise always the same")
	wildCount = flag.Int("worlds", 0, "how many worlds TestAttackGenerated attacks with each backend; 0: a few, many with -samples=100")
)

// A wildKind is how a host holds its rules.
type wildKind struct {
	name    string
	user    int
	as      func(*exec.Cmd)
	runs    bool           // commands run
	edits   bool           // files are edited
	sandbox map[string]any // settings of the sandbox
	mode    string
}

func (k wildKind) adjust(settings map[string]any) {
	if k.sandbox != nil {
		settings["sandbox"] = k.sandbox
	}
	if k.mode != "" {
		settings["permissions"].(map[string][]string)["deny"] = append(settings["permissions"].(map[string][]string)["deny"], "Read(never-there)")
		settings["permissions"] = withMode(settings["permissions"].(map[string][]string), k.mode)
	}
}

func withMode(lists map[string][]string, mode string) map[string]any {
	all := map[string]any{"defaultMode": mode}
	for name, list := range lists {
		all[name] = list
	}
	return all
}

// wildSecrets are the texts that nothing may show.
type wildSecrets struct {
	mu    sync.Mutex
	forms map[string]string // and whose they are
}

// TestAttackGenerated attacks worlds that are made from a seed, and rules, with sequences of calls made from it too. Which
// files a rule is on is asked of git; whatever such a file holds may be nowhere else in the end: in no answer, no file, no
// state of the host. What no rule is on must be readable and writable before that.
//
//	go test ./integration/attack -tags slow -run TestAttackGenerated                            a few worlds for each backend
//	go test ./integration/attack -tags slow -run TestAttackGenerated -samples=100 -timeout 2h -v two hundred for each
//	go test ./integration/attack -tags slow -run TestAttackGenerated/user -seed 7 -worlds 1     one of them again
//
// A failure names the seed, and the fewest steps found that still fail.
func TestAttackGenerated(t *testing.T) {
	t.Parallel()
	seed := *wildSeed
	if seed == 0 {
		seed = 1
		if samples.Whole() {
			seed = uint64(time.Now().Unix()) * 1000
		}
	}
	worlds := *wildCount
	if worlds == 0 {
		worlds = samples.Rounds(2)
	}
	run := func(kind wildKind, seed uint64) func(*testing.T) {
		return func(t *testing.T) {
			steps := 0
			for i := range uint64(worlds) {
				steps += attackWild(t, seed+i, kind)
			}
			t.Logf("%d worlds from seed %d on, %d steps", worlds, seed, steps)
		}
	}
	for _, kind := range wildKinds(t) {
		t.Run(kind.name, run(kind, seed))
		if *wildSeed == 0 {
			seed += uint64(worlds) // other worlds for each kind
		}
	}
}

// wildKinds are the ways to hold commands that this machine has.
func wildKinds(t *testing.T) []wildKind {
	kinds := []wildKind{
		{name: "plan", user: ordinaryUser, runs: true, mode: "plan", sandbox: map[string]any{"enabled": false, "onUnavailable": "allow"}},
		{name: "off", user: ordinaryUser, edits: true, mode: "acceptEdits", sandbox: map[string]any{"enabled": false, "onUnavailable": "deny"}},
	}
	if os.Geteuid() != 0 {
		for i := range kinds {
			kinds[i].user = 0
		}
	}
	if host.Contained(t) {
		kinds = append(kinds, wildKind{name: "namespaces", runs: true, edits: true})
		if os.Geteuid() == 0 {
			kinds = append(kinds, wildKind{name: "user", user: ordinaryUser, runs: true, edits: true})
		}
	}
	if host.Contained(t) {
		kinds = append(kinds, wildKind{name: "landlock", edits: true, as: host.WithoutNamespaces(t)})
	}
	return kinds
}

// attackWild attacks one world and returns in how many steps.
func attackWild(t *testing.T, seed uint64, kind wildKind) int {
	t.Helper()
	w, total, wrong := playWild(t, seed, kind, nil)
	if len(wrong) == 0 {
		return total
	}
	t.Errorf("seed %d, %s:\n  %s\nrules: %v\nsteps that are enough for the first:\n%s", seed, kind.name,
		strings.Join(wrong, "\n  "), w.rules,
		strings.Join(shrunk(t, seed, kind, total, wrong[0]), "\n"))
	return total
}

// shrunk leaves steps out of a world's as long as the same goes wrong.
func shrunk(t *testing.T, seed uint64, kind wildKind, total int, wrong string) []string {
	t.Helper()
	keep := make([]int, total)
	for i := range keep {
		keep[i] = i
	}
	end := time.Now().Add(time.Duration(samples.Rounds(20)) * time.Second)
	for size := (total + 1) / 2; size > 0 && time.Now().Before(end); {
		shorter := false
		for at := 0; at < len(keep) && time.Now().Before(end); {
			less := slices.Delete(slices.Clone(keep), at, min(at+size, len(keep)))
			_, _, still := playWild(t, seed, kind, less)
			if slices.ContainsFunc(still, func(s string) bool { return sortOf(s) == sortOf(wrong) }) {
				keep, shorter = less, true
				continue
			}
			at += size
		}
		if !shorter || size > len(keep) {
			size /= 2
		}
	}
	w, _, _ := playWild(t, seed, kind, []int{})
	var all []string
	for i, step := range w.steps() {
		if slices.Contains(keep, i) {
			all = append(all, fmt.Sprintf("  %v", step))
		}
	}
	return all
}

// sortOf is what two problems have in common that have one cause, as far as it can be told without the paths in them.
func sortOf(wrong string) string {
	first, answer, _ := strings.Cut(wrong, "\n")
	for _, words := range []string{"needlessly refused", "is shown by", "is told by", "no answer", "did not end",
		"logged", "what only", "is gone", "holds", "is another", "has the mode", "has another", "cannot be read"} {
		if !strings.Contains(first, words) {
			continue
		}
		for _, why := range []string{"has not been read in", "by a rule", "asked", "no such file"} {
			if strings.Contains(strings.ToLower(answer), why) {
				words += why
			}
		}
		return words
	}
	return first
}

// steps are all that is done to a new ground. They are the same for the same seed.
func (w *wild) steps() []wildStep {
	steps := w.benign()
	for range 12 { // before any command, which may show the names of denied files
		steps = append(steps, w.ownCall(w.target()))
	}
	w.quiet = len(steps)
	return append(steps, w.attacks(45)...)
}

// playWild makes the world of a seed and plays the steps to keep, nil for all. It returns how many steps there are in all,
// and what went wrong.
func playWild(t *testing.T, seed uint64, kind wildKind, keep []int) (*wild, int, []string) {
	t.Helper()
	w := newWild(t, seed, kind)
	if len(keep) == 0 && keep != nil {
		return w, 0, nil
	}
	w.giveTo(t)
	for _, f := range w.files {
		if f.unread {
			w.secret(f.canary, f.path)
		}
	}
	h := w.start(t)
	steps := w.steps()
	w.play(h, steps, keep)
	if err := h.Stop(); err != nil {
		w.wrong("the host did not end well: %v\n%.2000s", err, h.Stderr)
	}
	if of := w.shown(h.Stderr.String()); of != "" {
		w.wrong("%s is in what the host logged", of)
	}
	w.problems = append(w.problems, w.look()...)
	slices.Sort(w.problems)
	removeWild(t, w.top)
	removeWild(t, w.top+".shadow")
	return w, len(steps), slices.Compact(w.problems)
}

func (w *wild) wrong(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// giveTo makes the ground its user's own.
func (w *wild) giveTo(t *testing.T) {
	t.Helper()
	if w.kind.user == 0 {
		return
	}
	err := filepath.WalkDir(w.top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, w.kind.user, w.kind.user)
	})
	for dir := filepath.Dir(w.top); err == nil && dir != filepath.Clean(os.TempDir()) &&
		dir != "/"; dir = filepath.Dir(dir) {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.note()
}

func (w *wild) start(t *testing.T) *host.Host {
	t.Helper()
	as := func(cmd *exec.Cmd) {
		(&world{user: w.kind.user}).as(cmd)
		if w.kind.as != nil {
			w.kind.as(cmd)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
	defer cancel()
	h, err := host.StartHostAs(ctx, as, host.StdioModern, w.roots[0], host.CleanEnv(w.home), w.flags()...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// play does the steps, those concurrently at once.
func (w *wild) play(h *host.Host, steps []wildStep, keep []int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*host.Patience)
	defer cancel()
	type sent struct {
		step  wildStep
		early bool
		p     *client.Pending
	}
	var open []sent
	settle := func() {
		for _, s := range open {
			w.judge(ctx, s.step, s.p, s.early)
		}
		open = nil
	}
	defer func() { // what runs in the background has had its time
		for _, id := range w.tasks {
			step := wildCall("TaskOutput", map[string]any{"task_id": id, "block": false})
			if p, err := h.Start(ctx, step.tool, step.args, nil); err == nil {
				w.judge(ctx, step, p, false)
			}
		}
	}()
	for i, step := range steps {
		if keep != nil && !slices.Contains(keep, i) {
			continue
		}
		if step.outside != nil {
			settle()
			w.fromOutsideOf(ctx, h, step)
			continue
		}
		p, err := h.Start(ctx, step.tool, step.args, nil)
		if err != nil {
			w.wrong("the host is gone at %v: %v\n%.2000s", step, err, h.Stderr)
			return
		}
		if open = append(open, sent{step, i < w.quiet, p}); !step.beside || len(open) > 8 {
			settle()
		}
	}
	settle()
}

// fromOutsideOf does something that is no call. A rule is in force soon, and for commands that begin after it.
func (w *wild) fromOutsideOf(ctx context.Context, h *host.Host, step wildStep) {
	call := func(tool string, args map[string]any) string {
		s := wildCall(tool, args)
		r, err := h.Call(ctx, s.tool, s.args)
		if err != nil {
			return err.Error()
		}
		return r.Text()
	}
	for _, id := range w.tasks { // not every backend hides a file from commands that run already
		call("TaskStop", map[string]any{"task_id": id})
	}
	step.outside()
	if w.later == nil {
		return
	}
	for ctx.Err() == nil && !strings.Contains(call("Read", map[string]any{"file_path": step.ruled}), "denied by a rule") {
		time.Sleep(time.Millisecond)
	}
	w.later()
	w.later = nil
}

var wildTask = regexp.MustCompile(`task_[A-Z0-9]{20,}`)

// judge looks at an answer.
func (w *wild) judge(ctx context.Context, step wildStep, p *client.Pending, early bool) {
	raw, err := p.Wait(ctx)
	text := string(raw)
	var refused *client.Error
	if errors.As(err, &refused) {
		text = refused.Error()
	} else if err != nil {
		w.wrong("no answer to %v: %v", step, err)
		return
	}
	if of := w.shown(text); of != "" {
		w.wrong("what %s holds is shown by %v:\n    %s", of, step, host.Clip(text, 800))
	}
	if name := w.named(text, step.args); early && name != "" && (step.tool == "Grep" || step.tool == "Glob") {
		w.wrong("the name of %s is told by %v:\n    %s", name, step, host.Clip(text, 800))
	}
	if id := wildTask.FindString(text); id != "" && step.tool == "Bash" {
		w.tasks = append(w.tasks, id)
	}
	var result client.Result
	_ = json.Unmarshal(raw, &result)
	if early && step.wanted && (err != nil || result.IsError || !strings.Contains(text, step.want)) {
		w.wrong("needlessly refused: %v:\n    %s", step, host.Clip(text, 800))
	}
}
