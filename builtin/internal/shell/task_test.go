//go:build unix

package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	me    = "principal-a"
	other = "principal-b"
)

// fifo returns the path of a pipe that the command makes and waits on, and how to
// let it go on.
func fifo(t *testing.T) (path string, release func(line string)) {
	path = filepath.Join(t.TempDir(), "fifo")
	return path, func(line string) {
		t.Helper()
		for {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if errors.Is(err, os.ErrNotExist) {
				time.Sleep(time.Millisecond) // not made yet
				continue
			}
			if err == nil {
				_, err = f.WriteString(line + "\n")
				f.Close()
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// runnerTasks are tasks that run on one runner.
type runnerTasks struct {
	*Tasks
	runner *Runner
}

func (s *runnerTasks) place(principal string) Host {
	return Host{Runner: s.runner, Principal: principal}
}

func newTasks(t *testing.T, limits TaskLimits) *runnerTasks {
	return &runnerTasks{NewTasks(limits), newRunner(t, Config{InheritPath: true, Grace: 100 * time.Millisecond})}
}

// readTo reads a task's output until it has more than n bytes or the task is done.
func readTo(t *testing.T, s *runnerTasks, id string, offset int64, want string) Chunk {
	t.Helper()
	var text strings.Builder
	for {
		c, err := s.Output(t.Context(), me, id, offset, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(c.Text)
		offset = c.Next
		if c.Done || text.String() == want || len(text.String()) > len(want) {
			c.Text = text.String()
			return c
		}
	}
}

func TestTaskOutput(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	path, release := fifo(t)
	task, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: "mkfifo " + path + "; exec 3<>" + path +
		"; echo one; printf 'two'; read x <&3; echo $x; read x <&3; echo $x; cd /usr; exit 4"})
	if err != nil {
		t.Fatal(err)
	}
	c := readTo(t, s, task.ID, 0, "one\n")
	if c.Text != "one\n" || c.Done || c.Next != 4 {
		t.Errorf("first: %+v", c)
	}
	release("more")
	c = readTo(t, s, task.ID, c.Next, "twomore\n")
	if c.Text != "twomore\n" || c.Next != 12 {
		t.Errorf("second: %+v", c)
	}
	// Nothing new and no wait: an answer at once. Reading again gives the same.
	if c, err := s.Output(t.Context(), me, task.ID, 12, 0); err != nil || c.Text != "" || c.Done {
		t.Errorf("nothing new: %+v, %v", c, err)
	}
	if c, err := s.Output(t.Context(), me, task.ID, 2, 0); err != nil || c.Text != "e\ntwomore\n" || c.Offset != 2 {
		t.Errorf("again: %+v, %v", c, err)
	}
	release("end")
	for c = readTo(t, s, task.ID, 12, "end\n"); !c.Done; {
		c = readTo(t, s, task.ID, 16, "")
	}
	if c.Result == nil || c.Result.ExitCode != 4 || c.Result.Dir != "/usr" || c.Result.Text != "one\ntwomore\nend\n" || c.Cause != "" {
		t.Errorf("at the end: %+v", c.Result)
	}
	// An offset beyond the end and a negative one.
	if c, err := s.Output(t.Context(), me, task.ID, 1000, 0); err != nil || c.Text != "" || c.Next != 16 {
		t.Errorf("beyond: %+v, %v", c, err)
	}
	if _, err := s.Output(t.Context(), me, task.ID, -1, 0); err == nil {
		t.Error("a negative offset gave no error")
	}
}

func TestTaskBelongsToItsPrincipal(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	task, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: "sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{task.ID, "", "task_", task.ID + "A"} {
		if _, err := s.Output(t.Context(), other, id, 0, 0); !errors.Is(err, ErrNoTask) {
			t.Errorf("Output(%q): %v", id, err)
		}
		if _, err := s.Stop(other, "", id); !errors.Is(err, ErrNoTask) {
			t.Errorf("Stop(%q): %v", id, err)
		}
	}
	if l := s.List(other); len(l) != 0 {
		t.Errorf("the other sees %v", l)
	}
	if l := s.List(me); len(l) != 1 || l[0].ID != task.ID || l[0].Done {
		t.Errorf("its own list: %v", l)
	}
}

func TestTaskStop(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	tag := newTag()
	task, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: tree(tag) + "wait"})
	if err != nil {
		t.Fatal(err)
	}
	readTo(t, s, task.ID, 0, "ready\n")
	res, err := s.Stop(me, "", task.ID)
	if err != nil || !res.Cancelled || res.TimedOut {
		t.Errorf("got %+v, %v", res, err)
	}
	checkGone(t, tag)
	if again, err := s.Stop(me, "", task.ID); err != nil || again != res {
		t.Errorf("stopped again: %+v, %v", again, err)
	}
	if c, err := s.Output(t.Context(), me, task.ID, 0, time.Minute); err != nil || !c.Done || c.Cause != errStopped.Error() || c.Text != "ready\n" {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}

// TestTaskAdopted: a command that outlives the window goes on as a task.
func TestTaskAdopted(t *testing.T) {
	s := newTasks(t, TaskLimits{Running: 1})
	path, release := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	text := "mkfifo " + path + "; exec 3<>" + path + "; echo one; printf 'par'; read x <&3; echo tial; echo two"
	// The window ends when the command waits: 100 ms are nothing it depends on,
	// since what was not in time for the Started comes by offset.
	res, task, err := s.Run(ctx, s.place(me), Command{Dir: "/", Text: text, Output: func(string) {}}, 100*time.Millisecond)
	if err != nil || res != nil || task == nil {
		t.Fatalf("got %+v, %+v, %v", res, task, err)
	}
	cancel() // the call is over; the task is not
	if all := "one\npar"; !strings.HasPrefix(all, task.Text) {
		t.Errorf("so far: %q", task.Text)
	}
	// No room for a second one: it stays in the foreground.
	res, second, err := s.Run(t.Context(), s.place(me), Command{Dir: "/", Text: "sleep 0.05; echo done"}, time.Millisecond)
	if err != nil || second != nil || res == nil || res.Text != "done\n" {
		t.Errorf("without room: %+v, %+v, %v", res, second, err)
	}
	if _, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: "true"}); !errors.Is(err, ErrTooManyTasks) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := s.Start(t.Context(), s.place(other), Command{Dir: "/", Text: "true"}); err != nil {
		t.Errorf("another principal: %v", err)
	}
	release("go")
	rest := "one\npartial\ntwo\n"[task.Offset:]
	c := readTo(t, s, task.ID, task.Offset, rest)
	if c.Text != rest {
		t.Errorf("the rest: %+v, want %q", c, rest)
	}
	for !c.Done {
		c = readTo(t, s, task.ID, c.Next, "")
	}
	if c.Result.Text != "one\npartial\ntwo\n" || c.Result.Cancelled {
		t.Errorf("the whole: %+v", c.Result)
	}
}

