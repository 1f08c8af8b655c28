//go:build slow && linux

package fault

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"

	"github.com/toolhost/toolhost/integration/host"
)

// A footprint is what a host takes of the machine, as the kernel tells it.
type footprint struct {
	threads, descriptors, children, mounts int
	locks                                  int   // of files, as /proc/locks shows them
	temps                                  int   // temporary files in its root
	resident                               int64 // bytes
}

// growth bounds what a host may take more after a soak than when it was warm.
//
// Threads and descriptors are counted after the load has ended, but Go never gives a thread back, so that as many stay as there were
// system calls at once: the gates of a few conversations with 10 calls each. Descriptors: the names of temporary files that are kept for
// the next write are 32 at most, a shell that is being started has 6 here, and a directory that is searched one. Children: shells that
// wait for a command, at most 2 next to those there were. Locks: one for each name of a temporary file that is kept.
var growth = footprint{threads: 40, descriptors: 64, children: 4, mounts: 0, locks: 32, temps: 0, resident: 96 << 20}

// measure takes the footprint of a host and all that it has started. The memory is that of the host alone.
func measure(t *testing.T, pid int, root string) footprint {
	t.Helper()
	f := footprint{
		threads: count(t, pid, "task"), descriptors: count(t, pid, "fd"),
		children: len(host.Descendants(t, pid)), temps: len(host.Leftovers(t, root)),
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	host.Must(t, err)
	f.mounts = bytes.Count(mounts, []byte("\n"))
	locks, err := os.ReadFile("/proc/locks")
	host.Must(t, err)
	f.locks = bytes.Count(locks, fmt.Appendf(nil, " %d ", pid))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	host.Must(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			host.Must(t, err)
			f.resident = kb << 10
		}
	}
	return f
}

func count(t *testing.T, pid int, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, dir))
	host.Must(t, err)
	return len(entries)
}

// moreGoroutines is by how many a host may have more after a soak than one that has done a call of each kind: those that serve what is kept
// warm, and those of conversations that have just ended.
const moreGoroutines = 16

// goroutines ends a host by SIGQUIT, upon which Go writes what each goroutine does, and counts them.
func (s *session) goroutines() int {
	s.T.Helper()
	signal(s.T, s, syscall.SIGQUIT)
	_ = s.Close() // it tells of the signal
	n := strings.Count(s.Stderr.String(), "\ngoroutine ")
	if n == 0 {
		s.T.Errorf("the host did not tell of its goroutines: %.600s", s.Stderr)
	}
	return n
}

// exceeds names what is beyond the bound above an earlier footprint.
func (f footprint) exceeds(start, bound footprint) string {
	var all []string
	for _, x := range []struct {
		name          string
		now, was, may int64
	}{
		{"threads", int64(f.threads), int64(start.threads), int64(bound.threads)},
		{"descriptors", int64(f.descriptors), int64(start.descriptors), int64(bound.descriptors)},
		{"children", int64(f.children), int64(start.children), int64(bound.children)},
		{"mounts", int64(f.mounts), int64(start.mounts), int64(bound.mounts)},
		{"locks", int64(f.locks), int64(start.locks), int64(bound.locks)},
		{"temporary files", int64(f.temps), int64(start.temps), int64(bound.temps)},
		{"bytes resident", f.resident, start.resident, bound.resident},
	} {
		if x.now > x.was+x.may {
			all = append(all, fmt.Sprintf("%d %s after %d", x.now, x.name, x.was))
		}
	}
	return strings.Join(all, ", ")
}

// A leakTable shows how hosts grew.
type leakTable struct{ rows []leakRow }

type leakRow struct {
	name       string
	start, end footprint
}

func (l *leakTable) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "host\tthreads\tdescriptors\tchildren\tmounts\tlocks\ttemps\tMB resident\t")
	for _, r := range l.rows {
		s, e := r.start, r.end
		fmt.Fprintf(w, "%s\t%d → %d\t%d → %d\t%d → %d\t%d → %d\t%d → %d\t%d → %d\t%d → %d\t\n", r.name, s.threads,
			e.threads, s.descriptors, e.descriptors,
			s.children, e.children, s.mounts, e.mounts, s.locks, e.locks, s.temps, e.temps, s.resident>>20, e.resident>>20)
	}
	g := growth
	fmt.Fprintf(w, "may grow by\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", g.threads, g.descriptors, g.children, g.mounts,
		g.locks, g.temps, g.resident>>20)
	_ = w.Flush() // into memory
	return b.String()
}
