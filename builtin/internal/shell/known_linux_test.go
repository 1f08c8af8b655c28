package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// known is a process on the host of which the tests know the supervisor.
type known struct {
	supervise.Process
	supervisor int // its process id
}

// starting is held while the children of this process are compared.
var starting sync.Mutex

// startKnown is a Starter of such processes.
func startKnown(s supervise.Spec) (supervise.Process, error) {
	starting.Lock()
	defer starting.Unlock()
	before := strings.Fields(children(os.Getpid()))
	p, err := supervise.Start(s)
	if err != nil {
		return nil, err
	}
	for _, child := range strings.Fields(children(os.Getpid())) {
		if !slices.Contains(before, child) {
			pid, err := strconv.Atoi(child)
			return known{p, pid}, err
		}
	}
	return nil, errors.New("the supervisor was not found")
}

// leader is the process id of the process itself; 0 if it does not run, or the supervisor has adopted others.
func (p known) leader() int {
	pid, _ := strconv.Atoi(strings.TrimSpace(children(p.supervisor)))
	return pid
}

// children returns the numbers of the children of a process.
func children(pid int) string {
	var all string
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all += string(text)
	}
	return all
}
