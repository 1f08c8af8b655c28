package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A message is a JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// isMessage reports whether m is a request, a notification or a response, and not other JSON, such as a line of a log.
func (m message) isMessage() bool { return m.Method != "" || len(m.Result) > 0 || m.Error != nil }

// isNull reports whether a response does not say to which request it belongs.
func (m message) isNull() bool { return len(m.ID) == 0 || string(m.ID) == "null" }

// number returns the id of a response as the number that the request had. Some servers return it as a string or with
// a fraction.
func (m message) number() (id int64, ok bool) {
	text := strings.Trim(string(m.ID), `"`)
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return id, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return int64(f), err == nil && f == float64(int64(f))
}

// outcome returns the result or the error of a response.
func (m message) outcome() (json.RawMessage, error) {
	if m.Error != nil && !(m.Error.blank && len(m.Result) > 0) {
		return nil, m.Error
	}
	if len(m.Result) == 0 {
		return nil, errors.New("it answered with neither a result nor an error")
	}
	return m.Result, nil
}

// An rpcError is the error response of a server.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`

	blank bool // it says nothing, as null does
}

// UnmarshalJSON also accepts what is not an error of JSON-RPC, such as a text.
func (e *rpcError) UnmarshalJSON(raw []byte) error {
	var text string
	var members struct {
		Code    json.RawMessage
		Message json.RawMessage
		Data    json.RawMessage
	}
	if json.Unmarshal(raw, &text) == nil {
		*e = rpcError{Message: text, blank: text == ""}
		return nil
	}
	if json.Unmarshal(raw, &members) != nil {
		*e = rpcError{Message: string(raw), blank: string(raw) == "false" || string(raw) == "0"}
		return nil
	}
	*e = rpcError{Data: members.Data}
	if json.Unmarshal(members.Message, &e.Message) != nil {
		e.Message = string(members.Message)
	}
	if code := (message{ID: members.Code}); members.Code != nil {
		n, ok := code.number()
		if e.Code = int(n); !ok {
			e.Message = strings.TrimSpace(strings.Trim(string(members.Code), `"`) + " " + e.Message)
		}
	}
	if e.blank = string(raw) == "{}"; e.Message == "" && !e.blank {
		e.Message = string(raw)
	}
	return nil
}

func (e *rpcError) Error() string {
	text := cleanText(e.Message, maxDescription)
	if text == "" {
		text = "it gives no reason"
	}
	if e.Code == 0 {
		return text
	}
	return fmt.Sprintf("%s (error %d)", text, e.Code)
}

// supports reports whether an error about the protocol version lists a version as supported.
func (e *rpcError) supports(version string) bool {
	var data struct{ Supported []string }
	return json.Unmarshal(e.Data, &data) == nil && slices.Contains(data.Supported, version)
}

// JSON-RPC error codes.
const (
	codeNoMethod = -32601
	codeParams   = -32602
	codeBusy     = -32000
)

// byteOrderMark may precede the first message of a server.
var byteOrderMark = []byte("\ufeff")

// maxStarts limits how many braces of a line are tried as the beginning of a message.
const maxStarts = 16

// messagesIn returns the messages of a line, or of an event. odd is true if the line is or has something else. After
// text that ends without a newline only responses are accepted: a log may quote a request.
func messagesIn(line []byte) (all []message, odd bool) {
	line = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(line), byteOrderMark))
	if len(line) == 0 {
		return nil, false
	}
	if all := sequence(line); all != nil {
		return all, false
	}
	at := 0
	for range maxStarts {
		next := bytes.IndexByte(line[at:], '{')
		if next < 0 {
			break
		}
		at += next
		if at > 0 {
			all := sequence(line[at:])
			for _, m := range all {
				if m.Method != "" {
					return nil, true
				}
			}
			if all != nil {
				return all, true
			}
		}
		at++
	}
	return nil, true
}

// sequence returns the messages of a text that has nothing else, or nil.
func sequence(text []byte) (all []message) {
	if text[0] == '[' { // a batch of 2025-03-26
		if json.Unmarshal(text, &all) != nil {
			return nil
		}
	} else if text[0] == '{' {
		var one message
		if json.Unmarshal(text, &one) == nil && one.isMessage() {
			return []message{one}
		}
		for d := json.NewDecoder(bytes.NewReader(text)); ; {
			var m message
			err := d.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil
			}
			all = append(all, m)
		}
	}
	for _, m := range all {
		if !m.isMessage() {
			return nil
		}
	}
	return all
}

// A notMessage is the error of a request whose response cannot be decoded.
type notMessage struct{ line []byte }

// excerptRoom is how much of a line is shown before and after the place where it cannot be decoded, in bytes.
const excerptRoom = 60

func (e *notMessage) Error() string {
	err := json.Unmarshal(bytes.TrimSpace(e.line), &message{})
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := int(min(syntax.Offset, int64(len(e.line))))
		near := e.line[max(at-excerptRoom, 0):min(at+excerptRoom, len(e.line))]
		return fmt.Sprintf("its answer is not JSON: %v near %s", err, cleanText(string(near), maxLine))
	}
	return "its answer is not a message: " + cleanText(string(e.line), maxErrorBody)
}

// damagedAnswer matches the beginning of a response with its id.
var damagedAnswer = regexp.MustCompile(`^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})\b`)

// isDamaged reports whether a line was meant to be a message.
func isDamaged(line []byte) bool {
	return bytes.Contains(line[:min(len(line), maxLine)], []byte(`"jsonrpc"`))
}

// noise is what a server wrote where only messages are expected.
type noise struct {
	mu    sync.Mutex
	lines lastLines
	rest  []byte // the beginning of a line that has not ended
}

// maxNoise is how many lines of noise are shown.
const maxNoise = 3

func (n *noise) add(line []byte) {
	n.lines.add(string(line[:min(len(line), maxLine)]) + "\n")
}

// Write records what was read, for the line that has not ended. It implements [io.Writer].
func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		n.rest = append(n.rest[:0], p[i+1:min(len(p), i+1+maxLine)]...)
	} else if len(n.rest) < maxLine {
		n.rest = append(n.rest, p[:min(len(p), maxLine-len(n.rest))]...)
	}
	return len(p), nil
}

// text returns the last lines, and the line that has not ended.
func (n *noise) text() string {
	n.mu.Lock()
	rest := cleanText(string(n.rest), maxLine)
	n.mu.Unlock()
	lines := strings.Split(n.lines.text(), "\n")
	if rest != "" {
		lines = append(lines, rest)
	}
	return strings.TrimSpace(strings.Join(lines[max(len(lines)-maxNoise, 0):], "\n"))
}

// reset forgets the lines before.
func (n *noise) reset() {
	n.lines.reset()
}

// noiseTime is how long a server that writes something else than messages may take to start before its callers are
// told.
const noiseTime = 5 * time.Second
