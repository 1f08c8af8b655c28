package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// geminiPart is a part of a message, as far as it tells of the result of a call.
type geminiPart struct {
	FunctionResponse *struct {
		Response struct{ Output, Error string }
	}
}

// geminiAPI is as much of Google's Gemini API as Gemini CLI needs. Every call carries the parameter that it adds to all tools.
func geminiAPI(m *scripted) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Contents []struct{ Parts []geminiPart }
			Tools    []json.RawMessage
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // what is no such request has no contents
		var shown []string
		for _, content := range req.Contents {
			for _, part := range content.Parts {
				if f := part.FunctionResponse; f != nil {
					shown = append(shown, f.Response.Output+f.Response.Error)
				}
			}
		}
		part := map[string]any{"text": "done"}
		if len(req.Tools) > 0 {
			if _, call, ok := m.next(slices.Clone(shown)); ok {
				args := map[string]any{}
				_ = json.Unmarshal([]byte(call.args), &args) // a constant
				args["wait_for_previous"] = true
				part = map[string]any{"functionCall": map[string]any{"name": "mcp_toolhost_" + call.tool, "args": args}}
			}
		}
		answer, _ := json.Marshal(map[string]any{
			"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
			"usageMetadata": map[string]int{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
		})
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\r\n\r\n", answer)
	})
}
