//go:build slow

package mcpserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestWorktreeProcesses: a worktree that was left has no processes, whether its branch is kept or not, nor has one
// that was removed from outside once its conversation goes on.
func TestWorktreeProcesses(t *testing.T) {
	m := openMover(t, nil)
	if held := m.h.policies.of(LocalPrincipal).Commands().Containment(); !held.Writes {
		t.Skip("commands are not contained on this machine: " + held.Why)
	}
	m.o.answer = Answer{Decision: AllowOnce}
	own := 0 // processes of the host, with those of the sandbox of the checkout
	leave := []func(thread string){
		func(thread string) { m.must(thread, "ExitWorktree", `{}`) },
		func(thread string) { m.must(thread, "ExitWorktree", `{"keep":false}`) },
		func(thread string) {
			if err := os.RemoveAll(m.tree(thread)); err != nil {
				t.Fatal(err)
			}
			m.refused(thread, "Read", `{"file_path":"a.txt"}`, "removed from outside")
		},
	}
	for i := range len(leave) + samples.Rounds(3*len(leave)) {
		thread := fmt.Sprint("thread", i)
		m.must(thread, "Bash", `{"command":"true"}`)
		m.must(thread, "EnterWorktree", `{}`)
		m.must(thread, "Bash", `{"command":"echo x >> a.txt"}`)
		leave[i%len(leave)](thread)
		if n := processesBelow(os.Getpid()); i == 0 {
			own = n
		} else if n > own+1 { // a shell that starts ahead of the next command
			t.Fatalf("%d processes after %d worktrees, %d after the first", n, i+1, own)
		}
	}
}

// processesBelow counts the descendants of a process.
func processesBelow(pid int) (n int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // of a thread that has ended
		for _, child := range strings.Fields(string(text)) {
			var id int
			fmt.Sscan(child, &id)
			n += 1 + processesBelow(id)
		}
	}
	return n
}
