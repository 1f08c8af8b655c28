package task

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// until is a reading of the scope s that waits for a line.
func until(pattern string) Reading {
	return Reading{Scope: "s", Wait: time.Minute, Until: regexp.MustCompile(pattern)}
}

// from is a reading of the scope s from an offset on.
func from(offset int64) Reading { return Reading{Scope: "s", Offset: &offset} }

// exit ends a task like a command.
func exit(t *Task, code int) { t.End(&shell.Result{Shown: t.out.Result(), ExitCode: code}, nil) }

func TestOutput(t *testing.T) {
	var s Table
	one := start(t, &s)
	output := func(offset int64, want Chunk) {
		t.Helper()
		got, err := one.Output(t.Context(), offset, 0)
		got.Result = nil
		if err != nil || got != want {
			t.Errorf("from %d: %+v, %v, want %+v", offset, got, err, want)
		}
	}
	one.write("one\ntwo")
	output(0, Chunk{Text: "one\n", Next: 4, Line: "two"})
	output(4, Chunk{Offset: 4, Next: 4, Line: "two"})
	one.write("more\n")
	output(2, Chunk{Text: "e\ntwomore\n", Offset: 2, Next: 12})
	go one.write("end\n")
	if c, err := one.Output(t.Context(), 12, time.Minute); err != nil || c.Text != "end\n" || c.Next != 16 {
		t.Errorf("waited: %+v, %v", c, err)
	}
	go exit(one, 4)
	c, err := one.Output(t.Context(), 16, time.Minute)
	if err != nil || !c.Done || c.Result.ExitCode != 4 || c.Cause != "" {
		t.Errorf("waited for the end: %+v, %v", c, err)
	}
	output(1000, Chunk{Offset: 16, Next: 16, Done: true})
	if _, err := one.Output(t.Context(), -1, 0); err == nil {
		t.Error("a negative offset gave no error")
	}
}

// One reading waits for the end of a task, whatever it writes before, and the next one begins where it ended.
func TestReadWaitsForTheEnd(t *testing.T) {
	var s Table
	one := start(t, &s)
	go func() {
		for _, line := range []string{"one\n", "two\n", "three\n"} {
			one.write(line)
		}
		exit(one, 4)
	}()
	for i, r := range []struct {
		scope, want string
		offset      int64
	}{
		{"s", "one\ntwo\nthree\n", -1}, {"s", "", -1}, {"s", "two\nthree\n", 4}, {"s", "", -1},
		{"other", "one\ntwo\nthree\n", -1}, {"other", "", 99},
	} {
		reading := Reading{Scope: r.scope, Wait: time.Minute}
		if r.offset >= 0 {
			reading.Offset = &r.offset
		}
		c, err := one.Read(t.Context(), reading)
		if err != nil || !c.Done || c.Text != r.want || c.Next != 14 || c.Skipped != 0 || c.Result.ExitCode != 4 {
			t.Errorf("%d: %+v, %v", i, c, err)
		}
	}
}

// A reading of a task that runs on ends with its time. A line that is not complete then is returned again.
func TestReadEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Table
		one := start(t, &s)
		one.write("one\ntw")
		for _, wait := range []time.Duration{0, time.Hour} {
			begun, reading := time.Now(), from(0)
			reading.Wait = wait
			c, err := one.Read(t.Context(), reading)
			if err != nil || c.Done || c.Text != "one\n" || c.Next != 4 || c.Line != "tw" {
				t.Errorf("waited %s: %+v, %v", wait, c, err)
			}
			if waited := time.Since(begun); waited != wait {
				t.Errorf("waited %s, want %s", waited, wait)
			}
		}
		const negative = "expected 0 or more, got -1"
		if _, err := one.Read(t.Context(), from(-1)); err == nil || !strings.Contains(err.Error(), negative) {
			t.Errorf("a negative offset: %v", err)
		}
		s.StopAll(me)
	})
}

// A cancelled reading is no answer: the next one begins where the last answer ended.
func TestReadCancelled(t *testing.T) {
	var s Table
	one := start(t, &s)
	one.write("one\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := one.Read(ctx, until("never")); !errors.Is(err, context.Canceled) || c.Text != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := one.Read(t.Context(), Reading{Scope: "s"}); err != nil || c.Text != "one\n" {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
	s.StopAll(me)
}

func TestReadUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no line stays incomplete for long
		var s Table
		one := start(t, &s)
		for i, step := range []struct {
			write         []string
			until, text   string
			matched, done bool
		}{
			{[]string{"one\n", "two\n"}, "^two$", "one\ntwo\n", true, false},
			{[]string{"spl", "it", "\n"}, "^split$", "split\n", true, false},
			{[]string{" 5%\r50%\r100%\n"}, "50%|^100%$", "100%\n", true, false}, // drawn over: its last state counts
			{[]string{"more\n", "end"}, "two|end$", "more\nend", true, true},
			{nil, "end", "", false, true}, // each line once
		} {
			go func() {
				for _, text := range step.write {
					one.write(text)
				}
				if step.done && step.write != nil {
					exit(one, 0)
				}
			}()
			c, err := one.Read(t.Context(), until(step.until))
			if err != nil || c.Text != step.text || c.Done != step.done || c.Matched != step.matched ||
				step.matched && c.More {
				t.Errorf("%d: %+v, %v", i, c, err)
			}
		}
		// In the past, from the beginning: the rest comes next.
		past := until("two")
		past.Offset = new(int64)
		if c, err := one.Read(t.Context(), past); err != nil || c.Text != "one\ntwo\n" || !c.More || !c.Done ||
			c.Next != 8 {
			t.Errorf("in the past: %+v, %v", c, err)
		}
		if c, err := one.Read(t.Context(), Reading{Scope: "s"}); err != nil ||
			c.Text != "split\n100%\nmore\nend" || c.More {
			t.Errorf("the rest: %+v, %v", c, err)
		}
	})
}

