package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The files that are worked on: so many, of so many lines.
const (
	workFiles = 16
	workLines = 200
)

// fileText is a file of 200 lines and about 10 kB that tells which it is and how often it was edited.
func fileText(file, version int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "this is file %02d in version %d\n", file, version)
	for n := 2; n <= workLines; n++ {
		fmt.Fprintf(&b, "line %03d of file %02d is neither long nor short, as code is\n", n, file)
	}
	return b.String()
}

// A stage is a rival at work on a tree of its own.
type stage struct {
	*rival
	*server
	tree     string
	versions [workFiles]int       // of the files
	written  [workFiles]time.Time // when each was, to the millisecond
}

// newStage makes a tree and starts a rival on it.
func newStage(r *rival, dir string) (*stage, time.Duration, error) {
	st := &stage{rival: r, tree: filepath.Join(dir, "tree")}
	home := filepath.Join(dir, "home")
	for _, d := range []string{st.tree, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, 0, err
		}
	}
	for i := range workFiles {
		if err := os.WriteFile(st.path(i), []byte(fileText(i, 0)), 0o644); err != nil {
			return nil, 0, err
		}
	}
	s, took, err := start(r.command(st.tree, home))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", r.name, err)
	}
	st.server = s
	return st, took, nil
}

// renew changes a file: one rival answers to an unchanged one that it is unchanged. It goes by the time in
// milliseconds.
func (st *stage) renew(file int) error {
	st.versions[file]++
	path := st.path(file)
	if err := os.WriteFile(path, []byte(fileText(file, st.versions[file])), 0o644); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	at := info.ModTime().Truncate(time.Millisecond)
	if !at.After(st.written[file]) {
		at = st.written[file].Add(time.Millisecond)
		err = os.Chtimes(path, at, at)
	}
	st.written[file] = at
	return err
}

func (st *stage) path(file int) string {
	return filepath.Join(st.tree, fmt.Sprintf("file-%02d.txt", file))
}

// A job is a kind of work: it makes the call number i of a round and, when all are answered, checks what became of it.
type job struct {
	name string
	able func(r *rival) bool
	// ready, if set, prepares a file before the clock starts.
	ready func(st *stage, i int) error
	call  func(st *stage, round, i int) call
	check func(st *stage, round, i int, a answer) error
}

var errNotLanded = errors.New("it was answered, and is not on the disk")

// jobs are the work on files and commands.
func jobs() []job {
	return []job{
		{
			name: "Read 200 lines", able: func(r *rival) bool { return r.read != nil },
			ready: (*stage).renew,
			call:  func(st *stage, _, i int) call { return st.read(st.path(i)) },
			check: func(st *stage, _, i int, a answer) error {
				first, last := fmt.Sprintf("this is file %02d in version %d", i,
					st.versions[i]), fmt.Sprintf("line %03d of file %02d", workLines, i)
				if !bytes.Contains(a.line, []byte(first)) || !bytes.Contains(a.line, []byte(last)) {
					return fmt.Errorf("the first or the last line is missing: %.200s", a.line)
				}
				return nil
			},
		},
		{
			name: "Edit", able: func(r *rival) bool { return r.edit != nil },
			call: func(st *stage, _, i int) call {
				return st.edit(st.path(i), fmt.Sprintf("in version %d\n", st.versions[i]),
					fmt.Sprintf("in version %d\n", st.versions[i]+1))
			},
			check: func(st *stage, _, i int, _ answer) error {
				st.versions[i]++
				return holds(st.path(i), fileText(i, st.versions[i]))
			},
		},
		{
			name: "Write 200 lines", able: func(r *rival) bool { return r.write != nil },
			call: func(st *stage, round, i int) call { return st.write(st.path(i)+".new", fileText(i, round)) },
			check: func(st *stage, round, i int, _ answer) error {
				return errors.Join(holds(st.path(i)+".new", fileText(i, round)), os.Remove(st.path(i)+".new"))
			},
		},
		{
			name: bashRow, able: func(r *rival) bool { return r.bash != nil },
			call: func(st *stage, _, _ int) call { return st.bash("true") },
		},
	}
}

func holds(path, want string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("%s: %w", filepath.Base(path), errNotLanded)
	}
	return err
}

// round does a job with so many calls at once, and checks each.
func (st *stage) round(j job, round, inFlight int) (time.Duration, error) {
	calls := make([]call, inFlight)
	for i := range calls {
		if j.ready != nil {
			if err := j.ready(st, i); err != nil {
				return 0, err
			}
		}
		calls[i] = j.call(st, round, i)
	}
	answers, took, err := st.batch(calls...)
	if err != nil {
		return 0, err
	}
	for i, a := range answers {
		if _, err := a.decode(); err != nil {
			return 0, fmt.Errorf("%s %d: %w", j.name, i, err)
		}
		if st.name == floorName || j.check == nil {
			continue // the floor does nothing
		}
		if err := j.check(st, round, i, a); err != nil {
			return 0, fmt.Errorf("%s %d: %w", j.name, i, err)
		}
	}
	return took, nil
}

