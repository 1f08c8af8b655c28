//go:build slow

package sandbox

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// hide puts a program where process 1 cannot tell whose process executes it, if f.shareDirectory
// could.
const hide = `T=$TMPDIR; [ -d "$WS/theirs" ] && T=$WS/theirs; T=$T/$D; mkdir "$T"; cp /bin/sleep "$T"; chmod 111 "$T/sleep"; `

func TestKillEndsTheTree(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	f := newFixture(t)
	f.shareDirectory(t)
	for backend, s := range available(t, f) {
		if !s.Report().Enforces.Processes {
			continue
		}
		for name, script := range map[string]string{
			"background":    `sleep $D & sleep $D &`,
			"session":       `setsid sleep $D & `,
			"nohup":         `nohup sleep $D > /dev/null & disown`,
			"double fork":   `$ATTACK detach $D`,
			"deaf":          `bash -c 'trap "" TERM HUP INT; sleep $D; sleep $D' &`,
			"stopped":       `bash -c 'kill -STOP $$; sleep $D' & sleep $D &`,
			"own children":  `bash -c 'bash -c "sleep $D & sleep $D" & sleep $D' &`,
			"still there":   `$ATTACK detach $D; exec sleep $D`,
			"unreadable":    hide + `setsid "$T/sleep" $D & sleep $D & wait`,
			"hidden orphan": hide + `(setsid "$T/sleep" $D &)`,
			"leaderless":    `$ATTACK leaderless $D > "$TMPDIR/l" & while [ ! -s "$TMPDIR/l" ]; do :; done; setsid sleep $D &`,
		} {
			t.Run(string(backend)+"/"+name, func(t *testing.T) {
				d := duration()
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", script}, Dir: f.ws, Env: append(f.env, "D="+d),
					Files: []*os.File{nil, w, w}})
				w.Close()
				if err != nil {
					t.Fatal(err)
				}
				if backend == Namespaces { // others end with the command
					waitFor(t, "the command to run", func() bool { return sleepers(t, d) > 0 })
				}
				ended, err := p.Kill()
				if err != nil || ended == 0 && backend == Namespaces {
					t.Errorf("Kill() = %d, %v", ended, err)
				}
				if n := sleepers(t, d); n > 0 {
					t.Errorf("%d processes are left", n)
				}
				if n, err := p.Kill(); n != 0 || err != nil {
					t.Errorf("second Kill() = %d, %v", n, err)
				}
				if _, err := p.Wait(); err != nil {
					t.Errorf("Wait: %v", err)
				}
				if err := p.Signal(os.Interrupt); err != nil {
					t.Errorf("Signal after the end: %v", err)
				}
			})
		}
	}
}

// A fork bomb ends, and so does a chain in which every process starts its
// successor in a new session and ends; at the latest with the sandbox. Only a
// sandbox that was seen to limit processes gets a bomb: nothing else would keep
// it from taking the machine.
func TestForkBombEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const limit = 400
	for name, bomb := range map[string]string{
		"one group":     "f() { sleep $D & f | f & }; f",
		"runaway chain": "f() { setsid sleep $D & setsid bash -c f & }; export -f f; f",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			policy := f.policy()
			policy.maxProcesses = limit
			s := start1(t, policy)
			r := runIn(t, s, f.ws, f.env, "/bin/cat", "/proc/sys/kernel/pid_max")
			if n, err := strconv.Atoi(strings.TrimSpace(r.output)); err != nil || n > limit {
				t.Skipf("processes are not limited here: %q", r.output)
			}
			d := duration()
			p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", "ulimit -u 400; " + bomb}, Dir: f.ws,
				Env: append(f.env, "D="+d)})
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the bomb", func() bool { return sleepers(t, d) > 20 })
			p.Kill() // how many it ended does not matter, nor whether the sandbox had to go
			waitFor(t, "the end of the bomb", func() bool { return sleepers(t, d) == 0 })
		})
	}
}
