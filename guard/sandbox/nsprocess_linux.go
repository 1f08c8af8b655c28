package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// nsProcess is a command in a namespace sandbox.
type nsProcess struct {
	host    *insideProcess
	id      uint64
	gate    *execgate.Gate    // or nil
	hosts   *connectgate.Gate // or nil
	mark    uint64            // of its UTS namespace
	dropped bool              // that has been forgotten
	ended   chan struct{}     // closed when the fields below are set
	status  Status
	gone    bool // nothing of the command was left when it ended
	err     error

	mu        sync.Mutex
	over      bool // it has ended
	concluded bool
	pidfd     int // or -1
	children  int // list of the command's own children, or -1
	files     int // directory of its descriptors, or -1
}

// end notes the end of the command, and reports whether it was concluded.
func (c *nsProcess) end(s Status, err error) (concluded bool) {
	c.status, c.err = s, err
	close(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.release()
	return c.concluded
}

// hold takes what process 1 sent with the news that the command was started.
func (c *nsProcess) hold(files []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(files) != 3 {
		contract.CloseAll(files)
		return
	}
	c.pidfd, c.children, c.files = files[0], files[1], files[2]
	if c.over {
		c.release()
	}
}

// release closes what hold took. The caller holds the lock.
func (c *nsProcess) release() {
	if c.pidfd >= 0 {
		contract.CloseAll([]int{c.pidfd, c.children, c.files})
		c.pidfd, c.children, c.files = -1, -1, -1
	}
}

// TryFinish implements Process. It does not ask process 1, which is notified of the end of a process
// only after the kernel has torn it down. That takes longer than most commands run.
func (c *nsProcess) TryFinish() (files int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pidfd < 0 || c.host.orphans < 0 || !c.alone() {
		return 0, false
	}
	var st unix.Stat_t
	if err := unix.Fstat(c.files, &st); err != nil {
		return 0, false
	}
	// From here on it can start nothing, so that a second look is the last word.
	if err := unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, false
	}
	c.concluded = c.alone()
	return int(st.Size), c.concluded // the size is 0 before Linux 6.2
}

// alone reports whether no process descends from the command. A descendant has a parent or, when the parent has
// ended, falls to process 1. The lists are read in that order, so a process that falls meanwhile is not missed.
func (c *nsProcess) alone() bool {
	return proc.Childless(c.children) && proc.Childless(c.host.orphans)
}

// Wait implements Process.
func (c *nsProcess) Wait() (Status, error) {
	<-c.ended
	return c.status, c.err
}

// Signal implements Process.
func (c *nsProcess) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sandbox: %v is not a signal of this system", sig)
	}
	if err := c.host.conn.Send(contract.Request{Kind: contract.Signal, ID: c.id, Signal: number}); err != nil {
		return nil // the sandbox has ended; nothing is left to receive it
	}
	return nil
}

// Done implements Process.
func (c *nsProcess) Done() <-chan struct{} { return c.ended }

// Kill implements Process.
func (c *nsProcess) Kill() (ended int, err error) {
	c.mu.Lock()
	concluded := c.concluded
	c.mu.Unlock()
	if concluded {
		<-c.ended
	}
	select {
	case <-c.ended:
		if c.gone {
			return 0, nil
		}
	default:
	}
	r, err := c.host.request(contract.Request{Kind: contract.Kill, Command: c.id})
	if errors.Is(err, ErrClosed) {
		<-c.host.dead
		if c.host.backend == backendLandlock { // no namespace ended with it
			return 0, fmt.Errorf("sandbox: the init process of this command ended before it, some of its processes may still "+
				"run: %w", err)
		}
		return 0, nil // everything inside has been killed
	}
	if err != nil {
		return 0, fmt.Errorf("sandbox: ending a command: %w", err)
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.drop(c)
	return r.Ended, nil
}

// descriptors returns the numbers of files, with /dev/null for nil, and makes the files block: pipes of package os do
// not, and many programs take a pipe that is empty for its end. release must be called when they are not used any
// more.
func descriptors(files []*os.File) (fds []int, release func(), err error) {
	if len(files) >= contract.MaxFiles {
		return nil, nil, fmt.Errorf("sandbox: a command can be given %d files, not %d", contract.MaxFiles-1, len(files))
	}
	var null *os.File
	release = func() {
		if null != nil {
			null.Close()
		}
	}
	for _, f := range files {
		if f == nil && null == nil {
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return nil, nil, fmt.Errorf("sandbox: %w", err)
			}
		}
		if f == nil {
			f = null
		}
		fd, err := rawFD(f)
		if err == nil {
			err = unix.SetNonblock(fd, false)
		}
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("sandbox: %w", err)
		}
		fds = append(fds, fd)
	}
	return fds, release, nil
}

// rawFD returns the number of f, or an error if f is closed.
func rawFD(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	number := -1
	if err := raw.Control(func(fd uintptr) { number = int(fd) }); err != nil {
		return 0, err
	}
	return number, nil
}
