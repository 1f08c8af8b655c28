package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chatRequest is a request for an answer, as far as it tells of tools and their results.
type chatRequest struct {
	Tools    []struct{ Function struct{ Name string } }
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
}

// named is the name by which the client offers a tool of toolhost.
func (r chatRequest) named(tool string) string {
	for _, t := range r.Tools {
		if strings.Contains(t.Function.Name, "toolhost") && strings.HasSuffix(t.Function.Name, tool) && !strings.HasSuffix(t.Function.Name, "Notebook"+tool) {
			return t.Function.Name
		}
	}
	return tool
}

// chatAPI is as much of OpenAI's Chat Completions API as Copilot CLI and opencode need.
func chatAPI(m *scripted) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req chatRequest
		_ = json.NewDecoder(r.Body).Decode(&req) // what is no such request has no messages
		var shown []string
		for _, message := range req.Messages {
			if message.Role == "tool" {
				shown = append(shown, texts(message.Content))
			}
		}
		delta, reason := map[string]any{"role": "assistant", "content": "done"}, "stop"
		if len(req.Tools) > 0 {
			if n, call, ok := m.next(slices.Clone(shown)); ok {
				function := map[string]string{"name": req.named(call.tool), "arguments": call.args}
				delta, reason = map[string]any{"role": "assistant", "tool_calls": []any{
					map[string]any{"index": 0, "id": fmt.Sprint("call_", n), "type": "function", "function": function},
				}}, "tool_calls"
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []map[string]any{{"index": 0, "delta": delta}, {"index": 0, "delta": map[string]any{}, "finish_reason": reason}} {
			chunk, _ := json.Marshal(map[string]any{
				"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "none", "choices": []any{choice},
				"usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
			})
			fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
}