// TestTaskTellsSoFar: what a command has written by the time it becomes a task is told at once.
func TestTaskTellsSoFar(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	told := ""
	for window := 50 * time.Millisecond; told == "" && window < time.Minute; window *= 2 { // a machine under load takes longer to write it
		_, task, err := s.Run(t.Context(), s.place(me), Command{Dir: "/", Text: "printf 'one\\nt'; sleep 1000"}, window)
		if err != nil || task == nil {
			t.Fatalf("got %+v, %v", task, err)
		}
		if told = task.Text; told != "" && task.Offset != 4 {
			t.Errorf("to be read on from %d", task.Offset)
		}
		if _, err := s.Stop(me, "", task.ID); err != nil {
			t.Error(err)
		}
	}
	if told != "one\nt" {
		t.Errorf("told %q", told)
	}
}

func TestTaskWithinWindow(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	res, task, err := s.Run(t.Context(), s.place(me), Command{Dir: "/", Text: "echo hi; exit 2"}, time.Minute)
	if err != nil || task != nil || res.Text != "hi\n" || res.ExitCode != 2 {
		t.Errorf("got %+v, %+v, %v", res, task, err)
	}
	if _, _, err := s.Run(t.Context(), s.place(me), Command{Dir: "/none", Text: "true"}, time.Minute); err == nil {
		t.Error("a missing directory gave no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	res, task, err = s.Run(ctx, s.place(me), Command{Dir: "/", Text: "echo hi; sleep 1000", Output: func(string) { cancel() }}, time.Minute)
	if err != nil || task != nil || !res.Cancelled {
		t.Errorf("cancelled: %+v, %+v, %v", res, task, err)
	}
	if l := s.List(me); len(l) != 0 {
		t.Errorf("commands that never became tasks are listed: %v", l)
	}
}

func TestTaskFlood(t *testing.T) {
	s := newTasks(t, TaskLimits{Output: 1 << 20, Log: 1000})
	task, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: "yes"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Output(t.Context(), me, task.ID, 0, time.Minute)
	for err == nil && !c.Done {
		c, err = s.Output(t.Context(), me, task.ID, c.Next, time.Minute)
	}
	if err != nil || c.Cause != errFlooded.Error() || !c.Result.Cancelled || !c.Result.Cut {
		t.Errorf("got %+v, %v", c, err)
	}
	// Reading from the start gives the kept end, from a whole line on.
	c, err = s.Output(t.Context(), me, task.ID, 0, 0)
	if err != nil || c.Offset <= 1<<20-1000 || len(c.Text) > 1000 || !strings.HasPrefix(c.Text, "y\n") || c.Next != c.Offset+int64(len(c.Text)) {
		t.Errorf("the kept end: offset %d, %d bytes, next %d, %v", c.Offset, len(c.Text), c.Next, err)
	}
}

func TestTaskForgotten(t *testing.T) {
	s := newTasks(t, TaskLimits{Kept: 2})
	var ids []string
	for range 4 {
		task, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: "true"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.ID)
		if _, err := s.Stop(me, "", task.ID); err != nil {
			t.Fatal(err)
		}
	}
	if l := s.List(me); len(l) != 2 || l[0].ID != ids[2] || l[1].ID != ids[3] {
		t.Errorf("kept: %v", l)
	}
	s.limits.Keep = -1
	if l := s.List(me); len(l) != 0 {
		t.Errorf("kept beyond their time: %v", l)
	}
}

// TestTaskEndsWithRunner: the server's end is the tasks' end.
func TestTaskEndsWithRunner(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	tag := newTag()
	task, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: tree(tag) + "wait"})
	if err != nil {
		t.Fatal(err)
	}
	readTo(t, s, task.ID, 0, "ready\n")
	s.runner.Close()
	checkGone(t, tag)
	if c, err := s.Output(t.Context(), me, task.ID, 0, 0); err != nil || !c.Done || c.Cause != ErrClosed.Error() {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := s.Start(t.Context(), s.place(me), Command{Dir: "/", Text: "true"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Start after the end: %v", err)
	}
}

// What there is to tell of a task that runs is told once, and only to its owner.
func TestTaskNews(t *testing.T) {
	s := newTasks(t, TaskLimits{})
	var news []string
	place := s.place(me)
	place.Notices = func() []string { return slices.Clone(news) }
	started, err := s.Start(t.Context(), place, Command{Text: "sleep 300", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Notices(other, started.ID); got != nil {
		t.Errorf("to another: %q", got)
	}
	for _, step := range []struct{ all, want []string }{
		{[]string{"a"}, []string{"a"}},
		{[]string{"a"}, nil},
		{[]string{"a", "b"}, []string{"b"}},
		{[]string{"b"}, nil}, // the first is no longer kept
	} {
		news = step.all
		if got := s.Notices(me, started.ID); !slices.Equal(got, step.want) {
			t.Errorf("of %q: %q, want %q", step.all, got, step.want)
		}
	}
	if _, err := s.Stop(me, "", started.ID); err != nil {
		t.Fatal(err)
	}
	news = append(news, "c")
	if got := s.Notices(me, started.ID); got != nil {
		t.Errorf("of one that has ended: %q", got)
	}
}
