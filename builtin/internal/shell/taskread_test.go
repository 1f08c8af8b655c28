//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// start starts a task of the scope s.
func (s *runnerTasks) start(t *testing.T, text string) Started {
	t.Helper()
	place := s.place(me)
	place.Scope = "s"
	task, err := s.Start(t.Context(), place, Command{Dir: "/", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// until is a reading of the scope s that waits for a line.
func until(pattern string) Reading {
	return Reading{Scope: "s", Wait: time.Minute, Until: regexp.MustCompile(pattern)}
}

// One reading waits for the end of a task, whatever it writes before, and the next one begins where it ended.
func TestReadWaitsForTheEnd(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	path, release := fifo(t)
	task := s.start(t, "mkfifo "+path+"; exec 3<>"+path+"; for i in 1 2 3; do read x <&3; echo $x; done; exit 4")
	go func() {
		for _, line := range []string{"one", "two", "three"} {
			release(line)
		}
	}()
	for i, r := range []struct {
		scope, want string
		offset      int64
	}{{"s", "one\ntwo\nthree\n", -1}, {"s", "", -1}, {"s", "two\nthree\n", 4}, {"s", "", -1}, {"other", "one\ntwo\nthree\n", -1}, {"other", "", 99}} {
		reading := Reading{Scope: r.scope, Wait: time.Minute}
		if r.offset >= 0 {
			reading.Offset = &r.offset
		}
		c, err := s.Read(t.Context(), me, task.ID, reading)
		if err != nil || !c.Done || c.Text != r.want || c.Next != 14 || c.Skipped != 0 || c.Result.ExitCode != 4 {
			t.Errorf("%d: %+v, %v", i, c, err)
		}
	}
}

// A reading of a task that runs on ends with its time. What is not finished then comes again.
func TestReadEndsWithItsTime(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	task := s.start(t, "echo one; printf tw; sleep 1000")
	if c := readTo(t, s, task.ID, 0, "one\n"); c.Text != "one\n" {
		t.Fatalf("%+v", c)
	}
	for _, wait := range []time.Duration{0, time.Millisecond} {
		from := int64(0)
		c, err := s.Read(t.Context(), me, task.ID, Reading{Scope: "s", Offset: &from, Wait: wait})
		if err != nil || c.Done || c.Text != "one\n" || c.Next != 4 {
			t.Errorf("waited %s: %+v, %v", wait, c, err)
		}
	}
	before := int64(-1)
	if _, err := s.Read(t.Context(), me, task.ID, Reading{Offset: &before}); err == nil || !strings.Contains(err.Error(), "expected 0 or more, got -1") {
		t.Errorf("a negative offset: %v", err)
	}
	if _, err := s.Read(t.Context(), other, task.ID, Reading{}); !errors.Is(err, ErrNoTask) {
		t.Errorf("another principal: %v", err)
	}
}

// A cancelled reading is no answer: the next one begins where the last answer ended.
func TestReadCancelled(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	path, release := fifo(t)
	task := s.start(t, "mkfifo "+path+"; exec 3<>"+path+"; read x <&3; echo one; sleep 1000")
	release("go") // what it writes before it has started is told by that
	readTo(t, s, task.ID, 0, "one\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := s.Read(ctx, me, task.ID, until("never")); !errors.Is(err, context.Canceled) || c.Text != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := s.Read(t.Context(), me, task.ID, Reading{Scope: "s"}); err != nil || c.Text != "one\n" {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}

func TestReadUntil(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	path, release := fifo(t)
	task := s.start(t, "mkfifo "+path+"; exec 3<>"+path+`; read x <&3; echo one; echo two
read x <&3; printf 'spl'; printf 'it'; echo
read x <&3; printf ' 5%%\r50%%\r100%%\n'
read x <&3; echo more; printf 'end'`)
	for i, step := range []struct {
		release, until, text string
		matched, done        bool
	}{
		{"begin", "^two$", "one\ntwo\n", true, false},
		{"go", "^split$", "split\n", true, false},     // written in parts
		{"draw", "50%|^100%$", "100%\n", true, false}, // drawn over: its last state counts
		{"end", "two|end$", "more\nend", true, true},
		{"", "end", "", false, true}, // each line once
	} {
		if step.release != "" {
			release(step.release)
		}
		c, err := s.Read(t.Context(), me, task.ID, until(step.until))
		if err != nil || c.Text != step.text || c.Done != step.done || c.Matched != step.matched || step.matched && c.More {
			t.Errorf("%d: %+v, %v", i, c, err)
		}
	}
	// In the past, from the beginning: the rest comes next.
	zero := int64(0)
	past := until("two")
	past.Offset = &zero
	if c, err := s.Read(t.Context(), me, task.ID, past); err != nil || c.Text != "one\ntwo\n" || !c.More || !c.Done || c.Next != 8 {
		t.Errorf("in the past: %+v, %v", c, err)
	}
	if c, err := s.Read(t.Context(), me, task.ID, Reading{Scope: "s"}); err != nil || c.Text != "split\n100%\nmore\nend" || c.More {
		t.Errorf("the rest: %+v, %v", c, err)
	}
}

// Two wait for the same task at once, each for its own line, and a third stops it.
func TestReadTogether(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	path, release := fifo(t)
	task := s.start(t, "mkfifo "+path+"; exec 3<>"+path+"; read x <&3; echo one; echo two; sleep 1000")
	var wg sync.WaitGroup
	for _, want := range []string{"one\n", "one\ntwo\n", ""} {
		wg.Go(func() {
			r := until("never")
			if want != "" {
				lines := strings.Fields(want)
				r = until("^" + lines[len(lines)-1] + "$")
			}
			zero := int64(0)
			r.Offset = &zero
			c, err := s.Read(t.Context(), me, task.ID, r)
			if err != nil || c.Matched != (want != "") || want != "" && c.Text != want || want == "" && c.Cause != errStopped.Error() {
				t.Errorf("for %q: %+v, %v", want, c, err)
			}
			if want == "one\ntwo\n" {
				if _, err := s.Stop(me, "s", task.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	release("go")
	wg.Wait()
}

// A line that a flood has pushed out since it matched is in the answer all the same.
func TestEndWithALineThatIsGone(t *testing.T) {
	c := Chunk{Text: "y\ny\n", Offset: 100, Next: 104, Line: "y"}
	c.endWith(match{"ready\n", 40})
	if c.Text != "ready\n" || c.Offset != 40 || c.Next != 46 || !c.More || !c.Matched || c.Line != "" {
		t.Errorf("got %+v", c)
	}
}

// What is no longer kept is counted.
func TestReadSkips(t *testing.T) {
	s := newTasks(t, TaskLimits{Log: 100})
	task := s.start(t, "seq 1000")
	c, err := s.Read(t.Context(), me, task.ID, Reading{Scope: "s", Wait: time.Minute})
	if err != nil || !c.Done || c.Skipped == 0 || c.Skipped != c.Offset || !strings.HasSuffix(c.Text, "\n1000\n") {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A task remembers no more than maxReaders scopes, its own among them.
func TestReadersAreBounded(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	task := s.start(t, "echo one")
	for i := range 3 * maxReaders {
		scope := "s"
		if i > 0 {
			scope = fmt.Sprint(i)
		}
		if _, err := s.Read(t.Context(), me, task.ID, Reading{Scope: scope, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.Read(t.Context(), me, task.ID, Reading{Scope: "s"}); err != nil || c.Text != "" {
		t.Errorf("its own scope is forgotten: %+v, %v", c, err)
	}
	if n := len(s.tasks[task.ID].read); n > maxReaders {
		t.Errorf("%d scopes are remembered", n)
	}
}

// The scope that started a task is told of its end once, in the order of the ends, unless it knows.
func TestEndedIsToldOnce(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	told := func(principal, scope string, most int) (ids []string) {
		s.Ended(principal, scope, func(info TaskInfo, c Chunk) bool {
			if len(ids) == most || !c.Done || !info.Done {
				return false
			}
			ids = append(ids, info.ID)
			return true
		})
		return ids
	}
	runs := s.start(t, "sleep 1000")
	ids := make([]string, 5)
	for i := range ids { // each ends before the next one starts, read by another scope
		ids[i] = s.start(t, "exit 3").ID
		if _, err := s.Read(t.Context(), me, ids[i], Reading{Scope: "reader", Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Read(t.Context(), me, ids[0], Reading{Scope: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stop(me, "s", ids[1]); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		principal, scope string
		most             int
		want             []string
	}{
		{other, "s", 9, nil}, {me, "reader", 9, nil}, {me, "", 9, nil},
		{me, "s", 0, nil}, {me, "s", 2, ids[2:4]}, {me, "s", 2, ids[4:]}, {me, "s", 2, nil},
	} {
		if got := told(step.principal, step.scope, step.most); !slices.Equal(got, step.want) {
			t.Errorf("%+v: told %v", step, got)
		}
	}
	if _, err := s.Stop(me, "", runs.ID); err != nil { // at the console
		t.Fatal(err)
	}
	if got := told(me, "s", 9); !slices.Equal(got, []string{runs.ID}) {
		t.Errorf("of the one that was stopped for it: %v", got)
	}
	// One that could not run has ended too.
	place := s.place(me)
	place.Scope = "s"
	if _, err := s.Start(t.Context(), place, Command{Dir: filepath.Join(t.TempDir(), "none"), Text: "true"}); err == nil {
		t.Error("a directory that is not there gave no error")
	}
}
