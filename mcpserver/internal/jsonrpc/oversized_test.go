package jsonrpc

import (
	"encoding/json"
	"testing"
)

func TestOversized(t *testing.T) {
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":8,"x":"}"}}`:       `7`,
		`{"method":"tools/call","params":{"a":[{"id":1}],"b":"\"id\":2"},"id":"a,b\"}"}`: `"a,b\"}"`,
		` { "method" : "x" , "params" : [ 1, 2 ], "id" : -3 } `:                          `-3`,
		`{"\u0069d":5,"method":"x"}`:                                                     `5`,
		`{"id":5,"method":"x","params":"`:                                                `5`,
		`{"id":5,"result":{"method":"x"}}`:                                               ``, // a response
		`{"id":5,"id":6,"method":"x"}`:                                                   ``,
		`{"id":5,"method":"x","ID":6}`:                                                   `5`,
		`{"id":1.5,"method":"x"}`:                                                        ``,
		`{"id":{"id":1},"method":"x"}`:                                                   ``,
		`{"id":[1],"method":"x"}`:                                                        ``,
		`{"id":null,"method":"x"}`:                                                       ``,
		`{"id":tru"e,"method":"x"}`:                                                      ``,
		`{"method":"x","params":{}}`:                                                     ``,
		`[{"id":1,"method":"x"}]`:                                                        ``,
		`"id":1,"method":"x"`:                                                            ``,
		`}{"id":1,"method":"x"}`:                                                         ``,
		``:                                                                               ``,
	} {
		var whole, pieces Oversized
		whole.Write([]byte(message))
		for i := range len(message) {
			pieces.Write([]byte(message[i : i+1]))
		}
		if got := string(whole.ID()); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
		if got := string(pieces.ID()); got != want {
			t.Errorf("%s byte by byte: got %q, want %q", message, got, want)
		}
	}
}

// FuzzOversized compares the id with that of the decoder.
func FuzzOversized(f *testing.F) {
	f.Add(`{"id":1,"method":"x","params":{"a":"\\\""}}`)
	f.Add(`{"method":"x","params":[],"id":"\u00e9"}`)
	f.Fuzz(func(t *testing.T, message string) {
		var o Oversized
		o.Write([]byte(message))
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(message), &members) != nil || o.ids > 1 || members["method"] == nil ||
			len(members["id"]) > maxMember {
			return
		}
		if want := usable(members["id"]); string(o.ID()) != string(want) {
			t.Errorf("%q: got %q, want %q", message, o.ID(), want)
		}
	})
}
