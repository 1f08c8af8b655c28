package console

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// ask puts a question in the background, and waits until it stands.
func ask(ctx context.Context, c *Console, always ...string) <-chan mcpserver.Answer {
	return askFor(ctx, c, "", always...)
}

// askFor is ask about a call of somebody.
func askFor(ctx context.Context, c *Console, principal string, always ...string) <-chan mcpserver.Answer {
	got := make(chan mcpserver.Answer, 1)
	go func() {
		got <- c.Ask(ctx, mcpserver.OperatorQuestion{Principal: principal, Tool: "Bash",
			Question: &mcpserver.Question{Always: always}})
	}()
	synctest.Wait()
	return got
}

func TestAnswerCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(false)
		first := ask(t.Context(), c, "Bash(make)")
		second := ask(t.Context(), c)
		if waiting := c.next().waiting; waiting != 2 {
			t.Fatalf("%d questions wait, want 2", waiting)
		}
		refused := []struct {
			id       uint64
			decision string
			says     string
		}{
			{1, "", "no decision"},
			{1, "yes", "no decision"},
			{2, mcpserver.AlwaysAllow, "once only"},
			{3, mcpserver.AllowOnce, "no such question"},
		}
		for _, r := range refused {
			if _, err := c.answer(r.id, r.decision, ""); err == nil || !strings.Contains(err.Error(), r.says) {
				t.Errorf("answer(%d, %q): %v, want %q", r.id, r.decision, err, r.says)
			}
		}
		if _, err := c.answer(2, mcpserver.DenyIt, "not now"); err != nil {
			t.Fatal(err)
		}
		if got, want := <-second, (mcpserver.Answer{Decision: mcpserver.DenyIt, Reason: "not now"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, err := c.answer(1, mcpserver.AlwaysAllow, ""); err != nil {
			t.Fatal(err)
		}
		if got := <-first; got.Decision != mcpserver.AlwaysAllow {
			t.Errorf("got %+v", got)
		}
		if _, err := c.answer(2, mcpserver.AllowOnce, ""); err == nil || !strings.Contains(err.Error(), "was denied") {
			t.Errorf("a second answer: %v", err)
		}
	})
}

func TestQuestionsEnd(t *testing.T) {
	tests := []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		says string
	}{
		{"in time", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		}, "no one answered in time"},
		{"with their call", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		}, "was cancelled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(false)
				ctx, cancel := tt.ctx(t.Context())
				defer cancel()
				if got := <-ask(ctx, c); got != (mcpserver.Answer{}) {
					t.Errorf("got %+v, want a refusal", got)
				}
				if _, err := c.answer(1, mcpserver.AllowOnce, ""); err == nil ||
					!strings.Contains(err.Error(), tt.says) {
					t.Errorf("a late answer: %v, want %q", err, tt.says)
				}
				if waiting, settled := c.questions(""); len(waiting) != 0 || len(settled) != 1 {
					t.Errorf("%d wait and %d are settled", len(waiting), len(settled))
				}
				time.Sleep(showResolvedFor)
				if _, settled := c.questions(""); len(settled) != 0 {
					t.Error("what was settled is still shown")
				}
			})
		})
	}
}

