package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A modelCall is what the model of a test calls, and what it must be shown then.
type modelCall struct{ tool, args, want string }

var modelCalls = []modelCall{
	{"Read", `{"file_path":"a.txt"}`, "     1→first line"},
	{"Edit", `{"file_path":"a.txt","old_string":"first","new_string":"edited"}`, "+edited line"},
	{"Bash", `{"command":"cat a.txt; exit 3"}`, "edited line"},
	{"Bash", `{"command":"cat .env"}`, "Read(.env)"},
	{"Grep", `{"pattern":"edited","output_mode":"content"}`, "a.txt:1:edited line"},
	{"Glob", `{"pattern":"**/*.txt"}`, "a.txt"},
	{"Write", `{"file_path":"b.txt","content":"b\n"}`, "Created"},
	{"Read", `{"file_path":".env"}`, "Read(.env)"},
	{"Write", `{"file_path":".env","content":"changed\n"}`, "Read(.env)"},
	{"Read", `{"file_path":"long.txt"}`, "Go on with offset="},
	{"Bash", `{"command":"seq 5000; echo the end; exit 1"}`, "the end"},
}

// firstRequests are words that the first request of a client which offers tools must hold: of our schemas, or of the instructions that
// name our tools to a model that has to search for them.
var (
	schemas = []string{"file_path", "old_string", "run_in_background", "output_mode", "content"}
	naming  = []string{"Read (read a file)", "Edit (edit a file)", "Write (write a file)", "Bash (run a shell command)", "Glob (find files by name)", "Grep (search file contents)"}
)

// A scripted model makes calls one after the other.
type scripted struct {
	calls []modelCall

	mu    sync.Mutex
	shown []string // what it was shown of the results, in the last request
	first string   // the first request that offers tools
}

// noting notes the first request that offers tools.
func (m *scripted) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		var req struct{ Tools []json.RawMessage }
		if m.mu.Lock(); m.first == "" && json.Unmarshal(body, &req) == nil && len(req.Tools) > 0 {
			m.first = string(body)
		}
		m.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// next notes what the results in a request are, and returns the call to be answered with; none after the last.
func (m *scripted) next(shown []string) (n int, call modelCall, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(shown) > len(m.shown) {
		m.shown = shown
	}
	if len(shown) >= len(m.calls) {
		return 0, modelCall{}, false
	}
	return len(shown), m.calls[len(shown)], true
}

func (m *scripted) check(t testing.TB) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.shown) != len(m.calls) {
		t.Fatalf("the model was shown %d results of %d: %q", len(m.shown), len(m.calls), m.shown)
	}
	for i, call := range m.calls {
		if !strings.Contains(strings.ToLower(m.shown[i]), strings.ToLower(call.want)) {
			t.Errorf("%s %s: the model was not shown %q but\n%s", call.tool, call.args, call.want, m.shown[i])
		}
		if cut := regexp.MustCompile(`(?i)truncated|too large|persisted`).FindString(m.shown[i]); cut != "" {
			t.Errorf("%s %s: the client cut the result (%s)\n%s", call.tool, call.args, cut, m.shown[i])
		}
		if strings.Contains(m.shown[i], "SECRET") {
			t.Errorf("%s %s shows what is denied", call.tool, call.args)
		}
	}
}

// texts are the strings in a JSON value that stand under "text", or are the value itself.
func texts(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(v, &parts) // other parts have none
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// An eventWriter writes server-sent events that carry their own name.
type eventWriter struct{ w io.Writer }

func (e eventWriter) event(name string, fields map[string]any) {
	fields["type"] = name
	data, _ := json.Marshal(fields)
	fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, data)
}

// anthropicAPI is as much of Anthropic's Messages API as Claude Code needs.
func anthropicAPI(m *scripted) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string
			Tools    []json.RawMessage
			Messages []struct{ Content json.RawMessage }
		}
		if body, _ := io.ReadAll(r.Body); !strings.HasSuffix(r.URL.Path, "/messages") || json.Unmarshal(body, &req) != nil {
			fmt.Fprint(w, `{"input_tokens":1}`)
			return
		}
		var shown []string
		for _, message := range req.Messages {
			var blocks []struct {
				Type    string
				Content json.RawMessage
			}
			_ = json.Unmarshal(message.Content, &blocks) // a plain text has none
			for _, block := range blocks {
				if block.Type == "tool_result" {
					shown = append(shown, texts(block.Content))
				}
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		e := eventWriter{w}
		e.event("message_start", map[string]any{"message": map[string]any{
			"id": "m", "type": "message", "role": "assistant", "model": req.Model, "content": []any{}, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
		}})
		block, delta, reason := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "done"}, "end_turn"
		if n, call, ok := m.next(shown); ok && len(req.Tools) > 0 {
			block = map[string]any{"type": "tool_use", "id": fmt.Sprint("toolu_", n), "name": "mcp__toolhost__" + call.tool, "input": map[string]any{}}
			delta, reason = map[string]any{"type": "input_json_delta", "partial_json": call.args}, "tool_use"
		}
		e.event("content_block_start", map[string]any{"index": 0, "content_block": block})
		e.event("content_block_delta", map[string]any{"index": 0, "delta": delta})
		e.event("content_block_stop", map[string]any{"index": 0})
		e.event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason}, "usage": map[string]int{"output_tokens": 1}})
		e.event("message_stop", map[string]any{})
	})
}

// openaiAPI is as much of OpenAI's Responses API as Codex needs.
func openaiAPI(m *scripted) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Input []struct {
				Type   string
				Output json.RawMessage
			}
		}
		if body, _ := io.ReadAll(r.Body); !strings.HasSuffix(r.URL.Path, "/responses") || json.Unmarshal(body, &req) != nil {
			fmt.Fprint(w, `{"data":[],"models":[]}`)
			return
		}
		var shown []string
		for _, item := range req.Input {
			if item.Type == "function_call_output" {
				shown = append(shown, texts(item.Output))
			}
		}
		item := map[string]any{"type": "message", "id": "m", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "done"}}}
		if n, call, ok := m.next(slices.Clone(shown)); ok {
			item = map[string]any{
				"type": "function_call", "id": fmt.Sprint("fc_", n), "call_id": fmt.Sprint("call_", n), "namespace": "mcp__toolhost", "name": call.tool, "arguments": call.args,
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		e := eventWriter{w}
		e.event("response.created", map[string]any{"response": map[string]any{"id": "r"}})
		e.event("response.output_item.done", map[string]any{"item": item, "output_index": 0})
		e.event("response.completed", map[string]any{"response": map[string]any{"id": "r", "usage": map[string]any{
			"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": nil, "output_tokens_details": nil,
		}}})
	})
}
