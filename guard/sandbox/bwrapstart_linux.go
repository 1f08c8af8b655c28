package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ownFiles numbers the descriptors that bwrap gets besides those of the command,
// whose number it is.
type ownFiles int

func (n ownFiles) status() int  { return int(n) }     // where bwrap reports to
func (n ownFiles) stderr() int  { return int(n) + 1 } // the command's standard error
func (n ownFiles) entered() int { return int(n) + 2 } // where enter says that it executes the command
func (n ownFiles) inputs() int  { return int(n) + 3 } // the first of what bwrap reads

// bwrapStart reports whether bwrap started the command. Errors before that
// must not appear as output of the command: bwrap's standard error is a file
// of this process, and enter replaces it.
type bwrapStart struct {
	status, statusIn *os.File      // the ends of the pipe bwrap reports to; the first is the caller's
	entered          *net.UnixConn // the ends of the connection to enter
	enteredIn        *os.File
	words            *os.File // bwrap's standard error
}

func newBeginning() (*bwrapStart, error) {
	words, err := memoryFile("words", nil)
	if err != nil {
		return nil, err
	}
	b := &bwrapStart{words: os.NewFile(uintptr(words), "words")}
	if b.entered, b.enteredIn, err = socketPair(); err == nil {
		if b.status, b.statusIn, err = os.Pipe(); err == nil {
			return b, nil
		}
	}
	b.close()
	return nil, err
}

// started closes the descriptors that bwrap has inherited.
func (b *bwrapStart) started() {
	b.statusIn.Close()
	b.enteredIn.Close()
}

func (b *bwrapStart) close() {
	for _, f := range []*os.File{b.statusIn, b.enteredIn, b.words} {
		f.Close() // os.ErrInvalid of one that is nil, os.ErrClosed of one that is closed
	}
	if b.entered != nil {
		b.entered.Close()
	}
}

// enters is what enter sends before it executes the command. The execution closes the connection,
// so a message after it is an error.
const enters = "!"

// sayEntered reports that the command is executed now, and sends the listener of the
// filter, if there is one, as appendListener does.
func sayEntered(to, listener int, pl *plan) error {
	files, err := appendListener(nil, listener, pl)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if err := unix.Sendmsg(to, []byte(enters), rights, nil, 0); err != nil {
		return fmt.Errorf("telling the host: %w", err)
	}
	return nil
}

// wait waits until the command is executed, and passes on to serve what sayEntered has
// handed out. A *setUpError says that bwrap failed before.
func (b *bwrapStart) wait(serve func(files []int) error) error {
	in := newReceiver(b.entered)
	msg, files, err := in.next()
	if errors.Is(err, io.EOF) {
		words, err := io.ReadAll(io.NewSectionReader(b.words, 0, maxWords))
		if err != nil {
			return err
		}
		return &setUpError{strings.TrimSpace(string(words))}
	}
	if err != nil || string(msg) != enters {
		closeAll(files)
		return cmp.Or(err, errMalformed)
	}
	if err := serve(files); err != nil {
		return err
	}
	problem, files, err := in.next()
	closeAll(files)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New(string(problem))
}

// maxWords bounds what is kept of an error of bwrap, in bytes.
const maxWords = 4 << 10

// setUpError is the output of a bwrap that failed to set up a sandbox.
type setUpError struct{ words string }

func (e *setUpError) Error() string {
	if e.words == "" {
		return "bwrap ended before the command was started"
	}
	return e.words
}
