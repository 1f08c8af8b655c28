package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	me    = "principal-a"
	other = "principal-b"
)

var commands = &Kind{Name: "command", NewID: NewID, Kept: 16}

// agents returns a kind whose ids are the numbers from 1 on.
func agents() *Kind {
	n := 0
	return &Kind{Name: "agent", OfCaller: 2, OfHost: 3, Kept: 3, Resumable: true, NewID: func() string {
		n++
		return strconv.Itoa(n)
	}}
}

// start begins a command of the scope s. It ends when it is told to.
func start(t *testing.T, s *Table) *Task {
	t.Helper()
	one, err := s.Reserve(Spec{Kind: commands, Principal: me, Scope: "s"})
	if err != nil {
		t.Fatal(err)
	}
	begin(one)
	go func() {
		<-one.Context().Done()
		if !one.Over() {
			one.End(&shell.Result{Cancelled: true}, nil)
		}
	}()
	return one
}

func begin(t *Task) {
	t.Begin(shell.NewCollector(shell.Limits{Head: 1000, Tail: 1000}), time.Now())
}

func (t *Task) write(text string) { t.out.Write([]byte(text)) }

func TestTaskBelongsToItsPrincipal(t *testing.T) {
	var s Table
	one := start(t, &s)
	for _, of := range []struct{ principal, id string }{{other, one.ID}, {me, ""}, {me, "task_"}, {me, one.ID + "A"}} {
		if _, err := s.Find(of.principal, of.id); !errors.Is(err, ErrNoTask) {
			t.Errorf("Find(%q, %q): %v", of.principal, of.id, err)
		}
	}
	if found, err := s.Find(me, one.ID); found != one || err != nil {
		t.Errorf("Find: %v, %v", found, err)
	}
	if all := s.All(); len(all) != 1 || all[0].ID != one.ID || all[0].Over() || all[0].Principal != me {
		t.Errorf("All: %+v", all)
	}
	if mine, others := s.Running(me), s.Running(other); len(mine) != 1 || mine[0] != one || others != nil {
		t.Errorf("Running: %v, and of another principal %v", mine, others)
	}
	s.Close(commands)
}

func TestTaskStop(t *testing.T) {
	var s Table
	one := start(t, &s)
	r, err := one.Stop("")
	if err != nil || !r.Cancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if again, err := one.Stop(""); err != nil || again != r {
		t.Errorf("stopped again: %+v, %v", again, err)
	}
	if c, err := one.Output(t.Context(), 0, time.Minute); err != nil || !c.Done || c.Cause != errStopped.Error() {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}

// TestTaskFlood: a task that writes without an end is stopped, and its last lines are kept.
func TestTaskFlood(t *testing.T) {
	var s Table
	one := start(t, &s)
	lines := strings.Repeat("y\n", 1<<19)
	for one.Context().Err() == nil {
		one.write(lines)
	}
	<-one.Done()
	c, err := one.Output(t.Context(), 0, 0)
	if err != nil || c.Cause != errFlooded.Error() || !c.Result.Cancelled {
		t.Errorf("got %+v, %v", c, err)
	}
	n := len(c.Text)
	if c.Offset <= maxOutput-logSize || n > logSize || !strings.HasPrefix(c.Text, "y\n") ||
		c.Next != c.Offset+int64(n) {
		t.Errorf("the kept end: offset %d, %d bytes, next %d", c.Offset, n, c.Next)
	}
}

// TestTaskSoFar: what the work has written by the time it becomes a task is reported at once.
func TestTaskSoFar(t *testing.T) {
	var s Table
	one, err := s.Reserve(Spec{Kind: commands, Principal: me})
	if err != nil {
		t.Fatal(err)
	}
	out := shell.NewCollector(shell.Limits{Head: 1000, Tail: 1000})
	out.Write([]byte("one\nt"))
	if got := one.Begin(out, time.Now()); got != "one\nt" {
		t.Errorf("so far: %q", got)
	}
	one.EndCall(true)
	c, err := one.Read(t.Context(), Reading{})
	if err != nil || c.Text != "t" || c.Result.ExitCode != 1 || c.Result.Text != "one\nt" {
		t.Errorf("at the end: %+v, %v", c, err)
	}
}

// TestForgotten: ended tasks are forgotten after a time, except resumable ones, which are no longer listed.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Table
		for _, kind := range []*Kind{commands, agents()} {
			one, err := s.Reserve(Spec{Kind: kind, Principal: me})
			if err != nil {
				t.Fatal(err)
			}
			begin(one)
			one.EndCall(false)
		}
		runs := start(t, &s)
		if all := s.All(); len(all) != 3 {
			t.Errorf("listed: %+v", all)
		}
		time.Sleep(kept + 1)
		if all := s.All(); len(all) != 1 || all[0] != runs {
			t.Errorf("listed after %v: %+v", kept, all)
		}
		if _, err := s.Find(me, "1"); err != nil || len(s.tasks) != 2 {
			t.Errorf("the agent: %v; %d are remembered", err, len(s.tasks))
		}
		s.StopAll(me)
	})
}

