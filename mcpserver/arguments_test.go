package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// oddArguments are messages around the question what the arguments of a call are. cut is what is taken out; "" is nothing.
var oddArguments = []struct{ message, cut string }{
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"}}}`, `{"file_path":"a.txt"}`},
	{" {\t\"params\" : { \"arguments\" : {\"file_path\" : \"a.txt\" } ,\"name\":\"Read\"},\"method\":\"tools/call\",\"id\":1,\"jsonrpc\":\"2.0\"}\r\n", `{"file_path" : "a.txt" }`},
	{call(`"name":"Read","arguments":{}`), `{}`},
	{call(`"name":"Read","arguments":{"file_path":"a\\\"}.txt","limit":1}`), `{"file_path":"a\\\"}.txt","limit":1}`},
	{call(`"name":"Read","arguments":{"file_path":"a.txt","file_path":"b.txt"}`), `{"file_path":"a.txt","file_path":"b.txt"}`},
	{call(`"name":"Read","arguments":{"file_path":"a.txt","limit":9007199254740993}`), `{"file_path":"a.txt","limit":9007199254740993}`},
	{call(`"name":"Read","arguments":{"file_path":"\ud800"}`), `{"file_path":"\ud800"}`},
	{call(`"name":"Read","arguments":{"file_path":{"arguments":[{"params":"]}"},null,true,-1.5]}}`), `{"file_path":{"arguments":[{"params":"]}"},null,true,-1.5]}}`},
	{call(`"name":"Read","_meta":{"arguments":{"file_path":"b.txt"}},"arguments":{"file_path":"a.txt"}`), `{"file_path":"a.txt"}`},
	{call(`"name":"Read","arguments":{"file_path":"a.txt"},"_meta":5`), ""}, // no envelope
	{call(`"name":"Read","arguments":null`), ""},
	{call(`"name":"Read"`), ""},
	{call(`"name":"Read","arguments":[]`), ""},
	{call(`"name":"Read","arguments":"{\"file_path\":\"a.txt\"}"`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a.txt"},"arguments":{"file_path":"b.txt"}`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a.txt"},"Arguments":{"file_path":"b.txt"}`), ""},
	{call(`"name":"Read","argument\u0073":{"file_path":"b.txt"},"arguments":{"file_path":"a.txt"}`), ""},
	{call(`"name":"Read","argumentſ":{"file_path":"b.txt"},"arguments":{"file_path":"a.txt"}`), ""},
	{call(`"name":"Read","ARGUMENTS":{"file_path":"a.txt"}`), ""},
	{call(`"name":"Read","arguments":{"limit":1e400}`), ""},
	{call(`"name":"Read","arguments":{"limit":` + strings.Repeat("9", 400) + `}`), ""},
	{call(`"name":"Read","arguments":{"file_path":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a.txt"`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a.txt",}`), ""},
	{call(`"name":"Read","arguments":{"file_path":[}}`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a.txt"}}`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a` + "\n" + `.txt"}`), ""},
	{call(`"name":"Read","arguments":,{"file_path":"a.txt"}`), ""},
	{call(`"name":"Read","arguments":{"file_path":"a.txt"}`) + "x", ""},
	{`[` + call(`"name":"Read","arguments":{"file_path":"a.txt"}`) + `]`, ""},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{}},"params":{"name":"Read","arguments":{"file_path":"a.txt"}}}`, ""},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"Read","arguments":{"file_path":"a.txt"}}}`, ""},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, ""},
	{`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"Read","arguments":{"file_path":"a.txt"}}}`, ""},
	{`{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"}}}`, `{"file_path":"a.txt"}`},
	{``, ""}, {`{`, ""}, {`{}`, ""}, {`{"params":{"arguments":`, ""}, {`{"a"`, ""}, {`"params"`, ""},
}

