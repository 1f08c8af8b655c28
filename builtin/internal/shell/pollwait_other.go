//go:build !linux

package shell

import (
	"os"
	"time"
)

// A rawPipe is used on Linux only.
type rawPipe struct{}

// open creates the channel for the script and the pipe for the output, and returns the shell's ends of them.
func (s *shell) open() (script, out *os.File, err error) {
	if s.script, script, err = scriptPipe(); err != nil {
		return nil, nil, err
	}
	if s.pipe.file, out, err = os.Pipe(); err != nil {
		closeAll(script)
		return nil, nil, err
	}
	return script, out, nil
}

func (*rawPipe) close() {}

func (*rawPipe) watched() (script, pipe *os.File) { return nil, nil }

func (*rawPipe) write(string) (int, error) { return 0, nil }

func (*shell) pollWait(time.Duration) bool { return false }

func (*shell) takeRest() {}

func (*shell) sendCONT() {}
