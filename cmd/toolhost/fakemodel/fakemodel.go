// Package fakemodel plays a model for coding agents, over as much of Anthropic's Messages, OpenAI's Responses and
// Chat Completions, and Google's Gemini API as they need to offer tools and to carry out calls. toolhost verify and
// the tests with real clients use it.
//
// Its Go API is not stable.
package fakemodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxRequest is how much of a request is read, in bytes.
const maxRequest = 64 << 20

// A Tool is one that a client offers.
type Tool struct {
	// Name is what it is called by, and Namespace what it belongs to; most clients put both into Name.
	Name, Namespace string
	// Schema is the JSON Schema of its arguments; nil: it has none.
	Schema json.RawMessage
	// Deferred: the model has to search for it before it sees the schema.
	Deferred bool
	// Size is the length of its definition in bytes.
	Size int
}

// A Turn is a request for the model's next words.
type Turn struct {
	Tools []Tool
	// Results are the texts of all results so far.
	Results []string
	// Body is the whole request.
	Body []byte

	absent Tool // how the API's clients name a tool that is not offered, without its name
}

// Named is the tool of an MCP server as the client offers it. One that is not offered has the name that clients of
// the API give it.
func (t Turn) Named(server, tool string) Tool {
	for _, o := range t.Tools {
		if o.Of(server) == tool {
			return o
		}
	}
	name := t.absent
	name.Name = strings.ReplaceAll(name.Name, "SERVER", server) + tool
	name.Namespace = strings.ReplaceAll(name.Namespace, "SERVER", server)
	return name
}

// Of is the name of the tool on an MCP server, "" if it is not of that server.
func (t Tool) Of(server string) string {
	_, rest, _ := strings.Cut(t.Namespace+"_"+t.Name, server)
	return strings.TrimLeft(rest, "_-./:")
}

// A Call is a tool call of the model. Arguments are a JSON object.
type Call struct {
	Tool      Tool
	Arguments string
}

// A Model returns what it calls next, nil when it is done. It is asked concurrently.
type Model func(Turn) *Call

// ServeHTTP answers in the API of the request's path. Other requests get an empty list.
func (m Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return // the client is gone
	}
	for part, api := range map[string]api{
		"/messages": {readMessages, writeMessages}, "/responses": {readResponses, writeResponses},
		"/chat/completions": {readChat, writeChat}, "enerateContent": {readGemini, writeGemini},
	} {
		if !strings.HasSuffix(r.URL.Path, part) {
			continue
		}
		turn, err := api.read(body)
		if err != nil {
			break
		}
		turn.Body = body
		w.Header().Set("Content-Type", "text/event-stream")
		api.write(w, len(turn.Results), m(turn))
		return
	}
	fmt.Fprint(w, `{"input_tokens":1,"totalTokens":1,"data":[],"models":[]}`)
}

// An api reads requests, and writes answers to the nth turn.
type api struct {
	read  func(body []byte) (Turn, error)
	write func(w io.Writer, n int, call *Call)
}

// definition is a tool in any of the APIs.
type definition struct {
	Name, Type                              string
	Input, Parameters, ParametersJSONSchema json.RawMessage
	InputSchema                             json.RawMessage `json:"input_schema"`
	DeferLoading                            bool            `json:"defer_loading"`
	Function                                *definition
	Tools, FunctionDeclarations             []json.RawMessage
}

// definitions are the tools of a request. One without a name, which the model's maker runs, goes by its type.
func definitions(raw []json.RawMessage, namespace string) (tools []Tool) {
	for _, one := range raw {
		var d definition
		if json.Unmarshal(one, &d) != nil {
			continue
		}
		if d.Function != nil {
			d = *d.Function
		}
		if inner := append(d.Tools, d.FunctionDeclarations...); len(inner) > 0 {
			tools = append(tools, definitions(inner, d.Name)...)
			continue
		}
		t := Tool{Name: d.Name, Namespace: namespace, Deferred: d.DeferLoading, Size: len(one)}
		for _, schema := range []json.RawMessage{d.InputSchema, d.Parameters, d.ParametersJSONSchema} {
			if len(schema) > 0 {
				t.Schema = schema
			}
		}
		if t.Name == "" {
			t.Name = d.Type
		}
		if t.Name != "" {
			tools = append(tools, t)
		}
	}
	return tools
}

// texts are the strings in a JSON value that stand under "text", or are the value itself.
func texts(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(v, &parts) // other parts have none
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// object is a JSON object.
type object = map[string]any

// send writes a server-sent event. One with a name says it in its data too.
func send(w io.Writer, name string, data object) {
	if name != "" {
		data["type"] = name
		fmt.Fprintf(w, "event: %s\n", name)
	}
	raw, _ := json.Marshal(data) // strings and numbers
	fmt.Fprintf(w, "data: %s\n\n", raw)
}
