package sandbox

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/integration/testenv"
)

// attackArg makes the test binary one of the attackers in attacker_linux_test.go and attacker_kernel_linux_test.go.
const attackArg = "__attack"

// init keeps an attacker on the main thread, for attacks that end it.
func init() {
	if len(os.Args) > 2 && os.Args[1] == attackArg {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == attackArg {
		attacker(os.Args[2], os.Args[3:])
		return
	}
	if len(os.Args) > 3 && os.Args[1] == hostArg {
		host(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) > 4 && os.Args[1] == judgingArg {
		judgingHost(Backend(os.Args[2]), os.Args[3], os.Args[4])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == probeArg {
		printProbe()
		return
	}
	testenv.Plain()
	// The race detector makes a program wait a second at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// result is what a command did.
type result struct {
	output string
	status Status
	ended  int // processes that were left over
}

// runIn runs argv to its end and returns what it wrote.
func runIn(t testing.TB, s *Sandbox, dir string, env []string, argv ...string) result {
	t.Helper()
	r, err := tryIn(s, dir, env, argv...)
	if err != nil {
		t.Fatalf("running %q: %v", argv, err)
	}
	return r
}

func tryIn(s *Sandbox, dir string, env []string, argv ...string) (result, error) {
	return tryAsking(s, nil, dir, env, argv...)
}

// tryAsking runs a command whose connections a gate judges.
func tryAsking(s *Sandbox, gate *connectgate.Gate, dir string, env []string, argv ...string) (result, error) {
	out, w, err := os.Pipe()
	if err != nil {
		return result{}, err
	}
	defer out.Close()
	p, err := s.Spawn(Spec{Argv: argv, Dir: dir, Env: env, Files: []*os.File{nil, w, w}, Hosts: gate})
	w.Close()
	if err != nil {
		return result{}, err
	}
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(out)
		text <- string(b)
	}()
	status, err := p.Wait()
	if err != nil {
		return result{}, err
	}
	ended, err := p.Kill()
	if err != nil {
		return result{}, fmt.Errorf("kill: %w", err)
	}
	return result{<-text, status, ended}, nil
}