// TestAnswerAndEnd lets answers race with the ends of their calls: whatever wins, both sides agree.
func TestAnswerAndEnd(t *testing.T) {
	c := New(true)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan mcpserver.Answer, 1)
		go func() { got <- c.Ask(ctx, mcpserver.OperatorQuestion{Question: &mcpserver.Question{}}) }()
		var id uint64
		for id == 0 {
			if waiting, _ := c.questions(""); len(waiting) > 0 {
				id = waiting[0].ID
			}
		}
		go cancel()
		_, err := c.answer(id, mcpserver.AllowOnce, "")
		if allowed := (<-got).Decision == mcpserver.AllowOnce; allowed != (err == nil) {
			t.Fatalf("the person heard %v, the call was allowed: %v", err, allowed)
		}
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(false)
		ctx, cancel := context.WithCancel(t.Context())
		for range MaxWaiting * 3 / 4 {
			askFor(ctx, c, "greedy")
		}
		if got := <-askFor(ctx, c, "greedy"); got.Decision != "" ||
			!strings.Contains(got.Reason, fmt.Sprint(MaxWaiting*3/4)+" questions of this caller") {
			t.Errorf("one more of who has three quarters: %+v", got)
		}
		for n := range MaxWaiting / 4 {
			select {
			case got := <-askFor(ctx, c, "modest"):
				t.Fatalf("question %d of another: %+v", n+1, got)
			default:
			}
		}
		if got := <-ask(ctx, c); got.Decision != "" || !strings.Contains(got.Reason, fmt.Sprint(MaxWaiting)) {
			t.Errorf("one more: %+v", got)
		}
		cancel()
		synctest.Wait()
		for range maxResolved + 10 {
			ctx, cancel := context.WithCancel(t.Context())
			ask(ctx, c)
			cancel()
			synctest.Wait()
		}
		if len(c.resolved) != maxResolved || len(c.waiting) != 0 {
			t.Errorf("%d are remembered and %d wait", len(c.resolved), len(c.waiting))
		}
	})
}

func TestPresent(t *testing.T) { synctest.Test(t, testPresent) }

func testPresent(t *testing.T) {
	c := New(false)
	if c.Present() {
		t.Error("somebody is there although no page is open")
	}
	var leave []func()
	for range MaxPages {
		l, ok := c.attach()
		if !ok {
			t.Fatal("there is no room")
		}
		leave = append(leave, l)
	}
	if _, ok := c.attach(); ok {
		t.Errorf("more than %d pages are kept up to date", MaxPages)
	}
	if !c.Present() {
		t.Error("nobody is there although pages are open")
	}
	for _, l := range leave {
		l()
	}
	if !c.Present() {
		t.Error("who turns from one page to another is not there")
	}
	time.Sleep(reconnectTime)
	if c.Present() || !New(true).Present() {
		t.Error("whether somebody is there does not follow the pages")
	}
}

// TestQuestionIsPushed measures on the clock of a bubble: calls are told together, a question is told in the moment
// in which it is asked, also right after a call was told.
func TestQuestionIsPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := map[int]time.Time{} // by how many questions wait
		events := 0
		go c.follow(ctx, func() string { return "" }, func(_ string, waiting int) bool {
			if events++; told[waiting].IsZero() {
				told[waiting] = time.Now()
			}
			return true
		})
		synctest.Wait()
		for id := range uint64(100) {
			c.CallBegan(ctx, audit.Call{ID: id})
		}
		ask(ctx, c)
		if late := time.Since(told[1]); told[1].IsZero() || late != 0 {
			t.Errorf("the question was told %v after it was asked (%v)", late, told)
		}
		ask(ctx, c)
		if told[2].IsZero() {
			t.Error("the second question was not told at once")
		}
		if events > 3 {
			t.Errorf("%d events were sent for one change of calls and two questions", events)
		}
	})
}

// TestChangeAtTick tells of a change also when the heartbeat is due at the same time.
func TestChangeAtTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(true)
		ctx, cancel := context.WithCancel(t.Context())
		var changes atomic.Int32
		go c.follow(ctx, func() string { return "" }, func(event string, _ int) bool {
			if event == "change" {
				changes.Add(1)
			}
			time.Sleep(2 * heartbeat) // a slow page: the next tick has come
			return ctx.Err() == nil
		})
		synctest.Wait()
		for id := range uint64(50) {
			before := changes.Load()
			c.CallBegan(ctx, audit.Call{ID: id})
			time.Sleep(10 * heartbeat)
			if changes.Load() == before {
				t.Errorf("change %d was not told", id)
			}
		}
		cancel()
		time.Sleep(3 * heartbeat) // the page is slow to leave too
	})
}
