package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// event is the input of a hook. Fields without a value are left out, as in Claude Code. There is no
// transcript; its field is present, because hooks that do not use it fail if it is absent.
type event struct {
	SessionID  string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	Cwd        string          `json:"cwd"`
	Mode       string          `json:"permission_mode"`
	Name       string          `json:"hook_event_name"`
	Tool       string          `json:"tool_name"`
	Input      json.RawMessage `json:"tool_input"`
	ToolUseID  string          `json:"tool_use_id,omitempty"`
	Response   json.RawMessage `json:"tool_response,omitempty"`
	Error      string          `json:"error,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Millis     *int64          `json:"duration_ms,omitempty"`
}

func (c Call) event(name string) event {
	e := event{SessionID: c.SessionID, Cwd: c.Cwd, Mode: c.Mode, Name: name, Tool: c.Tool, ToolUseID: c.ToolUseID,
		Input: c.Input}
	if len(e.Input) == 0 {
		e.Input = json.RawMessage("{}")
	}
	return e
}

func milliseconds(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// encode writes the event on one line.
func (e event) encode() ([]byte, error) {
	var err error
	if e.Input, err = canonical(e.Input); err != nil {
		return nil, fmt.Errorf("the tool's input cannot be given to it: %w", err)
	}
	if e.Input[0] != '{' {
		// Most hooks look for tool_input.NAME, and would not find it.
		return nil, fmt.Errorf("the tool's input cannot be given to it: it is %s, not a JSON object", kindOf(e.Input))
	}
	if e.Response != nil {
		if e.Response, err = canonical(e.Response); err != nil {
			return nil, fmt.Errorf("the tool's response cannot be given to it: %w", err)
		}
	}
	return encodeJSON(e)
}

// canonical encodes a JSON value again: without spaces, with the keys of objects sorted and unique, and without
// unnecessary escapes.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("text follows the JSON value at offset %d", d.InputOffset())
	}
	text, err := encodeJSON(value)
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// encodeJSON does not escape "<", ">" and "&" as json.Marshal does, because hooks search for them.
func encodeJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return b.Bytes(), err
}

// kindOf names the kind of a JSON value in canonical form.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
