package jsontext

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Members yields the members of an object in their order, with decoded names. It ends where encoding/json finds a
// fault.
func Members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		dec := json.NewDecoder(bytes.NewReader(object))
		if open, err := dec.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for dec.More() {
			token, err := dec.Token()
			name, ok := token.(string)
			var value json.RawMessage
			if err != nil || !ok || dec.Decode(&value) != nil || !yield(name, value) {
				return
			}
		}
	}
}

// Repeated returns a name that an object has twice, or "". A program that checks calls could read the other member.
func Repeated(object []byte) string {
	seen := map[string]bool{}
	for name := range Members(object) {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}
