package sandbox

import (
	"errors"
	"io"
	"os"
	"strings"
)

// ownFiles numbers the descriptors that bwrap gets besides those of the command,
// whose number it is.
type ownFiles int

func (n ownFiles) status() int  { return int(n) }     // where bwrap reports to
func (n ownFiles) stderr() int  { return int(n) + 1 } // the command's standard error
func (n ownFiles) entered() int { return int(n) + 2 } // where enter says that it executes the command
func (n ownFiles) inputs() int  { return int(n) + 3 } // the first of what bwrap reads

// beginning tells whether bwrap came as far as the command. Whatever fails before
// is no output of the command, which has not run: bwrap's standard error is a file
// of ours, and enter replaces it.
type beginning struct {
	status, statusIn   *os.File // the ends of the pipe bwrap reports to; the first is the caller's
	entered, enteredIn *os.File // the ends of the pipe of enter
	words              *os.File // bwrap's standard error
}

func newBeginning() (*beginning, error) {
	words, err := memoryFile("words", nil)
	if err != nil {
		return nil, err
	}
	b := &beginning{words: os.NewFile(uintptr(words), "words")}
	if b.entered, b.enteredIn, err = os.Pipe(); err == nil {
		if b.status, b.statusIn, err = os.Pipe(); err == nil {
			return b, nil
		}
	}
	b.close()
	return nil, err
}

// started closes what bwrap has now.
func (b *beginning) started() {
	b.statusIn.Close()
	b.enteredIn.Close()
}

func (b *beginning) close() {
	for _, f := range []*os.File{b.statusIn, b.entered, b.enteredIn, b.words} {
		f.Close() // os.ErrInvalid of one that is nil, os.ErrClosed of one that is closed
	}
}

// enters is what enter says before it executes the command. The pipe is closed by
// that, so that a word after it is an error.
const enters = "!"

// wait waits until the command is executed. A *setUpError says that bwrap failed
// before.
func (b *beginning) wait() error {
	text, err := io.ReadAll(b.entered)
	if err != nil {
		return err
	}
	if problem, ok := strings.CutPrefix(string(text), enters); ok {
		if problem == "" {
			return nil
		}
		return errors.New(problem)
	}
	words, err := io.ReadAll(io.NewSectionReader(b.words, 0, maxWords))
	if err != nil {
		return err
	}
	return &setUpError{strings.TrimSpace(string(words))}
}

// maxWords bounds what is kept of an error of bwrap, in bytes.
const maxWords = 4 << 10

// setUpError is what bwrap said when it failed to set a sandbox up.
type setUpError struct{ words string }

func (e *setUpError) Error() string {
	if e.words == "" {
		return "bwrap ended before the command was started"
	}
	return e.words
}
