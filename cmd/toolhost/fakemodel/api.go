package fakemodel

import (
	"encoding/json"
	"fmt"
	"io"
)

// readMessages reads a request of Anthropic's Messages API.
func readMessages(body []byte) (t Turn, err error) {
	var req struct {
		Tools    []json.RawMessage
		Messages []struct{ Content json.RawMessage }
	}
	err = json.Unmarshal(body, &req)
	for _, message := range req.Messages {
		var blocks []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(message.Content, &blocks) // a plain text has none
		for _, block := range blocks {
			if block.Type == "tool_result" {
				t.Results = append(t.Results, texts(block.Content))
			}
		}
	}
	t.Tools, t.absent = definitions(req.Tools, ""), Tool{Name: "mcp__SERVER__"}
	return t, err
}

func writeMessages(w io.Writer, n int, call *Call) {
	send(w, "message_start", object{"message": object{
		"id": "m", "type": "message", "role": "assistant", "model": "none", "content": []any{}, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}})
	block, delta, reason := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "done"}, "end_turn"
	if call != nil {
		block = object{"type": "tool_use", "id": fmt.Sprint("toolu_", n), "name": call.Tool.Name, "input": object{}}
		delta, reason = object{"type": "input_json_delta", "partial_json": call.Arguments}, "tool_use"
	}
	send(w, "content_block_start", object{"index": 0, "content_block": block})
	send(w, "content_block_delta", object{"index": 0, "delta": delta})
	send(w, "content_block_stop", object{"index": 0})
	send(w, "message_delta", object{"delta": object{"stop_reason": reason}, "usage": object{"output_tokens": 1}})
	send(w, "message_stop", object{})
}

// readResponses reads a request of OpenAI's Responses API.
func readResponses(body []byte) (t Turn, err error) {
	var req struct {
		Tools []json.RawMessage
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	err = json.Unmarshal(body, &req)
	for _, item := range req.Input {
		if item.Type == "function_call_output" || item.Type == "custom_tool_call_output" {
			t.Results = append(t.Results, texts(item.Output))
		}
	}
	t.Tools, t.absent = definitions(req.Tools, ""), Tool{Namespace: "mcp__SERVER"}
	return t, err
}

func writeResponses(w io.Writer, n int, call *Call) {
	item := object{"type": "message", "id": "m", "role": "assistant",
		"content": []any{object{"type": "output_text", "text": "done"}}}
	if call != nil {
		item = object{"type": "function_call", "id": fmt.Sprint("fc_", n), "call_id": fmt.Sprint("call_", n),
			"name": call.Tool.Name, "arguments": call.Arguments}
		if call.Tool.Namespace != "" {
			item["namespace"] = call.Tool.Namespace
		}
	}
	send(w, "response.created", object{"response": object{"id": "r"}})
	send(w, "response.output_item.done", object{"item": item, "output_index": 0})
	send(w, "response.completed", object{"response": object{"id": "r", "usage": object{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": nil, "output_tokens_details": nil,
	}}})
}

// readChat reads a request of OpenAI's Chat Completions API.
func readChat(body []byte) (t Turn, err error) {
	var req struct {
		Tools    []json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	err = json.Unmarshal(body, &req)
	for _, message := range req.Messages {
		if message.Role == "tool" {
			t.Results = append(t.Results, texts(message.Content))
		}
	}
	t.Tools, t.absent = definitions(req.Tools, ""), Tool{Name: "mcp__SERVER__"}
	return t, err
}

func writeChat(w io.Writer, n int, call *Call) {
	delta, reason := object{"role": "assistant", "content": "done"}, "stop"
	if call != nil {
		function := object{"name": call.Tool.Name, "arguments": call.Arguments}
		delta, reason = object{"role": "assistant", "tool_calls": []any{
			object{"index": 0, "id": fmt.Sprint("call_", n), "type": "function", "function": function},
		}}, "tool_calls"
	}
	var usage any // in the last chunk: Continue drops what another with it says
	for _, choice := range []object{{"index": 0, "delta": delta},
		{"index": 0, "delta": object{}, "finish_reason": reason}} {
		send(w, "", object{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "none", "choices": []any{choice}, "usage": usage,
		})
		usage = object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// readGemini reads a request of Google's Gemini API.
func readGemini(body []byte) (t Turn, err error) {
	var req struct {
		Contents []struct {
			Parts []struct {
				FunctionResponse *struct {
					Response struct{ Output, Error string }
				}
			}
		}
		Tools []json.RawMessage
	}
	err = json.Unmarshal(body, &req)
	for _, content := range req.Contents {
		for _, part := range content.Parts {
			if f := part.FunctionResponse; f != nil {
				t.Results = append(t.Results, f.Response.Output+f.Response.Error)
			}
		}
	}
	t.Tools, t.absent = definitions(req.Tools, ""), Tool{Name: "mcp_SERVER_"}
	return t, err
}

// writeGemini gives each call the parameter that Gemini CLI adds to all tools.
func writeGemini(w io.Writer, _ int, call *Call) {
	part := object{"text": "done"}
	if call != nil {
		args := object{}
		_ = json.Unmarshal([]byte(call.Arguments), &args) // an object, as the caller promises
		args["wait_for_previous"] = true
		part = object{"functionCall": object{"name": call.Tool.Name, "args": args}}
	}
	send(w, "", object{
		"candidates":    []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	})
}
