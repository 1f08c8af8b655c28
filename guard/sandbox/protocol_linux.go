package sandbox

import (
	"encoding/binary"
	"errors"
)

// The host and process 1 of the sandbox exchange whole messages over a
// sequenced-packet socket. A message is a kind, the number of the request or
// command it concerns, and fields in a fixed order; JSON would not do, since
// paths and arguments need not be UTF-8.

// kind is the first byte of a message.
type kind byte

// Requests of the host, then answers of process 1.
const (
	msgSpawn  kind = 'S' // dir, argv, env, whether it has a terminal; descriptors: files
	msgSignal kind = 'G' // signal number
	msgKill   kind = 'K'
	msgDeny   kind = 'D' // covers
	msgHold   kind = 'H' // what becomes read-only
	msgShow   kind = 'V' // entries of the host in private directories
	msgProbe  kind = 'P' // canary
	msgRenew  kind = 'N' // overlays are refreshed
	msgDial   kind = 'L' // loopback port, or 0 for the table of sockets
	msgListen kind = 'T' // loopback port

	msgReady   kind = 'r' // error, why there is no TUN device, why there is no overlay, directories with an overlay; descriptors: see initProcess.setUp
	msgSpawned kind = 's' // error, number of the UTS namespace or 0
	msgExited  kind = 'x' // wait status, whether nothing of the command is left, number as of msgSpawned
	msgDone    kind = 'd' // error, number; descriptor: what was asked for
)

// maxInline is the size above which a message travels in a memory file instead:
// the default send buffer of a Unix socket takes about 200 KiB, arguments and
// environment may be 2 MiB.
const maxInline = 32 << 10

// encoder appends fields to a message.
type encoder struct{ buf []byte }

func newMessage(k kind, id uint64) *encoder {
	e := &encoder{buf: make([]byte, 0, 512)}
	e.buf = append(e.buf, byte(k))
	e.uint(id)
	return e
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }

func (e *encoder) str(s string) {
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) strs(list []string) {
	e.uint(uint64(len(list)))
	for _, s := range list {
		e.str(s)
	}
}

func (e *encoder) bool(b bool) {
	if b {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

// err encodes an error as its text; nil is empty.
func (e *encoder) err(err error) {
	if err == nil {
		e.str("")
		return
	}
	e.str(err.Error())
}

var errMalformed = errors.New("malformed message")

// decoder takes fields off a message. After the first malformed field every
// field is zero and err is set.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) kind() kind {
	if len(d.buf) == 0 {
		d.err = errMalformed
		return 0
	}
	k := kind(d.buf[0])
	d.buf = d.buf[1:]
	return k
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.buf)
	if d.err != nil || size <= 0 {
		d.err, d.buf = errMalformed, nil
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

func (d *decoder) bool() bool { return d.uint() == 1 }

func (d *decoder) str() string {
	n := d.uint()
	if n > uint64(len(d.buf)) {
		d.err, d.buf = errMalformed, nil
		return ""
	}
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}

func (d *decoder) strs() []string {
	n := d.uint()
	if n > uint64(len(d.buf)) { // every string takes a byte at least
		d.err, d.buf = errMalformed, nil
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.str())
	}
	return list
}

// fail decodes what encoder.err wrote.
func (d *decoder) fail() error {
	if s := d.str(); s != "" {
		return errors.New(s)
	}
	return nil
}
