package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// copilotArgs make Copilot CLI work for a model elsewhere. It reads its servers from a file only.
func copilotArgs(url, home string) (args, env []string) {
	if !writeConfig(filepath.Join(home, ".copilot", "mcp-config.json"), map[string]any{
		"mcpServers": map[string]any{"toolhost": map[string]any{"type": "local", "command": binary, "args": hostArgs(), "tools": []string{"*"}}},
	}) {
		return nil, nil // the client fails without it, and says so
	}
	return []string{"-p", "go", "--allow-all-tools", "--allow-all-paths"}, []string{
		"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_MODEL=gpt-4.1", "COPILOT_OFFLINE=true",
	}
}

// opencodeArgs make opencode work for a model elsewhere.
func opencodeArgs(url, home string) (args, env []string) {
	file := filepath.Join(home, "opencode.json")
	if !writeConfig(file, map[string]any{
		"model": "none/none",
		"mcp":   map[string]any{"toolhost": map[string]any{"type": "local", "command": append([]string{binary}, hostArgs()...), "enabled": true}},
		"provider": map[string]any{"none": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]string{"baseURL": url + "/v1", "apiKey": "none"},
			"models": map[string]any{"none": map[string]string{"name": "none"}},
		}},
	}) {
		return nil, nil
	}
	return []string{"run", "go"}, []string{"OPENCODE_CONFIG=" + file}
}

func writeConfig(file string, config map[string]any) bool {
	data, err := json.Marshal(config)
	return err == nil && os.MkdirAll(filepath.Dir(file), 0o700) == nil && os.WriteFile(file, data, 0o600) == nil
}

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
		if strings.HasPrefix(t.Function.Name, "toolhost") && strings.HasSuffix(t.Function.Name, tool) && !strings.HasSuffix(t.Function.Name, "Notebook"+tool) {
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
