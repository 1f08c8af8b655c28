package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/guard/settings"
)

const (
	// maxOutput bounds what is kept of one output of a hook, in bytes. An answer
	// can hold a whole file: the rewritten input of a Write.
	maxOutput = 8 << 20

	// maxText bounds a reason or context for the model, in bytes; Claude Code
	// gives a model 10,000 characters of a hook.
	maxText = 10_000

	// maxLabel bounds the name of a hook in a message, in bytes.
	maxLabel = 120
)

// response is the parsed output of one hook.
type response struct {
	action  action // after the call has run, Deny stands for "block"
	reason  string
	input   json.RawMessage // the new input, or nil
	output  json.RawMessage // the new response, or nil
	context string
	message string // for the user
	void    bool   // it allowed the call, which does not count
}

// take applies an action if it is stricter than the earlier ones.
func (a *response) take(action action, reason string) {
	if action > a.action {
		a.action, a.reason = action, reason
	}
}

// wire is the JSON form of an answer.
type wire struct {
	Continue      *bool    `json:"continue"`
	StopReason    string   `json:"stopReason"`
	Decision      string   `json:"decision"`
	Reason        string   `json:"reason"`
	SystemMessage string   `json:"systemMessage"`
	Specific      specific `json:"hookSpecificOutput"`

	// Fields of hookSpecificOutput.
	PermissionDecision json.RawMessage `json:"permissionDecision"`
	UpdatedInput       json.RawMessage `json:"updatedInput"`
}

// specific is the part of an answer whose form depends on the event.
type specific struct {
	Event   string `json:"hookEventName"`
	Context string `json:"additionalContext"`

	// PreToolUse
	Permission string          `json:"permissionDecision"`
	Reason     string          `json:"permissionDecisionReason"`
	Input      json.RawMessage `json:"updatedInput"`

	// PermissionRequest
	Decision *struct {
		Behavior string          `json:"behavior"`
		Message  string          `json:"message"`
		Input    json.RawMessage `json:"updatedInput"`
	} `json:"decision"`

	// PostToolUse; the second is the older name.
	Output    json.RawMessage `json:"updatedToolOutput"`
	MCPOutput json.RawMessage `json:"updatedMCPToolOutput"`
}

// A misread is an answer that cannot be parsed. It refuses the call if it contains a word that refuses.
type misread struct{ error }

// refusing matches the words of answers that refuse.
var refusing = regexp.MustCompile(`"(deny|block|ask)"|"continue"\s*:\s*false`)

// parse reads the output of a hook that succeeded. Text is no answer.
func parse(event string, output []byte) (response, error) {
	a, err := parseText(event, output)
	if err != nil && refusing.Match(output) {
		err = misread{err}
	}
	return a, err
}

func parseText(event string, output []byte) (response, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(output, []byte("\ufeff"))) // PowerShell writes a byte order mark
	if !bytes.HasPrefix(text, []byte("{")) {
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
				return response{}, errors.New("its output has text before the JSON: it must be the JSON object alone (text " +
					"belongs on standard error)")
			}
		}
		return response{}, nil
	}
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return response{}, fmt.Errorf("its output begins as JSON but cannot be read: %w", explain(err))
	}
	a, err := w.response(event)
	if err != nil {
		return response{}, fmt.Errorf("its answer cannot be used: %w", err)
	}
	return a, nil
}

// explain returns a decoding error without the names of Go types.
func explain(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s holds a %s, which is not what is expected there", wrong.Field, wrong.Value)
	}
	return err
}

func (w wire) response(event string) (response, error) {
	s := w.Specific
	if s.Event != "" && s.Event != event {
		return response{}, fmt.Errorf("hookEventName is %q, but the event is %s", s.Event, event)
	}
	if given(w.PermissionDecision) || given(w.UpdatedInput) {
		return response{}, errors.New("permissionDecision and updatedInput belong into hookSpecificOutput")
	}
	a := response{context: s.Context, message: w.SystemMessage}
	if err := a.takeSpecific(event, s); err != nil {
		return response{}, err
	}
	switch w.Decision {
	case "":
	case "approve":
		a.take(Allow, w.Reason)
	case Allow.String(), Ask.String():
		if event != settings.Classifier {
			return response{}, fmt.Errorf("decision is %q; approve or block is expected", w.Decision)
		}
		action, _ := actionOf("decision", w.Decision, Allow, Ask)
		a.take(action, w.Reason)
	case "block":
		a.take(Deny, w.Reason)
	default:
		return response{}, fmt.Errorf("decision is %q; approve or block is expected", w.Decision)
	}
	if w.Continue != nil && !*w.Continue {
		a.take(Deny, w.StopReason)
	}
	if a.input != nil && a.input[0] != '{' {
		return response{}, fmt.Errorf("updatedInput is %s; an object is expected", kindOf(a.input))
	}
	return a, nil
}

// takeSpecific reads the part of an answer whose form depends on the event. A decision in the form of another event
// is refused, because it would be lost otherwise.
func (a *response) takeSpecific(event string, s specific) (err error) {
	var action action
	switch event {
	case settings.PreToolUse:
		if s.Decision != nil {
			return errors.New("hookSpecificOutput.decision answers a PermissionRequest; for PreToolUse it is permissionDecision")
		}
		if s.Permission == deferred {
			return nil
		}
		action, err = actionOf("permissionDecision", s.Permission, Allow, Ask, Deny)
		a.take(action, s.Reason)
		if err == nil {
			a.input, err = valueOf(s.Input)
		}
	case settings.Classifier:
		action, err = actionOf("permissionDecision", s.Permission, Allow, Ask)
		a.take(action, s.Reason)
	case settings.PermissionRequest:
		if s.Permission != "" {
			return errors.New("permissionDecision answers a PreToolUse; for PermissionRequest it is decision: {behavior}")
		}
		if s.Decision == nil {
			return nil
		}
		action, err = actionOf("decision.behavior", s.Decision.Behavior, Allow, Deny)
		a.take(action, s.Decision.Message)
		if err == nil {
			a.input, err = valueOf(s.Decision.Input)
		}
	case settings.PostToolUse:
		a.output, err = valueOf(s.Output, s.MCPOutput)
	}
	return err
}

// deferred is the answer of a hook that leaves the decision to others; here it decides nothing. Claude Code ends a
// session that is not interactive until the decision is made, and ignores the answer in an interactive session.
const deferred = "defer"

// actionOf reads an action.
func actionOf(field, word string, expected ...action) (action, error) {
	if word == "" {
		return none, nil
	}
	for _, a := range expected {
		if word == a.String() {
			return a, nil
		}
	}
	return none, fmt.Errorf("%s is %q; one of %v is expected", field, word, expected)
}

// given reports whether a value is present and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// valueOf returns the first given value in canonical form, or nil.
func valueOf(raws ...json.RawMessage) (json.RawMessage, error) {
	for _, raw := range raws {
		if given(raw) {
			return canonical(raw)
		}
	}
	return nil, nil
}

// clip cuts a text for the model, and says so.
func clip(text string, limit int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return fmt.Sprintf("%s… [%d bytes cut]", text[:limit], len(text)-limit)
}
