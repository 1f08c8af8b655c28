package sandbox

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// TestFoundByItsMark: a command that can be found by its mark has its process, also before its start has been answered.
func TestFoundByItsMark(t *testing.T) {
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
	n.deliver(contract.Event{Kind: contract.Spawned, ID: 1, Mark: 7}, files)
	found, _ := n.marked(proc.MarkName(7))
	if found == nil || found.number() != os.Getpid() {
		t.Errorf("found %v", found)
	}
	c.end(Status{}, nil)
}
