package jsonrpc

import "encoding/json"

// maxMember bounds what is kept of a name or an id of an [Oversized] message, in bytes.
const maxMember = 1 << 10

// Oversized reads a message that is too long to be kept, so that its sender is told which request was not taken. Write gets the
// message in pieces. The zero Oversized has seen nothing.
type Oversized struct {
	depth   int    // of objects and lists
	quoted  bool   // in a string
	escaped bool   // after a backslash in a string
	value   bool   // after the colon of a member of the message itself
	text    []byte // the name, or the value, of that member so far
	name    string

	id     json.RawMessage
	ids    int // how many members are named id
	method bool
}

// ID is the id of the request, nil if the message is none or its id cannot be used.
func (o *Oversized) ID() json.RawMessage {
	if !o.method || o.ids != 1 || !json.Valid(o.id) {
		return nil
	}
	return usable(o.id)
}

// Write reads the next piece.
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

// structure notes a character that ends a name or a value of the message itself, or begins the message.
func (o *Oversized) structure(c byte) {
	switch {
	case o.depth != 1:
		return
	case c == ':' && !o.value:
		o.name = ""
		_ = json.Unmarshal(o.text, &o.name) // what is no name is none of those below
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
