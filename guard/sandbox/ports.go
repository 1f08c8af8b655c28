package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Ports that are never published on the host.

// firstPublished is the first port that is published: those below are of services that programs trust, for only
// the system's own could listen there.
const firstPublished = 1024

// portKept is how long a port on which a host has listened stays that host's after its last start.
const portKept = 30 * 24 * time.Hour

//go:embed profiles/ports.txt
var portsText string

//go:embed profiles/control.txt
var controlText string

// services are the well-known services by their ports, and controls those that commands never reach on the host.
var (
	services = sync.OnceValue(func() map[int]string { return portTable(portsText) })
	controls = sync.OnceValue(func() map[int]string { return portTable(controlText) })
)

// portTable reads a table of ports.
func portTable(text string) map[int]string {
	all := map[int]string{}
	for line := range strings.Lines(text) {
		span, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, to, isSpan := strings.Cut(span, "-")
		if !isSpan {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, errLast := strconv.Atoi(to)
		for port := first; err == nil && errLast == nil && port <= last; port++ {
			all[port] = name
		}
	}
	return all
}

// reserved says why a port is never published, "" if it may be. records is the directory of [RecordPort].
func reserved(port int, records string) string {
	if port < firstPublished {
		return fmt.Sprintf("ports below %d are of services of the system", firstPublished)
	}
	if name := services()[port]; name != "" {
		return "it is the port of " + name + ", whose clients would talk to the command"
	}
	if recorded(port, records) {
		return "it is the port of a toolhost, whose clients would talk to the command"
	}
	return ""
}

// recorded reports whether a host has listened on a port lately.
func recorded(port int, records string) bool {
	info, err := os.Lstat(filepath.Join(records, strconv.Itoa(port)))
	return records != "" && err == nil && time.Since(info.ModTime()) < portKept
}

// Controlled names the service on a port of the host's loopback interface that commands never reach, whatever the rules
// say; "" if they may reach the port.
func Controlled(port int) string { return controls()[port] }

// unreached says why commands never reach a port of the host's loopback interface; "" if they may.
func unreached(port int, records string) string {
	switch name := Controlled(port); {
	case name != "":
		return "it is the port of " + name + ", which commands never reach on this machine"
	case recorded(port, records):
		return "it is the port of a toolhost, which commands never reach"
	}
	return ""
}

// RecordPort notes in a directory that a host listens on a TCP address, so that no command gets its clients after it
// has ended. Other addresses are not noted.
func RecordPort(dir string, addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	name, now := filepath.Join(dir, strconv.Itoa(tcp.Port)), time.Now()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrNotExist) && os.MkdirAll(dir, 0o700) == nil {
		f, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Chtimes(name, now, now))
}

// portNotes are the ports that were not published, and why.
type portNotes struct {
	mu    sync.Mutex
	notes []withheld
}

// A withheld is a port that commands listen on and that was not published, and why.
type withheld struct {
	Port int
	Why  string
}

// Withheld returns the ports that were not published since the last call.
func (s *Sandbox) Withheld() []withheld {
	s.ports.mu.Lock()
	defer s.ports.mu.Unlock()
	notes := s.ports.notes
	s.ports.notes = nil
	return notes
}

func (n *portNotes) add(w withheld) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.notes) < maxPublished {
		n.notes = append(n.notes, w)
	}
}
