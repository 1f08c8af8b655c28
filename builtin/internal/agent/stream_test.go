package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParsers has the lines that tell something in each format, in one run each.
func TestParsers(t *testing.T) {
	for format, lines := range map[string][]struct {
		line string
		want Event
	}{
		"claude": {
			{`{"type":"system","subtype":"init","session_id":"s"}`, Event{Session: "s"}},
			{`{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}}`, Event{Text: "a", Turn: true, Tokens: 6}},
			{`{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","name":"mcp__toolhost__Read","input":{"file_path":"a\nb"}}],"usage":{"input_tokens":2}}}`, Event{Calls: []string{"Read(a b)"}}},
			{`{"type":"assistant","parent_tool_use_id":"t","message":{"id":"2","content":[{"type":"text","text":"of its own agent"}]}}`, Event{}},
			{`{"type":"result","subtype":"success","result":"done","usage":{"input_tokens":9,"output_tokens":1}}`, Event{Text: "done", Done: true, Tokens: 10, All: true}},
			{`{"type":"result","subtype":"success","is_error":true,"result":"Please run /login"}`, Event{Text: "Please run /login", Done: true, Failed: true}},
			{`{"type":"result","subtype":"error_during_execution","errors":["one",2,"two"]}`, Event{Text: "one\ntwo", Done: true, Failed: true}},
			{`{"type":"result","subtype":"success","result":"x","usage":{"input_tokens":-5,"output_tokens":1e300}}`, Event{Text: "x", Done: true, Tokens: 1e12, All: true}},
		},
		"codex": {
			{`{"type":"thread.started","thread_id":"s"}`, Event{Session: "s"}},
			{`{"type":"item.started","item":{"type":"mcp_tool_call","tool":"Grep","arguments":{"pattern":"x"}}}`, Event{Calls: []string{"Grep(x)"}, Turn: true}},
			{`{"type":"item.started","item":{"type":"command_execution","command":"ls"}}`, Event{Calls: []string{"command_execution(ls)"}, Turn: true}},
			{`{"type":"item.completed","item":{"type":"agent_message","text":"done"}}`, Event{Text: "done", Turn: true}},
			{`{"type":"turn.completed","usage":{"input_tokens":2,"output_tokens":1}}`, Event{Done: true, Tokens: 3}},
			{`{"type":"turn.failed","error":{"message":"no login"}}`, Event{Text: "no login", Done: true, Failed: true}},
		},
		"gemini": {
			{`{"type":"init","session_id":"s"}`, Event{Session: "s"}},
			{`{"type":"message","role":"user","content":"go"}`, Event{}},
			{`{"type":"message","role":"assistant","content":"a"}`, Event{Text: "a", Turn: true}},
			{`{"type":"message","role":"assistant","content":"b"}`, Event{Text: "b", Append: true}},
			{`{"type":"tool_use","tool_name":"mcp_toolhost_Read","parameters":{"file_path":"f"}}`, Event{Calls: []string{"mcp_toolhost_Read(f)"}}},
			{`{"type":"message","role":"assistant","content":"c"}`, Event{Text: "c", Turn: true}},
			{`{"type":"result","status":"success","stats":{"total_tokens":7}}`, Event{Done: true, Tokens: 7, All: true}},
			{`{"type":"result","status":"error","error":{"message":"quota"}}`, Event{Text: "quota", Done: true, Failed: true}},
		},
		"opencode": {
			{`{"type":"text","sessionID":"s","part":{"text":"a"}}`, Event{Session: "s", Text: "a"}},
			{`{"type":"tool_use","part":{"tool":"toolhost_Read","state":{"input":{"file_path":"f"}}}}`, Event{Calls: []string{"toolhost_Read(f)"}}},
			{`{"type":"step_finish","part":{"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}`, Event{Turn: true, Tokens: 15}},
			{`{"type":"error","error":{"name":"APIError","data":{"message":"no key"}}}`, Event{Text: "no key", Failed: true}},
			{`{"type":"error","error":{"name":"APIError"}}`, Event{Text: "APIError", Failed: true}},
		},
		"jsonl:a.0.b": {
			{`{"a":[{"b":"x"}]}`, Event{Text: "x", Turn: true}},
			{`{"a":{"b":"x"}}`, Event{}},
			{`{"a":[]}`, Event{}},
		},
		"text": {{"any", Event{Text: "any", Append: true}}},
	} {
		parse, err := NewParser(format)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if diff := cmp.Diff(l.want, parse([]byte(l.line))); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", format, l.line, diff)
			}
		}
	}
}

// TestParsersJunk has lines that no runner prints: they tell nothing, and none fails the host.
func TestParsersJunk(t *testing.T) {
	for format := range formats {
		if format == "text" {
			continue
		}
		for _, line := range []string{"", "Error: x", "{", "null", "[]", "3", `"x"`, `{"type":3}`, `{"type":"none"}`, `{"type":["result"]}`,
			`{"type":"assistant","message":[],"session_id":{}}`, `{"type":"text","part":"x"}`, `{"type":"item.started","item":[{}]}`,
			strings.Repeat("[", 20_000), `{"type":"` + strings.Repeat("x", 1<<20) + `"}`} {
			parse, err := NewParser(format)
			if err != nil {
				t.Fatal(err)
			}
			if e := parse([]byte(line)); e.Text != "" || e.Session != "" || len(e.Calls) > 0 || e.Done || e.Failed ||
				e.Tokens != 0 {
				t.Errorf("%s: %.100s tells %+v", format, line, e)
			}
		}
	}
	for _, format := range []string{"", "words", "jsonl", "jsonl:", "Claude"} {
		if _, err := NewParser(format); err == nil || !strings.Contains(err.Error(), "expected text or jsonl:PATH") {
			t.Errorf("%q: got error %v", format, err)
		}
	}
}
