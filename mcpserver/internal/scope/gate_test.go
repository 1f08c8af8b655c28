package scope

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call of the script: r runs concurrently with others, w alone; each takes ten milliseconds.
func play(t *testing.T, o GateOptions, script string) []string {
	t.Helper()
	started := make([]string, len(strings.Fields(script)))
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(o)
		var wg sync.WaitGroup
		began := time.Now()
		for i, kind := range strings.Fields(script) {
			ticket := g.Admit()
			wg.Go(func() {
				if err := ticket.Acquire(t.Context(), kind == "r"); err != nil {
					t.Error(err)
				}
				started[i] = fmt.Sprintf("%s%d@%d", kind, i, time.Since(began).Milliseconds())
				time.Sleep(10 * time.Millisecond)
				ticket.Release()
			})
			synctest.Wait()
		}
		wg.Wait()
		if !g.Idle() {
			t.Error("the gate is not idle after every call has left")
		}
	})
	return started
}

func TestOrder(t *testing.T) {
	tests := []struct {
		name   string
		opts   GateOptions
		script string
		want   string
	}{
		{"readers run together", GateOptions{}, "r r r", "r0@0 r1@0 r2@0"},
		{"writers run alone, in order", GateOptions{}, "w w w", "w0@0 w1@10 w2@20"},
		{"a waiting writer is a barrier", GateOptions{}, "r w r r", "r0@0 w1@10 r2@20 r3@20"},
		{"no more than the width at once", GateOptions{Parallel: 2}, "r r r r", "r0@0 r1@0 r2@10 r3@10"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(play(t, test.opts, test.script), " "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestUnboundTicketHoldsThoseBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(GateOptions{})
		first, second := g.Admit(), g.Admit()
		entered := false
		go func() {
			_ = second.Acquire(t.Context(), true)
			entered = true
		}()
		synctest.Wait()
		if entered {
			t.Fatal("a call started before the call that had arrived earlier was bound")
		}
		first.Release()
		synctest.Wait()
		if !entered {
			t.Fatal("a ticket that was given up still holds those behind it")
		}
		second.Release()
	})
}

func TestCancelLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(GateOptions{})
		running, waiting, behind := g.Admit(), g.Admit(), g.Admit()
		if err := running.Acquire(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		go func() { err = waiting.Acquire(ctx, false) }()
		entered := false
		go func() { entered = behind.Acquire(t.Context(), true) == nil }()
		synctest.Wait()
		if entered {
			t.Fatal("a reader passed a waiting writer")
		}
		cancel()
		synctest.Wait()
		if !errors.Is(err, context.Canceled) || !entered {
			t.Errorf("cancelled call: %v; the one behind it entered: %v", err, entered)
		}
		running.Release()
		behind.Release()
		if !g.Idle() {
			t.Error("the gate is not idle")
		}
	})
}

func TestFailRefusesSiblings(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(GateOptions{KeepSiblings: keep})
			failing, sibling := g.Admit(), g.Admit()
			time.Sleep(SiblingWindow + time.Millisecond)
			later := g.Admit()
			results := make([]error, 2)
			var wg sync.WaitGroup
			for i, ticket := range []*Ticket{sibling, later} {
				wg.Go(func() {
					results[i] = ticket.Acquire(t.Context(), false)
					ticket.Release()
				})
			}
			if err := failing.Acquire(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			failing.Fail("Bash(make)")
			wg.Wait()
			var refused *RefusedError
			if got := errors.As(results[0], &refused); got == keep {
				t.Errorf("KeepSiblings %v: the sibling got %v", keep, results[0])
			}
			if results[1] != nil {
				t.Errorf("a call of a later message got %v", results[1])
			}
			if !g.Idle() {
				t.Error("the gate is not idle")
			}
		})
	}
}

func BenchmarkGate(b *testing.B) {
	g := NewGate(GateOptions{})
	ctx := context.Background()
	for b.Loop() {
		t := g.Admit()
		if err := t.Acquire(ctx, true); err != nil {
			b.Fatal(err)
		}
		t.Release()
	}
}

// TestYield: a call that takes long delays later ones no longer than its limit, nor do several such calls together.
func TestYield(t *testing.T) {
	const limit = 2 * time.Second
	for _, tt := range []struct {
		script string // s: a slow call of an hour that yields, q: a quick one that would, w and r: others, p: one that is postponed
		want   string // when each started, in seconds
	}{
		{"s w", "0 2"},
		{"s r", "0 2"},
		{"s s s w", "0 2 2 2"},
		{"s q w", "0 2 2"},
		{"q q w", "0 1 2"},
		{"s w s w", "0 2 3 3"},
		{"p w", "3 2"},
		{"p p s w", "5 6 2 4"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, began := NewGate(GateOptions{}), time.Now()
				calls := strings.Fields(tt.script)
				started := make([]string, len(calls))
				var all sync.WaitGroup
				for i, kind := range calls {
					ticket := g.Admit()
					time.Sleep(time.Nanosecond)
					all.Go(func() {
						if kind == "p" {
							time.AfterFunc(limit, ticket.Postpone)
							time.Sleep(limit + time.Second/2)
						}
						if err := ticket.Acquire(t.Context(), kind == "r"); err != nil {
							t.Error(err)
						}
						started[i] = fmt.Sprint(int(time.Since(began).Round(time.Second).Seconds()))
						switch kind {
						case "s":
							ticket.YieldAfter(limit)
							time.Sleep(time.Hour)
						case "q":
							ticket.YieldAfter(limit)
							time.Sleep(time.Second)
						default:
							time.Sleep(time.Second)
						}
						ticket.Release()
					})
					synctest.Wait()
				}
				if n := g.Len(); n != len(calls) {
					t.Errorf("%d calls, want %d", n, len(calls))
				}
				all.Wait()
				if got := strings.Join(started, " "); got != tt.want || !g.Idle() {
					t.Errorf("started at %s, want %s; idle %v", got, tt.want, g.Idle())
				}
			})
		})
	}
}

// TestPostponedLeaves: a postponed call that gives up leaves nothing in the gate.
func TestPostponedLeaves(t *testing.T) {
	g := NewGate(GateOptions{})
	first := g.Admit()
	first.Postpone()
	first.Postpone()
	if g.Len() != 1 || g.Idle() {
		t.Errorf("%d calls, want 1", g.Len())
	}
	first.Release()
	first.Postpone()
	if !g.Idle() {
		t.Error("the gate is not idle")
	}
}
