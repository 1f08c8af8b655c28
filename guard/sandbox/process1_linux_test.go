package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
	"golang.org/x/sys/unix"
)

// Signals to process 1 from inside neither end the sandbox nor free a command.
func TestProcessOneIsDeaf(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("no namespaces here")
	}
	r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c",
		"for i in {1..64}; do kill -$i 1; done; kill -9 -1; echo unreached")
	if r.status.Signal != "" && r.status.Signal != "SIGKILL" {
		t.Errorf("ended by %s", r.status.Signal)
	}
	if r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", "echo alive; trap"); r.output != "alive\n" {
		t.Errorf("afterwards: %q", r.output)
	}
}

// A command that takes all it can of what the kernel counts for the user leaves the
// host something to watch denied files with, and to hand commands their files.
func TestSomethingIsLeft(t *testing.T) {
	for name, left := range map[string]func(*Sandbox, *fixture) error{
		"watch": func(*Sandbox, *fixture) error {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			unix.Close(fd)
			return err
		},
		"inflight": func(s *Sandbox, f *fixture) error {
			for range 3 {
				if r, err := tryIn(s, f.ws, f.env, "/bin/echo", "left"); err != nil || r.output != "left\n" {
					return fmt.Errorf("a command says %q, %w", r.output, err)
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := start1(t, f.policy())
			if s.Report().Backend != Namespaces {
				t.Skip("no namespaces here")
			}
			testenv.NeedsNotifications(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p, err := s.Spawn(Spec{Argv: []string{os.Args[0], attackArg, name}, Env: f.env,
				Files: []*os.File{nil, w, w}})
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(r).ReadString('\n')
			t.Log(line)
			if err := left(s, f); err != nil {
				t.Error(err)
			}
			if _, err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
}
