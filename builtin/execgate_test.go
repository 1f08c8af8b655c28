package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/settings"
)

// execRules makes rules that deny and ask for commands.
func execRules(t *testing.T, mode string, deny, ask []string) *guard.Policy {
	t.Helper()
	set := &settings.Settings{DefaultMode: mode}
	for i, rule := range deny {
		set.Deny = append(set.Deny, settings.Entry{Text: rule, File: "rules.json", Line: i + 1})
	}
	for i, rule := range ask {
		set.Ask = append(set.Ask, settings.Entry{Text: rule, File: "rules.json", Line: i + 101})
	}
	p, err := guard.New(guard.Config{Roots: []string{t.TempDir()}, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// attempt is the start of a program by a process.
func attempt(process int, line string, chain ...string) *execgate.Exec {
	args := strings.Fields(line)
	return &execgate.Exec{Path: "/bin/" + args[0], Args: args, Dir: "/", Thread: process,
		Asker: func() execgate.Asker { return execgate.Asker{Process: process, Started: 1, Chain: chain} }}
}

func TestExecGateDenies(t *testing.T) {
	p := execRules(t, settings.ModeAcceptEdits, []string{"Bash(rm:*)", "Bash(git push:*)"}, nil)
	var told []ExecEvent
	g := newExecGate(Execs{Policy: func() *guard.Policy { return p },
		Tell: func(e ExecEvent) { told = append(told, e) }})
	judge := func(e *execgate.Exec) execgate.Verdict { return g.Judge(t.Context(), e) }
	for range 13 { // a search in PATH
		if v := judge(attempt(7, "rm -rf x", "make", "sh")); v.Allow {
			t.Fatal("rm was allowed")
		}
	}
	if v := judge(attempt(8, "rm -rf x", "make", "sh")); v.Allow {
		t.Error("rm was allowed to another process")
	}
	if v := judge(attempt(9, "git -C d push")); v.Allow {
		t.Error("git push was allowed")
	}
	if v := judge(attempt(9, "git pull")); !v.Allow || !v.Confirm {
		t.Errorf("git pull: %+v, want one that is confirmed", v)
	}
	v := judge(attempt(9, "git status"))
	v.Failed("its arguments changed")
	if v := judge(attempt(9, "ls")); !v.Allow || v.Confirm {
		t.Errorf("ls: %+v, want one that is not confirmed", v)
	}
	want := []string{
		"Refused: rm -rf x (make → sh → rm -rf x): rule Bash(rm:*), rules.json:1, 2 times.",
		"Refused: git -C d push: rule Bash(git push:*), rules.json:2.",
		"Refused: git status: rule unreadable program; its arguments changed.",
	}
	if got := g.lines(); !slices.Equal(got, want) {
		t.Errorf("lines:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(told) != 4 {
		t.Errorf("%d events were told, want 4: %v", len(told), told)
	}
	p = execRules(t, settings.ModeAcceptEdits, nil, nil) // a reload
	if v := judge(attempt(7, "rm -rf x")); !v.Allow {
		t.Error("rm is refused by rules that no longer hold")
	}
}

func TestExecGateBoundsEvents(t *testing.T) {
	p := execRules(t, settings.ModeAcceptEdits, []string{"Bash(rm:*)"}, nil)
	told := 0
	g := newExecGate(Execs{Policy: func() *guard.Policy { return p }, Tell: func(ExecEvent) { told++ }})
	for i := range maxExecMemory + 10 {
		g.Judge(t.Context(), attempt(i, fmt.Sprint("rm ", i)))
	}
	if lines := g.lines(); told != maxExecEvents || len(lines) != maxExecLines+1 ||
		lines[maxExecLines] != fmt.Sprintf("%d programs more were refused or allowed by a person.",
			maxExecMemory+10-maxExecLines) {
		t.Errorf("%d told, %d lines, the last is %s", told, len(lines), lines[len(lines)-1])
	}
	if len(g.memory) > maxExecMemory {
		t.Errorf("%d decisions are remembered", len(g.memory))
	}
}

// A person answers the questions of a gate.
type person struct {
	mu      sync.Mutex
	asked   []string
	open    int
	most    int
	answers chan ExecAnswer
}

func (p *person) ask(ctx context.Context, q ExecQuestion) ExecAnswer {
	p.mu.Lock()
	p.asked = append(p.asked, q.Text)
	p.open++
	p.most = max(p.most, p.open)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
	}()
	select {
	case a := <-p.answers:
		return a
	case <-ctx.Done():
		return ExecAnswer{}
	}
}

// asking is a gate whose programs a person is asked about.
func asking(t *testing.T, mode string) (*execGate, *person) {
	rules := execRules(t, mode, nil, []string{"Bash(git push:*)"})
	p := &person{answers: make(chan ExecAnswer)}
	return newExecGate(Execs{Policy: func() *guard.Policy { return rules }, Ask: p.ask,
		Granted: rules.Commands().ExecGrants(guard.NewExec("git push granted", guard.Path{}))}), p
}

// A question and the lines of a result show each argument with its end, the file of the program, and what is left out.
func TestExecGateHidesNothing(t *testing.T) {
	g, p := asking(t, settings.ModeAcceptEdits)
	close(p.answers) // refused
	long := strings.Repeat("x", 300)
	e := attempt(1, "git push", "ma\nke", "sh")
	e.Files = []execgate.File{{Name: "/opt/evil/git"}}
	e.Args = []string{"git", "push", "--dry-run prod", long, "--force", long, "two\nlines\u202e", ""}
	if g.Judge(t.Context(), e).Allow {
		t.Fatal("it was allowed")
	}
	want := "/opt/evil/git push '--dry-run prod' " + long + " --force " + long + ` $'two\nlines\U0000202e' ''`
	if len(p.asked) != 1 || p.asked[0] != want {
		t.Errorf("asked\n%q, want\n%q", p.asked, want)
	}
	lines := g.lines()
	if len(lines) != 1 || strings.ContainsAny(lines[0], "\n\u202e") ||
		!strings.Contains(lines[0], "git push '--dry-run prod'") ||
		!strings.Contains(lines[0], "characters left out") ||
		!strings.Contains(lines[0], `$'two\nlines\U0000202e' ''`) || !strings.Contains(lines[0], `$'ma\nke' → sh`) {
		t.Errorf("lines: %q", lines)
	}
}

func TestExecGateAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := asking(t, settings.ModeAcceptEdits)
		results := make(chan bool, 10)
		start := func(process int, line string) {
			go func() { results <- g.Judge(t.Context(), attempt(process, line)).Allow }()
		}
		start(1, "git push granted")
		if !<-results {
			t.Error("what was approved with the text is refused")
		}
		start(1, "git push a")
		start(2, "git push a")
		synctest.Wait()
		if len(p.asked) != 1 {
			t.Fatalf("asked %q, want one question", p.asked)
		}
		time.Sleep(time.Minute)
		p.answers <- ExecAnswer{Allowed: true, By: "console"}
		for range 2 {
			if !<-results {
				t.Error("an approved program is refused")
			}
		}
		if held := g.Held(); held != time.Minute {
			t.Errorf("held for %s, want 1m", held)
		}
		start(1, "/usr/lib/git push a") // by the same process: through a shim
		if !<-results || len(p.asked) != 1 {
			t.Error("the approval does not hold through a shim")
		}
		start(3, "git push a") // of another process it is another question
		synctest.Wait()
		start(4, "git push b")
		start(5, "git push c")
		synctest.Wait()
		if len(p.asked) != 2 || p.most != 1 {
			t.Errorf("asked %q, %d at once", p.asked, p.most)
		}
		p.answers <- ExecAnswer{Reason: "no"}
		for range 3 {
			if <-results {
				t.Error("a program was allowed after a refusal")
			}
		}
		start(6, "git push b") // asked anew
		synctest.Wait()
		p.answers <- ExecAnswer{Allowed: true}
		if !<-results || len(p.asked) != 3 {
			t.Errorf("asked %q", p.asked)
		}
		if lines := g.lines(); len(lines) != 5 || lines[0] != "Allowed by a person: git push a: rule Bash(git push:*), rules.json:101, 2 times." {
			t.Errorf("%q", lines)
		}
	})
}

func TestExecGateWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := asking(t, settings.ModeAcceptEdits)
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan bool, 3)
		go func() { results <- g.Judge(ctx, attempt(1, "git push a")).Allow }()
		synctest.Wait()
		cancel()
		if <-results {
			t.Error("allowed without an answer")
		}
		synctest.Wait()
		if p.open != 0 || len(g.questions) != 0 || len(g.lines()) != 0 {
			t.Errorf("%d questions are open, lines %q", p.open, g.lines())
		}
		go func() { results <- g.Judge(t.Context(), attempt(2, "git push a")).Allow }()
		synctest.Wait()
		p.answers <- ExecAnswer{Allowed: true}
		if !<-results {
			t.Error("the answer of a question after one that was withdrawn does not count")
		}
	})
}

func TestExecGateIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := asking(t, settings.ModeAcceptEdits)
		results := make(chan bool, 3)
		judge := func(line string) { results <- g.Judge(t.Context(), attempt(1, line)).Allow }
		go judge("git push a")
		time.Sleep(execWait - time.Minute)
		p.answers <- ExecAnswer{Allowed: true}
		<-results
		time.Sleep(time.Hour) // which does not count
		go judge("git push b")
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		select {
		case <-g.Spent():
			t.Error("the time is over too early")
		default:
		}
		time.Sleep(time.Second)
		if <-results {
			t.Error("allowed without an answer")
		}
		<-g.Spent()
		go judge("git push c")
		if <-results {
			t.Error("allowed when the time was over")
		}
		if held := g.Held(); held != execWait {
			t.Errorf("held for %s", held)
		}
	})
}

func TestExecGateWithoutAnybody(t *testing.T) {
	g, _ := asking(t, settings.ModeDontAsk)
	if g.Judge(t.Context(), attempt(1, "git push a")).Allow || len(g.questions) != 0 {
		t.Error("somebody is asked in the mode dontAsk")
	}
	g, _ = asking(t, settings.ModeAcceptEdits)
	g.Ask = nil
	if g.Judge(t.Context(), attempt(1, "git push a")).Allow {
		t.Error("allowed though this client cannot ask one")
	}
	if lines := g.lines(); len(lines) != 1 || !strings.Contains(lines[0], "this client cannot ask one") {
		t.Errorf("%q", lines)
	}
}
