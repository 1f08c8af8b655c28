package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The rows of commands that have a goal of their own.
const (
	bashRow     = "Bash true"
	besideRow   = "Bash true beside a process"
	floodRow    = "1 GB of output"
	floodMemory = "1 GB of output, more memory"
	taskMemory  = "a background task of 200, host memory"
	maskRow     = "a denied file that is replaced can be read for"
)

// process is a command in a process of its own, as os/exec starts it.
const process = "bash -c true"

// flood is a command that prints 1 GiB of lines.
const flood = "yes 'a line of ordinary output, about sixty-four bytes in length' | head -c 1073741824"

// manyTasks is how many background tasks are alive while their memory is measured.
const manyTasks = 200

// measureShell measures what the host's commands cost next to a plain process, and what has a goal in itself.
func (r *peersRun) measureShell(rep *report, dir, binary string) error {
	for i, measure := range []func(*report, effort, *stage) error{besideProcess, floods, tasks} {
		st, _, err := newStage(host(ours, binary), filepath.Join(dir, fmt.Sprint("shell-", i)))
		if err != nil {
			return err
		}
		if err := errors.Join(measure(rep, r.servers, st), st.stop()); err != nil {
			return err
		}
	}
	return masks(rep, binary, filepath.Join(dir, "masks"))
}

// besideProcess runs true in the host and in a new process by turns.
func besideProcess(rep *report, e effort, st *stage) error {
	row := rep.row(besideRow, "ms")
	begun := time.Now()
	for round := range e.rounds + warmups {
		if round >= e.least+warmups && time.Since(begun) > e.budget {
			break
		}
		_, took, err := st.call(bash("true"))
		if err != nil {
			return err
		}
		start := time.Now()
		if err := exec.Command("bash", "-c", "true").Run(); err != nil {
			return err
		}
		if alone := time.Since(start); round >= warmups {
			row.add(ours, milliseconds(took))
			row.add(process, milliseconds(alone))
		}
	}
	return nil
}

// floods lets a command print more than anybody can keep.
func floods(rep *report, e effort, st *stage) error {
	times, more := rep.row(floodRow, "ms"), rep.row(floodMemory, "MB")
	pid, begun := st.cmd.Process.Pid, time.Now()
	for round := range e.least + 1 {
		if round > 1 && time.Since(begun) > e.budget {
			break
		}
		settle(pid)
		before := resident(pid)
		// From proc(5): this sets the highest resident memory so far to that of now. Where it is not allowed the row shows
		// too much.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
		r, took, err := st.call(bash(flood))
		if err != nil {
			return err
		}
		if !strings.Contains(r.Text(), "a line of ordinary output") {
			return fmt.Errorf("the output is lost: %.300s", r.Text())
		}
		if round > 0 {
			times.add(ours, milliseconds(took))
			more.add(ours, megabytes(size(pid, "status", "VmHWM:")-before))
		}
	}
	return nil
}

// tasks starts many background tasks and measures what the host needs for each while all are alive.
func tasks(rep *report, _ effort, st *stage) error {
	pid := st.cmd.Process.Pid
	if _, _, err := st.call(bash("true")); err != nil { // the first command starts what all of them need
		return err
	}
	settle(pid)
	before := resident(pid)
	for range manyTasks {
		if _, _, err := st.call(call{"Bash", map[string]any{"command": "sleep 1000", "run_in_background": true}}); err != nil {
			return err
		}
	}
	settle(pid)
	rep.row(taskMemory, "kB").add(ours, (resident(pid)-before)/1024/manyTasks)
	return nil
}

// replaced is how many denied files are replaced while a command looks for them.
const replaced = 20

// looking is a command that tries to read many files, one by one, and tells when each could be read last, in
// microseconds; 0 if it never could. The name of a file is put together, so that only the sandbox can keep the
// command from it.
const looking = `h=hid; n=0
while [ $n -lt %d ]; do
  f=${h}den-$n; last=0; : >at-$n
  until [ -e next-$n ]; do { read -r x <$f && [ "$x" = new ] && last=${EPOCHREALTIME/[.,]/}; } 2>/dev/null; done
  echo "until $last"; n=$((n+1))
done`

// masks measures for how long a command can read a file that a rule denies after somebody has put another in its place.
func masks(rep *report, binary, dir string) error {
	tree, rules := filepath.Join(dir, "tree"), filepath.Join(dir, "rules.json")
	if err := put(rules, `{"permissions":{"deny":["Read(hidden-*)"]}}`); err != nil {
		return err
	}
	for n := range replaced {
		if err := put(hidden(tree, n), "old\n"); err != nil {
			return err
		}
	}
	cmd := host(ours, binary).command(tree, dir)
	cmd.Args = append(cmd.Args, "--settings", rules)
	conn, _, err := start(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = conn.stop() }()
	if _, _, err := conn.call(bash("true")); err != nil {
		rep.note("how long a denied file can be read was not measured: %v", err)
		return nil
	}
	p, err := conn.send("tools/call", bash(fmt.Sprintf(looking, replaced)).params())
	if err != nil {
		return err
	}
	at, err := replace(tree)
	if err != nil {
		return err
	}
	a, err := p.wait()
	if err != nil {
		return err
	}
	r, err := a.decode()
	if err != nil {
		return err
	}
	return windows(rep.row(maskRow, "ms"), at, r.Text())
}

func hidden(tree string, n int) string { return filepath.Join(tree, fmt.Sprintf("hidden-%d", n)) }

// long is how long a command may find a file that was replaced: many times what it is meant to take.
const long = 50 * time.Millisecond

// replace replaces one file after the other, each when the command looks for it, and returns when.
func replace(tree string) ([]time.Time, error) {
	var at []time.Time
	for n := range replaced {
		if err := appears(filepath.Join(tree, fmt.Sprintf("at-%d", n))); err != nil {
			return nil, err
		}
		if err := put(filepath.Join(tree, "new"), "new\n"); err != nil {
			return nil, err
		}
		at = append(at, time.Now())
		if err := os.Rename(filepath.Join(tree, "new"), hidden(tree, n)); err != nil {
			return nil, err
		}
		time.Sleep(long)
		if err := put(filepath.Join(tree, fmt.Sprintf("next-%d", n)), ""); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// appears waits until a file is there.
func appears(path string) error {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s has not appeared within %v", filepath.Base(path), patience)
}

// windows adds the times between the replacement of files and the last moment at which a command has read them.
func windows(w *row, at []time.Time, text string) error {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "until ")
		if n := len(w.Values[ours]); ok && n < len(at) {
			last, err := strconv.ParseInt(rest, 10, 64)
			if err != nil {
				return err
			}
			w.add(ours, max(0, milliseconds(time.UnixMicro(last).Sub(at[n]))))
		}
	}
	if n := len(w.Values[ours]); n != len(at) {
		return fmt.Errorf("the command looked for %d files and not %d: %.300s", n, len(at), text)
	}
	return nil
}
