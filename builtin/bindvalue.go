package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// largestInteger is the largest integer that a float64, which many clients use, can represent exactly.
const largestInteger = 1<<53 - 1

// integral reports whether a value is spelt as an integer, of whatever size.
func integral(value []byte) bool {
	digits := bytes.TrimPrefix(value, []byte("-"))
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}

// coerce turns a string that spells a number, a boolean or a list into that value, where the schema wants one.
func coerce(raw json.RawMessage, want *jsonschema.Schema) (json.RawMessage, error) {
	value, isText := raw, raw[0] == '"' // a decoded member has no leading white space
	if isText && want.Type != "string" {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		value = json.RawMessage(strings.TrimSpace(text))
	}
	ok := isText
	switch want.Type {
	case "array":
		value = oneElement(raw, value, want.Items)
	case "boolean":
		switch string(bytes.ToLower(value)) {
		case "1", "yes":
			value = []byte("true")
		case "0", "no":
			value = []byte("false")
		}
	}
	if want.Type != "string" {
		value, ok = spelled(value, want.Type)
	}
	if !ok && want.Type == "integer" && integral(value) {
		return nil, fmt.Errorf("expected %s of at most %d, got %s", article(want.Type),
			int64(largestInteger), show(raw))
	}
	if !ok {
		return nil, fmt.Errorf("expected %s, got %s", article(want.Type), show(raw))
	}
	return value, nil
}

// spelled returns the JSON value of a type, other than string, that a text without surrounding space spells.
func spelled(text []byte, kind string) (value json.RawMessage, ok bool) {
	value = text
	starts := func(with byte) bool { return len(text) > 0 && text[0] == with && json.Valid(text) }
	switch kind {
	case "boolean":
		value = bytes.ToLower(value)
		ok = string(value) == "true" || string(value) == "false"
	case "integer":
		f, err := strconv.ParseFloat(string(value), 64)
		ok = err == nil && f == math.Trunc(f) && math.Abs(f) <= largestInteger
		if ok {
			value = strconv.AppendInt(nil, int64(f), 10)
		}
	case "number":
		ok = len(text) > 0 && bytes.IndexByte([]byte("-0123456789"), text[0]) >= 0 && json.Valid(text)
	case "null":
		ok = string(text) == "null"
	case "array":
		ok = starts('[')
	case "object":
		ok = starts('{')
	}
	return value, ok
}

// oneElement makes a list of what stands in its place, if that is an element of such a list: raw, or value if raw is a
// text.
func oneElement(raw, value json.RawMessage, element *jsonschema.Schema) json.RawMessage {
	switch {
	case element == nil || len(value) == 0 || value[0] == '[':
		return value
	case element.Type == "string" && raw[0] == '"':
		return slices.Concat([]byte("["), raw, []byte("]"))
	case element.Type == "object" && value[0] == '{':
		return slices.Concat([]byte("["), value, []byte("]"))
	}
	return value
}

// numbersAsText makes texts of arguments that are whole numbers.
func numbersAsText(names ...string) func(map[string]json.RawMessage) {
	return func(given map[string]json.RawMessage) {
		for _, name := range names {
			if value := given[name]; integral(value) {
				given[name] = json.RawMessage(strconv.Quote(string(value)))
			}
		}
	}
}

// asText says how to give an object or a list to a parameter that is text.
func asText(name string, value []byte, want *jsonschema.Schema) string {
	switch {
	case want.Type != "string" || value[0] != '{' && value[0] != '[':
		return ""
	case name == "command":
		return "; pass the whole command line as one string"
	}
	return "; pass the JSON as a string"
}

// within checks a decoded value against the range and the enumeration of its schema. An empty choice counts as not
// given.
func within(v reflect.Value, want *jsonschema.Schema) error {
	if v.CanInt() {
		if want.Minimum != nil && float64(v.Int()) < *want.Minimum {
			return fmt.Errorf("expected %v or more, got %d", *want.Minimum, v.Int())
		}
		if want.Maximum != nil && float64(v.Int()) > *want.Maximum {
			return fmt.Errorf("expected %v or less, got %d", *want.Maximum, v.Int())
		}
	}
	if len(want.Enum) > 0 && v.String() != "" && !slices.Contains(want.Enum, v.Interface()) {
		var names []string
		for _, e := range want.Enum {
			names = append(names, fmt.Sprint(e))
		}
		return fmt.Errorf("expected one of %s, got %s", strings.Join(names, ", "), quoted(fmt.Sprint(v.Interface())))
	}
	return nil
}

// shownLength bounds how much of a wrong value an error repeats, in characters.
const shownLength = 40

// show describes a JSON value for an error: what it is, and a short look at it.
func show(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	kind := map[byte]string{'"': "the string ", '{': "an object ", '[': "a list ", 't': "the boolean ",
		'f': "the boolean ", 'n': ""}
	prefix, ok := kind[raw[0]]
	if !ok {
		prefix = "the number "
	}
	return prefix + shortened(string(raw[:min(len(raw), shownLength*utf8.UTFMax+1)]))
}

func quoted(s string) string { return strconv.Quote(shortened(s)) }

// shortened is the beginning of a text that may be very long.
func shortened(s string) string {
	n := 0
	for i := range s {
		if n++; n > shownLength {
			return s[:i] + "…"
		}
	}
	return s
}

func article(kind string) string {
	if kind == "integer" || kind == "array" {
		return "an " + kind
	}
	return "a " + kind
}

// isUnset reports whether a value stands for "not given": null, and an empty text where the schema wants no text.
func isUnset(raw json.RawMessage, want *jsonschema.Schema) bool {
	return isNull(raw) || want.Type != "string" &&
		slices.Contains([]string{`""`, `"null"`, `"undefined"`, `"None"`}, string(raw))
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
