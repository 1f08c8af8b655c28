package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// What the library would answer with the words of its decoder, or take for something that others read in another way.

// ByteOrderMark begins what some programs write as UTF-8.
var ByteOrderMark = []byte("\uFEFF")

// notUTF8 says what a message is that cannot be read as text.
func notUTF8(message []byte) string {
	if bytes.IndexByte(message, 0) >= 0 {
		return "the message is not valid UTF-8: it looks like UTF-16, send UTF-8"
	}
	return "the message is not valid UTF-8"
}

// notJSON says what is the matter with a message that is none, as far as that can be guessed; err is the decoder's.
func notJSON(message []byte, err error) string {
	const text = "the message is not valid JSON"
	start := bytes.ToLower(message[:min(len(message), 32)])
	isHeader := func(head string) bool { return bytes.HasPrefix(start, []byte(head)) }
	switch {
	case bytes.HasPrefix(message, ByteOrderMark):
		return text + ": it begins with a byte order mark, leave that out"
	case bytes.IndexByte(message, 0) >= 0:
		return text + ": there are NUL bytes in it, as in UTF-16; send UTF-8"
	case slices.ContainsFunc([]string{"content-length:", "content-type:", "post /", "get /"}, isHeader):
		return text + ": it looks like a header. Over stdio each message is a line of its own, with no header before it"
	case strings.Contains(err.Error(), "max depth"):
		return text + " to this server: its lists and objects are nested too deeply"
	}
	return text
}

// members are the names in a message that say what it asks for.
var members = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// paramMembers are those in the params of a call.
var paramMembers = []string{"name", "arguments", "_meta", "requestState", "inputResponses", "requestId"}

// ambiguous returns a member that a message has twice, or in another spelling. The decoder accepts any spelling and takes the last; a
// program between the client and the host that judges messages may take another.
func ambiguous(message []byte) string {
	var params json.RawMessage
	name := twice(message, members, func(name string, value json.RawMessage) {
		if name == "params" {
			params = value
		}
	})
	if name == "" && len(params) > 0 && params[0] == '{' {
		if name = twice(params, paramMembers, func(string, json.RawMessage) {}); name != "" {
			name = "params." + name
		}
	}
	return name
}

// twice returns the first name in an object that is one of known in another spelling, or that came before. each gets the known ones.
func twice(object []byte, known []string, each func(name string, value json.RawMessage)) string {
	var seen []string
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return "" // others say that it is no JSON
		}
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			continue
		}
		if !slices.Contains(known, name) || slices.Contains(seen, name) {
			return name
		}
		seen = append(seen, name)
		each(name, value)
	}
	return ""
}