// TestClose: the kinds end one after the other, reserved ones too, and nothing begins any more.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Table
		kind := agents()
		one, err := s.Reserve(Spec{Kind: kind, Principal: me})
		if err != nil {
			t.Fatal(err)
		}
		first, stays := start(t, &s), start(t, &s)
		first.Kind = &Kind{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Close(kind, first.Kind)
		}()
		synctest.Wait()
		if err := context.Cause(one.Context()); !errors.Is(err, ErrClosing) {
			t.Errorf("the agent is told %v", err)
		}
		if first.Over() {
			t.Error("a task of the second kind has ended before that of the first")
		}
		begin(one)
		one.EndCall(false)
		<-done
		if !first.Over() || stays.Over() {
			t.Errorf("the second kind has ended: %v; a kind that is not closed has: %v", first.Over(), stays.Over())
		}
		for _, k := range []*Kind{kind, commands} {
			if _, err := s.Reserve(Spec{Kind: k, Principal: me}); !errors.Is(err, ErrClosing) {
				t.Errorf("Reserve of a %s: %v", k.Name, err)
			}
		}
		if _, err := stays.Stop(""); err != nil {
			t.Error(err)
		}
	})
}

// TestResume: an ended task begins again under its id, and remains what it was if it does not.
func TestResume(t *testing.T) {
	var s Table
	spec := Spec{Kind: agents(), Principal: me}
	first, err := s.Reserve(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(me, first.ID); !errors.Is(err, ErrNoTask) {
		t.Errorf("a reserved task was found: %v", err)
	}
	begin(first)
	spec.ID = first.ID
	const runs = "the agent 1 runs already: wait for one with TaskOutput, or end it with TaskStop"
	if _, err := s.Reserve(spec); err == nil || err.Error() != runs {
		t.Errorf("while it runs: %v", err)
	}
	first.EndCall(false)
	for range 2 {
		again, err := s.Reserve(spec)
		if err != nil || again.ID != first.ID {
			t.Fatalf("got %v, %v", again, err)
		}
		if _, err := s.Reserve(spec); err == nil || err.Error() != runs {
			t.Errorf("while it is resumed: %v", err)
		}
		again.Release()
		if found, err := s.Find(me, first.ID); found != first || err != nil {
			t.Errorf("after it did not begin: %v, %v", found, err)
		}
	}
	for _, no := range []Spec{{Principal: other, ID: first.ID}, {Principal: me, ID: "999"}} {
		no.Kind = spec.Kind
		if one, err := s.Reserve(no); !errors.Is(err, ErrNoTask) {
			t.Errorf("the task %s of %s: %v, %v", no.ID, no.Principal, one, err)
		}
	}
}

// A modelled is what the model of [TestLimits] knows of a task.
type modelled struct {
	*Task
	state string // reserved, running or ended
}

// A model does the same as a table.
type model struct {
	table Table
	kinds []*Kind
	all   []*modelled // in the order of their ends, if they have ended
}

func (m *model) count(state string, which func(*modelled) bool) (n int) {
	for _, one := range m.all {
		if (state == "" && one.state != "ended" || one.state == state) && which(one) {
			n++
		}
	}
	return n
}

// pick returns a task in a state. It skips the step if there is none.
func (m *model) pick(t *rapid.T, state string) *modelled {
	some := slices.DeleteFunc(slices.Clone(m.all), func(one *modelled) bool { return one.state != state })
	if len(some) == 0 {
		t.Skip("none is " + state)
	}
	return rapid.SampledFrom(some).Draw(t, "task")
}

const modelLimit = 4

func (m *model) reserve(t *rapid.T) {
	principals := rapid.SampledFrom([]string{me, other, "c"})
	spec := Spec{Kind: rapid.SampledFrom(m.kinds).Draw(t, "kind"), Principal: principals.Draw(t, "principal"),
		Limit: modelLimit}
	mine := func(one *modelled) bool { return one.Principal == spec.Principal }
	kin := func(one *modelled) bool { return one.Kind == spec.Kind }
	ofCaller, ofHost := m.count("", func(one *modelled) bool { return kin(one) && mine(one) }), m.count("", kin)
	k, want := spec.Kind, ""
	switch {
	case k.OfCaller > 0 && ofCaller >= k.OfCaller:
		want = fmt.Sprintf("%d run already: ", ofCaller)
	case k.OfHost > 0 && ofHost >= k.OfHost:
		want = fmt.Sprintf("%d agents run already on this host, %d of them yours", ofHost, ofCaller)
	case m.count("", mine) >= modelLimit:
		want = ErrTooMany.Error()
	}
	one, err := m.table.Reserve(spec)
	if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got %v, want %q", err, want)
	}
	if err == nil {
		m.all = append(m.all, &modelled{one, "reserved"})
	}
}

