package jsonrpc

import "encoding/json"

// maxMember limits how much of a name or an id of an [Oversized] message is kept, in bytes.
const maxMember = 1 << 10

// An Oversized finds the id of a message that is too long to be kept, so that the error response can have it. Write
// gets the message in pieces. The zero value is ready to use.
type Oversized struct {
	depth   int    // of objects and arrays
	quoted  bool   // in a string
	escaped bool   // after a backslash in a string
	value   bool   // after the colon of a top-level member
	text    []byte // the name or value of that member so far
	name    string

	id     json.RawMessage
	ids    int // number of members named id
	method bool
}

// ID returns the id of the request. It returns nil if the message is not a request or its id is invalid.
func (o *Oversized) ID() json.RawMessage {
	if !o.method || o.ids != 1 || !json.Valid(o.id) {
		return nil
	}
	return usable(o.id)
}

// Write scans the next piece.
func (o *Oversized) Write(piece []byte) {
	for _, c := range piece {
		if o.depth == 1 && len(o.text) <= maxMember && (o.quoted || c > ' ' && c != ':' && c != ',' && c != '}') {
			o.text = append(o.text, c)
		}
		switch {
		case o.escaped:
			o.escaped = false
		case o.quoted && c == '\\':
			o.escaped = true
		case c == '"':
			o.quoted = !o.quoted
		case o.quoted:
		case c == '{', c == '[':
			o.depth++
			o.structure(c)
		case c == '}', c == ']':
			o.structure(c)
			o.depth--
		case c == ':', c == ',':
			o.structure(c)
		}
	}
}

// structure handles a character that ends a name or a value of a top-level member, or starts the message.
func (o *Oversized) structure(c byte) {
	switch {
	case o.depth != 1:
		return
	case c == ':' && !o.value:
		o.name = ""
		_ = json.Unmarshal(o.text, &o.name) // an invalid name stays empty
		o.value = true
	case c == ',', c == '}':
		if o.name == "id" {
			o.ids++
			o.id = append(json.RawMessage(nil), o.text...)
		}
		o.method = o.method || o.name == "method"
		o.name, o.value = "", false
	}
	o.text = o.text[:0]
}
