package sandbox

import (
	"os"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// A Terminal is a terminal of a sandbox's own. A command that [Spec].Terminal gives it to is a job in it, as a
// shell's would be: it can be suspended and resumed. Only [Namespaces] has one.
type Terminal struct {
	// Master is the host's end. What is written to it is typed, what is read from it is shown; a read fails once no
	// command has the terminal open any more.
	Master *os.File

	slave, control *os.File // for the command
	host           *os.File // the other end of control
	stopped        chan struct{}
	failure        chan string
}

// Stopped receives a value whenever the command has been suspended. It is closed when the command has ended.
func (t *Terminal) Stopped() <-chan struct{} { return t.stopped }

// Failure returns why the command's program could not be started, once the command has ended; "" if it was.
func (t *Terminal) Failure() string { return <-t.failure }

// Resume lets a suspended command go on. It is no error if nothing is suspended.
func (t *Terminal) Resume() { _, _ = t.host.Write([]byte{contract.Resumed}) }

// started gives up what the command has by now, and listens to it.
func (t *Terminal) started() {
	t.slave.Close()
	t.control.Close()
	go t.listen()
}

func (t *Terminal) listen() {
	defer close(t.failure)
	defer close(t.stopped)
	text := make([]byte, 4096)
	for {
		n, err := t.host.Read(text)
		switch {
		case err != nil || n == 0:
			return
		case text[0] == contract.Failed:
			t.failure <- string(text[1:n])
			return
		}
		select {
		case t.stopped <- struct{}{}:
		default: // a value is waiting already
		}
	}
}

// Close closes the host's ends.
func (t *Terminal) Close() {
	for _, f := range []*os.File{t.Master, t.host, t.slave, t.control} {
		f.Close()
	}
}