func (m *model) drop(one *modelled) {
	m.all = slices.DeleteFunc(m.all, func(o *modelled) bool { return o == one })
}

// end ends a task, after which the oldest one of more than the kind keeps is forgotten.
func (m *model) end(t *rapid.T) {
	one := m.pick(t, "running")
	for begun := time.Now(); !time.Now().After(begun); { // no two end at the same time
	}
	one.EndCall(false)
	m.drop(one)
	one.state = "ended"
	m.all = append(m.all, one)
	same := func(o *modelled) bool {
		return o.state == "ended" && o.Kind == one.Kind && o.Principal == one.Principal
	}
	if m.count("ended", same) > one.Kind.Kept {
		m.drop(m.all[slices.IndexFunc(m.all, same)])
	}
}

// check compares the table with the model.
func (m *model) check(t *rapid.T) {
	listed := map[string]bool{}
	for _, info := range m.table.All() {
		listed[info.ID] = info.Over()
	}
	begun := 0
	for _, one := range m.all {
		done, known := listed[one.ID]
		if known != (one.state != "reserved") || done != (one.state == "ended") {
			t.Fatalf("%s is %s, and listed: %v, as done: %v", one.ID, one.state, known, done)
		}
		if known {
			begun++
		}
		found, err := m.table.Find(one.Principal, one.ID)
		if known != (found == one.Task) || known != (err == nil) {
			t.Fatalf("%s is %s: Find: %v", one.ID, one.state, err)
		}
	}
	if begun != len(listed) {
		t.Fatalf("%d tasks are listed, want %d", len(listed), begun)
	}
}

// TestLimits does steps in any order, and compares the table with a model after each.
func TestLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{kinds: []*Kind{agents(), {Name: "command", NewID: NewID, Kept: 2}}}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": m.reserve,
			"begin": func(t *rapid.T) {
				one := m.pick(t, "reserved")
				begin(one.Task)
				one.state = "running"
			},
			"release": func(t *rapid.T) {
				one := m.pick(t, "reserved")
				one.Release()
				m.drop(one)
			},
			"end": m.end,
			"":    m.check,
		})
	})
}
