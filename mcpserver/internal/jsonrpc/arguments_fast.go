package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// cutArguments takes the arguments of a call out of its message, where they are nearly all of a long one: rest has an empty
// object in their place. The library decodes each message five times; what it is not shown is decoded once, when it is
// bound. Whenever two readers could find different arguments in a message, or one of them none, nothing is cut and ok is false.
func cutArguments(message []byte) (rest []byte, arguments json.RawMessage, ok bool) {
	s := jsontext.NewScanner(message)
	var end, params, given int
	walked := s.Object(func(name []byte) bool {
		if !bytes.EqualFold(name, []byte("params")) {
			return s.Value() != nil
		}
		params++
		return string(name) == "params" && s.Object(func(name []byte) bool {
			value := s.Value()
			if bytes.EqualFold(name, []byte("arguments")) {
				given++
				arguments, end = value, s.At()
				return string(name) == "arguments" && value != nil && value[0] == '{'
			}
			return value != nil
		})
	})
	if !walked || !s.End() || params != 1 || given != 1 {
		return nil, nil, false
	}
	return slices.Concat(message[:end-len(arguments)], []byte("{}"), message[end:]), arguments, true
}
