package sandbox

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// TestSpawned: a command that can be found by its mark has its process, also before its start has been answered. The
// news of its end may come first; nothing stays open then.
func TestSpawned(t *testing.T) {
	for _, ended := range []bool{false, true} {
		files := make([]int, 3)
		for i := range files {
			fd, err := unix.PidfdOpen(os.Getpid(), 0)
			if err != nil {
				t.Skip(err)
			}
			files[i] = fd
		}
		c := &nsProcess{pidfd: -1, children: -1, files: -1, ended: make(chan struct{})}
		n := &insideProcess{commands: map[uint64]*nsProcess{1: c}, waiting: map[uint64]chan reply{1: make(chan reply, 1)}}
		if ended {
			n.deliver(contract.Event{Kind: contract.Exited, ID: 1, Mark: 7, Gone: true}, nil)
		}
		n.deliver(contract.Event{Kind: contract.Spawned, ID: 1, Mark: 7}, files)
		if found, _ := n.marked(proc.MarkName(7)); !ended && (found == nil || found.number() != os.Getpid()) {
			t.Errorf("found %v", found)
		}
		if !ended {
			n.deliver(contract.Event{Kind: contract.Exited, ID: 1, Mark: 7, Gone: true}, nil)
		}
		for _, fd := range files {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("a descriptor is open: ended first: %t", ended)
			}
		}
	}
}
