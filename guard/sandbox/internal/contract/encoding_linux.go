package contract

import (
	"encoding/binary"
	"errors"
	"reflect"
)

// A message is encoded as the fields of its structure, in their order: numbers as varints, texts and lists with their
// length before them, and an error as its text. JSON is not used because paths and arguments need not be UTF-8, and gob
// because it takes ten times as long for a single message.

// encode returns the bytes of a [Plan], [Request] or [Event].
func encode(m any) []byte { return appendValue(make([]byte, 0, 512), reflect.ValueOf(m)) }

func appendValue(buf []byte, v reflect.Value) []byte {
	switch {
	case v.CanInt():
		return binary.AppendUvarint(buf, uint64(v.Int()))
	case v.CanUint():
		return binary.AppendUvarint(buf, v.Uint())
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(buf, 1)
		}
		return append(buf, 0)
	case reflect.String:
		return append(binary.AppendUvarint(buf, uint64(v.Len())), v.String()...)
	case reflect.Slice:
		buf = binary.AppendUvarint(buf, uint64(v.Len()))
		for i := range v.Len() {
			buf = appendValue(buf, v.Index(i))
		}
		return buf
	case reflect.Struct:
		for i := range v.NumField() {
			buf = appendValue(buf, v.Field(i))
		}
		return buf
	}
	text := ""
	if err, ok := v.Interface().(error); ok {
		text = err.Error()
	}
	return appendValue(buf, reflect.ValueOf(text))
}

// ErrMalformed is the error of a message that the other side cannot have sent.
var ErrMalformed = errors.New("malformed message")

// decode decodes the bytes that encode returned into a value, whose pointer is given.
func decode(buf []byte, to any) error {
	d := &decoder{buf: buf}
	d.value(reflect.ValueOf(to).Elem())
	return d.err
}

// decoder takes values off a message. After the first malformed value every value is zero and err is set.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) value(v reflect.Value) {
	switch {
	case v.CanInt():
		v.SetInt(int64(d.uint()))
		return
	case v.CanUint():
		v.SetUint(d.uint())
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.uint() == 1)
	case reflect.String:
		v.SetString(d.text())
	case reflect.Slice:
		if n := d.length(); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				d.value(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	default: // an error
		if text := d.text(); text != "" {
			v.Set(reflect.ValueOf(errors.New(text)))
		}
	}
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

// length returns the length of a text or a list, of which each byte and element takes a byte at least.
func (d *decoder) length() int {
	n := d.uint()
	if n > uint64(len(d.buf)) {
		d.err, d.buf = ErrMalformed, nil
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.length()
	text := string(d.buf[:n])
	d.buf = d.buf[n:]
	return text
}
