// Package agent reads the output of agents that run without a person, and the files that define agents.
package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// An Event is the content of one line of the output of an agent.
type Event struct {
	// Session is the name under which the agent can be continued.
	Session string
	// Text is a text of the agent: the last text is its answer. Append adds it to the text before.
	Text   string
	Append bool
	// Calls are the tool calls that begin, as "Read(main.go)".
	Calls []string
	// Turn says that the model has given another answer.
	Turn bool
	// Tokens are those used since the last event; All says that they are those of the whole run.
	Tokens int
	All    bool
	// Done says that the answer is complete, and Failed that it is an error.
	Done, Failed bool
}

// A Parser reads the lines of one run.
type Parser func(line []byte) Event

// formats are the known outputs.
var formats = map[string]func() Parser{
	"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode,
	"text": func() Parser { return func(line []byte) Event { return Event{Text: string(line), Append: true} } },
}

// jsonlPrefix begins the name of a format of which a path is known.
const jsonlPrefix = "jsonl:"

// NewParser returns a parser for a format: claude, codex, gemini, opencode, text, or jsonl:PATH, where PATH names the
// text in each line, such as message.text.
func NewParser(format string) (Parser, error) {
	if path, ok := strings.CutPrefix(format, jsonlPrefix); ok && path != "" {
		keys := strings.Split(path, ".")
		return func(line []byte) Event {
			text := decode(line).get(keys...).text()
			return Event{Text: text, Turn: text != ""}
		}, nil
	}
	if f := formats[format]; f != nil {
		return f(), nil
	}
	return nil, fmt.Errorf("parse: expected text or jsonl:PATH, such as jsonl:message.text, got %q", format)
}

// A value is a JSON value; its methods treat missing members as empty.
type value struct{ any }

func decode(line []byte) value {
	var v any
	_ = json.Unmarshal(line, &v) // what is not JSON tells nothing
	return value{v}
}

func (v value) get(keys ...string) value {
	for _, key := range keys {
		switch of := v.any.(type) {
		case map[string]any:
			v = value{of[key]}
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(of) {
				return value{}
			}
			v = value{of[n]}
		default:
			return value{}
		}
	}
	return v
}

func (v value) text() string {
	s, _ := v.any.(string)
	return s
}

func (v value) list() (all []value) {
	items, _ := v.any.([]any)
	for _, item := range items {
		all = append(all, value{item})
	}
	return all
}

// sum adds the numbers of these members.
func (v value) sum(keys ...string) (n int) {
	for _, key := range keys {
		f, _ := v.get(key).any.(float64)
		n += int(min(max(f, 0), 1e12))
	}
	return n
}

// mainArguments are the most informative arguments of calls, in order.
var mainArguments = []string{"file_path", "path", "filePath", "absolute_path", "command", "cmd", "pattern", "query",
	"url", "description", "prompt"}

// maxCall is the longest text of a call, in characters.
const maxCall = 120

// call is a tool call in one line.
func call(tool string, input value) string {
	tool = tool[strings.LastIndex(tool, "__")+1:]
	what := ""
	for _, name := range mainArguments {
		if what = input.get(name).text(); what != "" {
			break
		}
	}
	line := strings.TrimPrefix(tool, "_") + "(" + what + ")"
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	if r := []rune(line); len(r) > maxCall {
		line = string(r[:maxCall-1]) + "…"
	}
	return line
}

// claude reads the stream-json of Claude Code and Qwen Code: a line for each part of a message.
func claude() Parser {
	message := ""
	return func(line []byte) (e Event) {
		v := decode(line)
		e.Session = v.get("session_id").text()
		switch v.get("type").text() {
		case "assistant":
			if v.get("parent_tool_use_id").text() != "" {
				return e
			}
			for _, part := range v.get("message", "content").list() {
				switch part.get("type").text() {
				case "text":
					e.Text += part.get("text").text()
				case "tool_use":
					e.Calls = append(e.Calls, call(part.get("name").text(), part.get("input")))
				}
			}
			if id := v.get("message", "id").text(); id == "" || id != message {
				message, e.Turn = id, true
				e.Tokens = claudeTokens(v.get("message", "usage"))
			}
		case "result":
			e.Done = true
			e.Text = v.get("result").text()
			failed, _ := v.get("is_error").any.(bool)
			e.Failed = failed || v.get("subtype").text() != "success"
			if e.Failed && e.Text == "" {
				e.Text = strings.Join(texts(v.get("errors").list()), "\n")
			}
			e.Tokens = claudeTokens(v.get("usage"))
			e.All = e.Tokens > 0
		}
		return e
	}
}

func claudeTokens(usage value) int {
	return usage.sum("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
}

func texts(all []value) (list []string) {
	for _, v := range all {
		if s := v.text(); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// codex reads the output of codex exec --json.
func codex() Parser {
	return func(line []byte) (e Event) {
		v := decode(line)
		item := v.get("item")
		switch v.get("type").text() {
		case "thread.started":
			e.Session = v.get("thread_id").text()
		case "item.started":
			switch item.get("type").text() {
			case "mcp_tool_call":
				e.Calls, e.Turn = []string{call(item.get("tool").text(), item.get("arguments"))}, true
			case "command_execution", "file_change", "web_search":
				e.Calls, e.Turn = []string{call(item.get("type").text(), item)}, true
			}
		case "item.completed":
			if item.get("type").text() == "agent_message" {
				e.Text, e.Turn = item.get("text").text(), true
			}
		case "turn.completed":
			e.Done, e.Tokens = true, v.get("usage").sum("input_tokens", "output_tokens")
		case "turn.failed":
			e.Done, e.Failed, e.Text = true, true, v.get("error", "message").text()
		}
		return e
	}
}

// gemini reads the stream-json of Gemini CLI: texts come in pieces.
func gemini() Parser {
	within := false
	return func(line []byte) (e Event) {
		v := decode(line)
		e.Session = v.get("session_id").text()
		switch v.get("type").text() {
		case "message":
			if v.get("role").text() == "assistant" {
				e.Text, e.Append, e.Turn = v.get("content").text(), within, !within
				within = true
			}
		case "tool_use":
			e.Calls, e.Turn, within = []string{call(v.get("tool_name").text(), v.get("parameters"))}, !within, false
		case "result":
			e.Done, e.Failed = true, v.get("status").text() != "success"
			if e.Failed {
				e.Text = v.get("error", "message").text()
			}
			e.Tokens = v.get("stats").sum("total_tokens")
			e.All = e.Tokens > 0
		}
		return e
	}
}

// opencode reads the output of opencode run --format json.
func opencode() Parser {
	return func(line []byte) (e Event) {
		v := decode(line)
		part := v.get("part")
		e.Session = v.get("sessionID").text()
		switch v.get("type").text() {
		case "text":
			e.Text = part.get("text").text()
		case "tool_use", "tool":
			e.Calls = []string{call(part.get("tool").text(), part.get("state", "input"))}
		case "step_finish":
			tokens := part.get("tokens")
			e.Turn, e.Tokens = true, tokens.sum("input", "output", "reasoning")+tokens.get("cache").sum("read", "write")
		case "error":
			e.Failed = true
			for _, path := range [][]string{{"error", "data", "message"}, {"error", "message"}, {"error", "name"}} {
				if e.Text == "" {
					e.Text = v.get(path...).text()
				}
			}
		}
		return e
	}
}
