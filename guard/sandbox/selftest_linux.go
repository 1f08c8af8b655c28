package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// run tries c on the calling thread.
func (c canary) run() (a attempt) {
	if fd, err := unix.Open(c.read, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		a.read = true
		unix.Close(fd)
	}
	if fd, err := unix.Open(c.write, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0); err == nil {
		a.wrote = true
		unix.Close(fd)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		a.connected = unix.Connect(s, &unix.SockaddrInet4{Port: c.port, Addr: [4]byte{127, 0, 0, 1}}) == nil
		unix.Close(s)
	}
	return a
}

func (c canary) encode(e *encoder) {
	e.str(c.read)
	e.str(c.write)
	e.uint(uint64(c.port))
}

func decodeCanary(d *decoder) canary {
	return canary{read: d.str(), write: d.str(), port: int(d.uint())}
}

// bits and attemptOf pack an attempt into a number.
func (a attempt) bits() (n uint64) {
	for i, b := range []bool{a.read, a.wrote, a.connected} {
		if b {
			n |= 1 << i
		}
	}
	return n
}

func attemptOf(n uint64) attempt {
	return attempt{read: n&1 != 0, wrote: n&2 != 0, connected: n&4 != 0}
}

// try implements engine: the thread that all commands descend from tries.
func (n *namespaces) try(c canary) (attempt, error) {
	r, err := n.request(msgProbe, c.encode)
	if err != nil {
		return attempt{}, fmt.Errorf("the trial failed: %w", err)
	}
	return attemptOf(r.n), nil
}

// probe answers msgProbe.
func (g *initProcess) probe(id uint64, d *decoder) error {
	c := decodeCanary(d)
	m := newMessage(msgDone, id)
	m.err(d.err)
	var a attempt
	g.spawn.Do(func() { a = c.run() })
	m.uint(a.bits())
	return send(g.conn, m.buf)
}