func call(params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`
}

// Calls that are answered past the library, and some that must not be.
func TestPlainCall(t *testing.T) {
	same := sameAnswers(t)
	const read = `"name":"Read","arguments":{"file_path":"a.txt"}`
	for _, c := range []struct {
		message string
		plain   bool
	}{
		{call(read), true},
		{" {\t\"params\" : { \"arguments\" : {\"file_path\" : \"a.txt\" } ,\"name\":\"Read\"},\"method\":\"tools/call\",\"id\":1,\"jsonrpc\":\"2.0\"}\r\n", true},
		{`{"jsonrpc":"2.0","id":"an id","method":"tools/call","params":{` + read + `}}`, true},
		{`{"jsonrpc":"2.0","id":"<&>","method":"tools/call","params":{` + read + `}}`, true},
		{call(read + `,"_meta":{"progressToken":7,"claudecode/toolUseId":"x"}`), true},
		{call(read + `,"_meta":{"progressToken":"p","progressToken":"q"}`), true},
		{call(read + `,"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`), true},
		{call(`"name":"Read","arguments":{"file_path":"none.txt"}`), true},
		{call(`"name":"Read","arguments":{"path":5}`), true},
		{call(`"name":"Read","arguments":{}`), true},
		{call(read + `,"_meta":{"` + mcp.MetaKeyProtocolVersion + `":"2026-07-28","` + mcp.MetaKeyClientCapabilities + `":{}}`), false},
		{call(read + `,"_meta":{"` + mcp.MetaKeyProtocolVersion + `":"2025-11-25"}`), false},
		{call(read + `,"_meta":null`), false},
		{call(read + `,"_meta":{},"_meta":{"progressToken":1}`), false},
		{call(read + `,"task":{"ttl":1}`), false},
		{call(read + `,"requestState":"x"`), false},
		{call(read + `,"name":"Write"`), false},
		{call(`"name":"Re\u0061d","arguments":{"file_path":"a.txt"}`), false},
		{call(`"name":5,"arguments":{"file_path":"a.txt"}`), false},
		{call(`"name":"Read"`), false},
		{call(`"name":"Read","arguments":[]`), false},
		{call(`"name":"Read","arguments":{"file_path":"a.txt",}`), false},
		{call(read) + "{}", false},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + read + `},"more":1}`, false},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":-0,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":01,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + read + `}}`, false},
		{`{"id":1,"method":"tools/call","params":{` + read + `}}`, false},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{` + read + `}}`, false},
	} {
		if _, plain := jsonrpc.Plain([]byte(c.message)); plain != c.plain {
			t.Errorf("%.200q: plain is %v", c.message, plain)
		}
		same(t, c.message)
	}
}

func TestCutArguments(t *testing.T) {
	same := sameAnswers(t)
	for _, c := range oddArguments {
		m, _ := jsonrpc.Decode([]byte(c.message))
		if string(m.Arguments) != c.cut {
			t.Errorf("%.120q: cut %q, want %q", c.message, m.Arguments, c.cut)
		}
		same(t, c.message)
	}
}

// Whatever message comes, what is told of it and what it is answered with does not depend on whether its arguments were cut out.
func FuzzArguments(f *testing.F) {
	for _, c := range oddArguments {
		f.Add(c.message)
	}
	same := sameAnswers(f)
	f.Fuzz(func(t *testing.T, message string) { same(t, message) })
}

// sameJSON reports whether two texts are the same value.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatalf("%v: %.400s, %.400s", err, a, b)
	}
	return reflect.DeepEqual(x, y)
}

// sameAnswers returns a comparison of the ways of a message: whole, without its arguments, and past the library.
func sameAnswers(tb testing.TB) func(t *testing.T, message string) {
	h, _ := openHost(tb, map[string]string{"a.txt": "a\n", "b.txt": "b\n"}, harmless)
	s, err := NewServer(h)
	if err != nil {
		tb.Fatal(err)
	}
	answer := func(t *testing.T, m jsonrpc.Envelope, message []byte, arguments json.RawMessage) string {
		ctx, c := admitted(t, s, m)
		defer c.admission.Leave()
		c.arguments = arguments
		encoded, err := json.Marshal(s.mcp.HandleMessage(ctx, message))
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	past := func(t *testing.T, m jsonrpc.Envelope) string {
		ctx, c := admitted(t, s, m)
		defer c.admission.Leave()
		c.arguments = m.Arguments
		encoded, err := jsonrpc.Encode(c.answerCall(ctx))
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	return func(t *testing.T, message string) {
		var whole jsonrpc.Envelope
		wholeErr := json.Unmarshal([]byte(message), &whole)
		m, err := jsonrpc.Decode([]byte(message))
		if (err == nil) != (wholeErr == nil) {
			t.Fatalf("%.200q: %v, and whole %v", message, err, wholeErr)
		}
		if m.Arguments == nil {
			if string(m.Rest) != message {
				t.Fatalf("%.200q: nothing was cut, %.200q is left", message, m.Rest)
			}
			return
		}
		rest, arguments := m.Rest, m.Arguments
		m.Rest, m.Arguments = nil, nil
		if !reflect.DeepEqual(m, whole) {
			t.Errorf("%.200q: %+v, whole %+v", message, m, whole)
		}
		var seen mcp.CallToolRequest
		if err := json.Unmarshal([]byte(message), &seen); err != nil ||
			string(seen.Params.RawArguments) != string(arguments) {
			t.Errorf("%.200q: %.200q was cut, the library sees %.200q: %v", message, arguments,
				seen.Params.RawArguments, err)
		}
		if _, f := jsonrpc.Open([]byte(message)); f != nil || m.ID == nil || strings.Contains(m.Params.Name, "p") {
			return // the library does not get it, or it is Glob or Grep, which may take long
		}
		want := answer(t, whole, []byte(message), nil)
		if cut := answer(t, m, rest, arguments); cut != want {
			t.Errorf("%.200q\ncut:   %.400s\nwhole: %.400s", message, cut, want)
		}
		p, ok := jsonrpc.Plain([]byte(message))
		if !ok || !newCall(s, p).needsNoLibrary() {
			return
		}
		if string(p.ID) != string(m.ID) || p.Method != m.Method || p.Params.Name != m.Params.Name ||
			!reflect.DeepEqual(p.Params.Meta, m.Params.Meta) {
			t.Errorf("%.200q: %+v past the library, %+v", message, p, m)
		}
		if got := past(t, p); !sameJSON(t, got, want) {
			t.Errorf("%.200q\npast the library: %.400s\nthrough it:       %.400s", message, got, want)
		}
	}
}

// admitted returns a call that was admitted, and the context that it runs in.
func admitted(t *testing.T, s *Server, m jsonrpc.Envelope) (context.Context, *message) {
	c := newCall(s, m)
	ctx, _, err := c.Admit(t.Context(), transport.Peer{Transport: transport.Stdio, Who: Local()})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, c
}

// newCall returns a call as [adapter.Open] does.
func newCall(s *Server, m jsonrpc.Envelope) *message {
	m.Method = jsonrpc.MethodCall
	return &message{adapter: adapter{Server: s}, Envelope: m, tool: s.host.tools.resolve(m.Params.Name)}
}