// TestReadPrompt waits for an incomplete line that stays, and for none that is drawn over.
func TestReadPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Table
		one := start(t, &s)
		go func() {
			one.write("one\n 5%")
			time.Sleep(lineQuiet / 2)
			one.write("\r50%")
			time.Sleep(lineQuiet / 2)
			one.write("\rContinue? [Y/n] ")
		}()
		c, err := one.Read(t.Context(), until("%$|Y/n"))
		if err != nil || !c.Matched || c.Text != "one\n" || !strings.Contains(c.Line, "Continue?") {
			t.Errorf("%+v, %v", c, err)
		}
		exit(one, 0)
		s.StopAll(me)
	})
}

// Two wait for the same task at once, each for its own line, and a third stops it.
func TestReadTogether(t *testing.T) {
	var s Table
	one := start(t, &s)
	var wg sync.WaitGroup
	for _, want := range []string{"one\n", "one\ntwo\n", ""} {
		wg.Go(func() {
			r := until("never")
			if want != "" {
				lines := strings.Fields(want)
				r = until("^" + lines[len(lines)-1] + "$")
			}
			r.Offset = new(int64)
			c, err := one.Read(t.Context(), r)
			stopped := want == ""
			if err != nil || c.Matched == stopped || !stopped && c.Text != want || stopped &&
				c.Cause != errStopped.Error() {
				t.Errorf("for %q: %+v, %v", want, c, err)
			}
			if want == "one\ntwo\n" {
				if _, err := one.Stop("s"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	one.write("one\ntwo\n")
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
	var s Table
	one := start(t, &s)
	one.write(strings.Repeat("line\n", logSize) + "last\n")
	exit(one, 0)
	c, err := one.Read(t.Context(), Reading{Scope: "s"})
	if err != nil || !c.Done || c.Skipped == 0 || c.Skipped != c.Offset || !strings.HasSuffix(c.Text, "\nlast\n") {
		t.Errorf("got offset %d, %d skipped, %d bytes, %v", c.Offset, c.Skipped, len(c.Text), err)
	}
}

// A task remembers no more than maxReaders scopes, its own among them.
func TestReadersAreBounded(t *testing.T) {
	var s Table
	one := start(t, &s)
	one.write("one\n")
	exit(one, 0)
	for i := range 3 * maxReaders {
		scope := "s"
		if i > 0 {
			scope = fmt.Sprint(i)
		}
		if _, err := one.Read(t.Context(), Reading{Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := one.Read(t.Context(), Reading{Scope: "s"}); err != nil || c.Text != "" {
		t.Errorf("its own scope is forgotten: %+v, %v", c, err)
	}
	if n := len(one.read); n > maxReaders {
		t.Errorf("%d scopes are remembered", n)
	}
}

// Notices on a task that runs are reported once.
func TestNewNotices(t *testing.T) {
	var s Table
	one := start(t, &s)
	var all []string
	one.Notices = func() []string { return slices.Clone(all) }
	for _, step := range []struct{ all, want []string }{
		{[]string{"a"}, []string{"a"}},
		{[]string{"a"}, nil},
		{[]string{"a", "b"}, []string{"b"}},
		{[]string{"b"}, nil}, // the first is no longer kept
	} {
		all = step.all
		if got := one.NewNotices(); !slices.Equal(got, step.want) {
			t.Errorf("of %q: %q, want %q", step.all, got, step.want)
		}
	}
	exit(one, 0)
	all = append(all, "c")
	if got := one.NewNotices(); got != nil {
		t.Errorf("of one that has ended: %q", got)
	}
}

// The scope that started a task is told of its end once, in the order of the ends, unless it knows.
func TestEndedIsToldOnce(t *testing.T) {
	var s Table
	told := func(principal, scope string, most int) (ids []string) {
		s.Ended(principal, scope, func(one *Task, c Chunk) bool {
			if len(ids) == most || !c.Done || !one.Over() {
				return false
			}
			ids = append(ids, one.ID)
			return true
		})
		return ids
	}
	runs := start(t, &s)
	ids := make([]string, 5)
	for i := range ids {
		one := start(t, &s)
		exit(one, 3)
		if _, err := one.Read(t.Context(), Reading{Scope: "reader"}); err != nil {
			t.Fatal(err)
		}
		switch ids[i] = one.ID; i {
		case 0:
			_, _ = one.Read(t.Context(), Reading{Scope: "s"})
		case 1:
			_, _ = one.Stop("s")
		}
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
	if _, err := runs.Stop(""); err != nil { // at the console
		t.Fatal(err)
	}
	if got := told(me, "s", 9); !slices.Equal(got, []string{runs.ID}) {
		t.Errorf("of the one that was stopped for it: %v", got)
	}
}
