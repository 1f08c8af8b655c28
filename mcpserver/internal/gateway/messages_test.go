package gateway

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestMessagesIn: what servers write where a message is expected.
func TestMessagesIn(t *testing.T) {
	const answer, request, notice = `{"jsonrpc":"2.0","id":1,"result":{"a":"{"}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	for _, tt := range []struct {
		line string
		want int // messages
		odd  bool
	}{
		{answer, 1, false},
		{" " + answer + "\r", 1, false},
		{"\ufeff" + answer, 1, false},
		{"loading..." + answer, 1, true},
		{"[info] {ready} " + answer, 1, true},
		{"\x1b[32mready\x1b[0m" + answer, 1, true},
		{answer + notice, 2, false},
		{"[" + answer + "," + notice + "]", 2, false},
		{"[]", 0, false},
		{"", 0, false},
		{request, 1, false},
		{"received " + request, 0, true}, // a log
		{"received " + notice, 0, true},
		{"sent " + answer + " in 5 ms", 0, true},
		{"sent " + answer + request, 0, true},
		{answer + " done", 0, true},
		{"loading...", 0, true},
		{`{"level":"info","msg":"started"}`, 0, true},
		{`{"level":"info"}` + answer, 1, true},
		{"{not json", 0, true},
		{"Content-Length: 40", 0, true},
		{strings.Repeat("{", 1000) + answer, 0, true},
		{"null", 0, true},
		{"7", 0, true},
	} {
		if all, odd := messagesIn([]byte(tt.line)); len(all) != tt.want || odd != tt.odd {
			t.Errorf("%.80q: %d messages, odd %v", tt.line, len(all), odd)
		}
	}
}

// TestErrorShapes: what servers send as an error, with a result or without one.
func TestErrorShapes(t *testing.T) {
	for _, tt := range []struct{ members, want string }{ // want "": no error
		{`"error":{"code":-32602,"message":"bad"}`, "bad (error -32602)"},
		{`"error":"out of order"`, "out of order"},
		{`"error":"out of order","result":null`, "out of order"},
		{`"error":{"message":"bad"}`, "bad"},
		{`"error":{"code":"E_BUSY","message":"bad"}`, "E_BUSY bad"},
		{`"error":{"code":"-32602","message":"bad"}`, "bad (error -32602)"},
		{`"error":{"code":-32602.0,"message":{"why":"x"}}`, `{"why":"x"} (error -32602)`},
		{`"error":{"code":1}`, `{"code":1} (error 1)`},
		{`"error":{"detail":"bad"}`, `{"detail":"bad"}`},
		{`"error":["a","b"]`, `["a","b"]`},
		{`"error":7`, "7"},
		{`"error":true`, "true"},
		{`"error":{}`, "it gives no reason"},
		{`"error":""`, "it gives no reason"},
		{`"error":null`, "neither a result nor an error"},
		{`"error":null,"result":{}`, ""},
		{`"error":"","result":{}`, ""},
		{`"error":false,"result":{}`, ""},
		{`"error":{},"result":{}`, ""},
	} {
		var m message
		err := json.Unmarshal([]byte(`{"jsonrpc":"2.0","id":1,`+tt.members+`}`), &m)
		if err == nil {
			_, err = m.outcome()
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", tt.members, err)
		}
	}
}
