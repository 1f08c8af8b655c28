//go:build unix

package hook

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// killTimeout bounds the end of a process group: a few milliseconds, unless its
// leader cannot be killed.
const killTimeout = 5 * time.Second

// group is a process that leads a session and process group of its own.
type group struct {
	leader int
	ended  chan struct{} // closed when code and err are set
	code   int
	err    error
}

// StartPlain is a [Config.Start] for tests: it starts a command directly, and ends its process group.
func StartPlain(_ context.Context, spec Spec) (Process, error) {
	if spec.Contained {
		return nil, errors.New("nothing contains a process here")
	}
	cmd := &exec.Cmd{
		Path: spec.Argv[0], Args: spec.Argv, Dir: spec.Dir, Env: spec.Env,
		Stdin: spec.Files[0], Stdout: spec.Files[1], Stderr: spec.Files[2],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &group{leader: cmd.Process.Pid, ended: make(chan struct{})}
	go g.wait(cmd)
	return g, nil
}

func (g *group) wait(cmd *exec.Cmd) {
	defer close(g.ended)
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		g.err = err
		return
	}
	g.code = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		g.code = 128 + int(status.Signal())
	}
}

// Wait implements [Process].
func (g *group) Wait() (int, error) {
	<-g.ended
	return g.code, g.err
}

// Kill implements [Process]. If the leader has ended and no process of the group is left, the number of the group is
// free; systems do not reuse it at once.
func (g *group) Kill() ([]string, error) {
	syscall.Kill(-g.leader, syscall.SIGKILL) // an error means that no process is left
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-g.ended:
		return nil, nil
	case <-timer.C:
		return nil, fmt.Errorf("process %d did not end within %v of being killed", g.leader, killTimeout)
	}
}
