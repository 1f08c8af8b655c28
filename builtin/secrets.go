package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/secrets"
)

// TellSecrets adds a note to the result of another server or of the web if it holds keys or tokens, and masks them if
// the settings say so.
func (e *Env) TellSecrets(r *Result) {
	kinds := e.maskSecrets(&r.Text)
	if structured, ok := r.Structured.(json.RawMessage); ok {
		text := string(structured)
		more := e.maskSecrets(&text)
		for _, kind := range more {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
		if len(more) > 0 && json.Valid([]byte(text)) {
			r.Structured = json.RawMessage(text)
		} else if len(more) > 0 {
			r.Structured = nil // the masked text is in Text
		}
	}
	if r.Passed != nil && len(kinds) > 0 && e.MaskSecrets {
		r.Passed = r.Text
	}
	r.Text += e.secretsNote(kinds)
}

// maskSecrets returns the kinds of the secrets in a text, and masks them in it if the settings say so.
func (e *Env) maskSecrets(text *string) []string {
	kinds, masked := secrets.Find(*text)
	if e.MaskSecrets {
		*text = masked
	}
	return kinds
}

// secretsNote returns what a result says about secrets of these kinds, or "".
func (e *Env) secretsNote(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	names := slices.Clone(kinds)
	slices.Sort(names)
	what := fmt.Sprintf("%s (%s)", count(len(kinds), "secret"), strings.Join(slices.Compact(names), ", "))
	if e.MaskSecrets {
		return fmt.Sprintf("\n[This content holds what looks like %s: it is masked.]\n", what)
	}
	return fmt.Sprintf("\n[This content holds what looks like %s: do not repeat it, store it or send it elsewhere unless "+
		"the user asks for that.]\n", what)
}
