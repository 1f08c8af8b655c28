package contract

import (
	"encoding/binary"
	"errors"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// A message is its kind, the number of the request or command that it concerns, and its fields in a fixed order; JSON
// would not do, since paths and arguments need not be UTF-8.

// encoder appends fields to a message.
type encoder struct{ buf []byte }

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

// error encodes an error as its text; nil is empty.
func (e *encoder) error(err error) {
	if err == nil {
		e.str("")
		return
	}
	e.str(err.Error())
}

// ErrMalformed is the error of a message that the other side cannot have sent.
var ErrMalformed = errors.New("malformed message")

// decoder takes fields off a message. After the first malformed field every
// field is zero and err is set.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) kind() Kind {
	if len(d.buf) == 0 {
		d.err = ErrMalformed
		return 0
	}
	k := Kind(d.buf[0])
	d.buf = d.buf[1:]
	return k
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.buf)
	if d.err != nil || size <= 0 {
		d.err, d.buf = ErrMalformed, nil
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

func (d *decoder) bool() bool { return d.uint() == 1 }

func (d *decoder) str() string {
	n := d.uint()
	if n > uint64(len(d.buf)) {
		d.err, d.buf = ErrMalformed, nil
		return ""
	}
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}

func (d *decoder) strs() []string {
	n := d.uint()
	if n > uint64(len(d.buf)) { // every string takes a byte at least
		d.err, d.buf = ErrMalformed, nil
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.str())
	}
	return list
}

// error decodes what encoder.error wrote.
func (d *decoder) error() error {
	if s := d.str(); s != "" {
		return errors.New(s)
	}
	return nil
}

func (e *encoder) objects(list []place.Object) {
	e.uint(uint64(len(list)))
	for _, t := range list {
		e.str(t.Path)
		e.uint(t.Dev)
		e.uint(t.Ino)
		e.bool(t.Dir)
	}
}

func (d *decoder) objects() []place.Object {
	n := d.uint()
	if n > uint64(len(d.buf)) {
		d.err = ErrMalformed
		return nil
	}
	list := make([]place.Object, 0, n)
	for range n {
		t := place.Object{Path: d.str()}
		t.Dev, t.Ino = d.uint(), d.uint()
		t.Dir = d.bool()
		list = append(list, t)
	}
	return list
}