// An effort bounds how much is measured.
type effort struct {
	rounds, least int           // how many rounds at most, and how many at least even if the time is over
	budget        time.Duration // for one row of the table
}

// warmups is how many rounds come before those that count.
const warmups = 3

// interleave measures a job on all stages by turns, and adds a row to the report. What a rival cannot do is left out;
// a rival that fails is left out and said, but for the host, whose failure is an error.
func interleave(rep *report, e effort, name string, stages []*stage, do func(st *stage, round int) (time.Duration,
	error)) error {
	row := rep.row(name, "ms")
	failed := map[*stage]bool{}
	begun := time.Now()
	for round := range e.rounds + warmups {
		if round >= e.least+warmups && time.Since(begun) > e.budget {
			break
		}
		for i := range stages {
			st := stages[(i+round)%len(stages)]
			if failed[st] {
				continue
			}
			took, err := do(st, round)
			if err != nil && st.name == ours {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err != nil {
				failed[st] = true
				row.drop(st.name)
				rep.note("%s failed at %s: %v", st.name, name, err)
			} else if round >= warmups {
				row.add(st.name, milliseconds(took))
			}
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// able are the stages whose rival can do a job.
func able(stages []*stage, j job) []*stage {
	var all []*stage
	for _, st := range stages {
		if j.able(st.rival) {
			all = append(all, st)
		}
	}
	return all
}

// measureJobs does every job with 1 and with 16 calls at once.
func measureJobs(rep *report, e effort, stages []*stage) error {
	for _, j := range jobs() {
		for _, inFlight := range []int{1, workFiles} {
			name := j.name
			if inFlight > 1 {
				name += fmt.Sprintf(" ×%d", inFlight)
			}
			err := interleave(rep, e, name, able(stages, j), func(st *stage, round int) (time.Duration, error) {
				return st.round(j, round, inFlight)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// prime reads every file once: an Edit needs that.
func prime(stages []*stage) error {
	for _, st := range stages {
		for i := range workFiles {
			if _, _, err := st.call(st.read(st.path(i))); err != nil {
				return fmt.Errorf("%s: %w", st.name, err)
			}
		}
	}
	return nil
}

// The rows of memory.
const (
	memoryStart = "memory after start"
	memoryMain  = "memory after start, main process alone"
	memoryWork  = "memory after the work"
)

// measureStarts starts every rival by turns, each in a new tree, and measures until the handshake is answered, and
// then, when it has come to rest, its memory.
func measureStarts(rep *report, e effort, rivals []*rival, dir string) error {
	starts, whole, alone := rep.row("start to initialize", "ms"), rep.row(memoryStart, "MB"), rep.row(memoryMain, "MB")
	for round := range e.least + 1 {
		for i := range rivals {
			r := rivals[(i+round)%len(rivals)]
			st, took, err := newStage(r, filepath.Join(dir, fmt.Sprintf("start-%d-%d", round, i)))
			if err != nil {
				return err
			}
			pid := st.cmd.Process.Pid
			settle(pid)
			if round > 0 { // the first brings the program into the page cache
				starts.add(r.name, milliseconds(took))
				whole.add(r.name, megabytes(memory(pid)))
				alone.add(r.name, megabytes(resident(pid)))
			}
			if err := st.stop(); err != nil {
				rep.note("%v", err)
			}
		}
	}
	return nil
}

func megabytes(bytes float64) float64 { return bytes / (1 << 20) }

// measureWork starts every rival, lets them do every job, and measures the memory that they then have.
func measureWork(rep *report, e effort, rivals []*rival, dir string) error {
	var stages []*stage
	defer func() {
		for _, st := range stages {
			if err := st.stop(); err != nil {
				rep.note("%v", err)
			}
		}
	}()
	for i, v := range rivals {
		st, _, err := newStage(v, filepath.Join(dir, fmt.Sprint("stage-", i)))
		if err != nil {
			return err
		}
		stages = append(stages, st)
	}
	if err := prime(stages); err != nil {
		return err
	}
	if err := measureJobs(rep, e, stages); err != nil {
		return err
	}
	after := rep.row(memoryWork, "MB")
	for _, st := range stages {
		settle(st.cmd.Process.Pid)
		after.add(st.name, megabytes(memory(st.cmd.Process.Pid)))
	}
	return nil
}
