package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
)

// Limits of the forms of servers. Texts are counted in characters.
const (
	maxForms        = 3 // of one call
	maxFields       = 10
	maxChoices      = 250 // of all fields
	maxFieldTitle   = 80
	maxFieldText    = 300
	maxQuestionText = 1000
	maxQuestionRows = 20
	maxAnswerText   = 10_000
)

// A form is a question of a server as clients get it. Nothing in it is as the server has sent it: the fields are
// built anew from what is known about them, under names of this host.
type form struct {
	message string
	fields  []field
}

// A field is one input of a form.
type field struct {
	own      string // the name on the server
	required bool
	kind     string         // "string", "number", "integer" or "boolean"
	many     bool           // several choices
	choices  []choice       // nil: any value of the kind
	shown    map[string]any // the schema for clients
}

// A choice is a value of a field, with the text that a person sees.
type choice struct {
	label string
	value string
}

// errForm is the error of a question that cannot be shown.
type errForm struct{ text string }

func (e *errForm) Error() string { return e.text }

func formErrorf(format string, args ...any) error { return &errForm{fmt.Sprintf(format, args...)} }

// newForm reads the params of elicitation/create.
func newForm(params json.RawMessage) (*form, error) {
	var p struct {
		Mode            string
		Message         string
		RequestedSchema json.RawMessage
	}
	if json.Unmarshal(params, &p) != nil || p.Mode != "" && p.Mode != "form" {
		return nil, formErrorf("only the elicitation mode \"form\" is supported")
	}
	f := &form{message: p.Message}
	if p.RequestedSchema == nil {
		return f, nil
	}
	schema, err := flat(p.RequestedSchema, "requestedSchema", formKeys)
	if err != nil {
		return nil, err
	}
	if kind := schema.text("type"); kind != "object" && schema["type"] != nil {
		return nil, formErrorf("requestedSchema: the type \"object\" is expected, not %q",
			cleanText(kind, maxFieldTitle))
	}
	var required []string
	if raw := schema["required"]; raw != nil && json.Unmarshal(raw, &required) != nil {
		return nil, formErrorf("requestedSchema: required is not a list of names")
	}
	if schema["properties"] == nil {
		return f, nil
	}
	_, names, err := members(schema["properties"])
	if err != nil || len(names) > maxFields {
		return nil, formErrorf("requestedSchema: an object with at most %d properties is expected", maxFields)
	}
	return f, f.add(schema["properties"], names, required)
}

// add adds the fields of an object of properties.
func (f *form) add(properties json.RawMessage, names, required []string) error {
	all, _, _ := members(properties)
	choices := 0
	for _, name := range names {
		one, err := newField(all[name])
		if err != nil {
			return formErrorf("requestedSchema: the field %q: %v", cleanText(name, maxFieldTitle), err)
		}
		if choices += len(one.choices); choices > maxChoices {
			return formErrorf("requestedSchema: it has more than %d choices", maxChoices)
		}
		one.own, one.required = name, slices.Contains(required, name)
		if one.shown["title"] == "" {
			one.shown["title"] = lineOf(name, maxFieldTitle)
		}
		f.fields = append(f.fields, *one)
	}
	return nil
}

// newField builds a field from its schema.
func newField(raw json.RawMessage) (*field, error) {
	s, err := flat(withoutNull(raw), "its schema", fieldKeys)
	if err != nil {
		return nil, err
	}
	f := &field{kind: s.text("type"), shown: map[string]any{"title": lineOf(s.text("title"), maxFieldTitle)}}
	if text := lineOf(s.text("description"), maxFieldText); text != "" {
		f.shown["description"] = text
	}
	switch f.kind {
	case "string":
		err = f.choose(s)
	case "array":
		var items schemaObject
		if items, err = flat(s["items"], "its items", itemKeys); err == nil {
			if f.kind, f.many = "string", true; items["oneOf"] == nil {
				items["oneOf"] = items["anyOf"]
			}
			if err = f.choose(items); err == nil && f.choices == nil {
				err = errors.New("a list without choices is not supported")
			}
		}
	case "number", "integer", "boolean":
	default:
		return nil, fmt.Errorf("the type %q is not supported: string, number, integer, boolean or a list of choices is "+
			"expected",
			cleanText(f.kind, maxFieldTitle))
	}
	f.constrain(s)
	return f, err
}

// choose reads the choices of a string, if it has any.
func (f *field) choose(s schemaObject) error {
	var values, labels []string
	var titled []struct {
		Const *string
		Title string
	}
	switch {
	case s["oneOf"] != nil:
		if json.Unmarshal(s["oneOf"], &titled) != nil {
			return errors.New("its choices are not objects with const and title")
		}
		for _, one := range titled {
			if one.Const == nil {
				return errors.New("a choice has no const")
			}
			values, labels = append(values, *one.Const), append(labels, one.Title)
		}
	case s["enum"] != nil:
		if json.Unmarshal(s["enum"], &values) != nil {
			return errors.New("its choices are not strings")
		}
		if json.Unmarshal(s["enumNames"], &labels); len(labels) != len(values) {
			labels = make([]string, len(values))
		}
	case s["const"] != nil:
		return errors.New("const is not supported outside of choices")
	default:
		return nil
	}
	f.choices = []choice{}
	for i, value := range values {
		label := lineOf(labels[i], maxFieldText)
		if label == "" {
			label = lineOf(value, maxFieldText)
		}
		same := func(c choice) bool { return c.label == label || c.value == value }
		if label == "" || slices.ContainsFunc(f.choices, same) {
			return fmt.Errorf("its choice %q is empty or occurs twice", label)
		}
		f.choices = append(f.choices, choice{label, value})
	}
	if len(f.choices) == 0 {
		return errors.New("it has no choices")
	}
	return nil
}

// formats are the formats of strings that clients know.
var formats = []string{"email", "uri", "date", "date-time"}

// constrain completes the schema for clients.
func (f *field) constrain(s schemaObject) {
	copied := func(names ...string) {
		for _, name := range names {
			if n := s.number(name); n != nil {
				f.shown[name] = n
			}
		}
	}
	var labels []string
	for _, c := range f.choices {
		labels = append(labels, c.label)
	}
	f.shown["type"] = f.kind
	switch {
	case f.many:
		f.shown["type"], f.shown["items"] = "array", map[string]any{"type": "string", "enum": labels}
		copied("minItems", "maxItems")
	case f.choices != nil:
		f.shown["enum"] = labels
		if i := slices.IndexFunc(f.choices, func(c choice) bool { return c.value == s.text("default") }); i >= 0 {
			f.shown["default"] = labels[i]
		}
	case f.kind == "string":
		f.shown["maxLength"] = maxAnswerText
		if n, ok := s.number("maxLength").(float64); ok && n >= 0 && n < maxAnswerText {
			f.shown["maxLength"] = n
		}
		copied("minLength")
		if format := s.text("format"); slices.Contains(formats, format) {
			f.shown["format"] = format
		}
		if text := cleanText(s.text("default"), maxFieldText); text != "" && text == s.text("default") {
			f.shown["default"] = text
		}
	case f.kind == "boolean":
		var on bool
		if s["default"] != nil && json.Unmarshal(s["default"], &on) == nil {
			f.shown["default"] = on
		}
	default:
		copied("minimum", "maximum", "default")
	}
}

// lineOf returns a text of a server as one line of at most most characters.
func lineOf(text string, most int) string {
	return cleanText(strings.Join(strings.Fields(cleanText(text, maxDescription)), " "), most)
}

// nameOf returns the name of a field for clients. No field of this host's own forms has such a name.
func nameOf(i int) string { return fmt.Sprintf("field%02d", i+1) }

// params returns the params of elicitation/create for a client.
func (f *form) params(server string) json.RawMessage {
	rows := []string{}
	for row := range strings.SplitSeq(cleanText(f.message, maxQuestionText), "\n") {
		if row = strings.Join(strings.Fields(row), " "); row != "" {
			rows = append(rows, row)
		}
	}
	if len(rows) > maxQuestionRows {
		rows = append(rows[:maxQuestionRows-1], "…")
	}
	fields, required := map[string]any{}, []string{}
	for i, one := range f.fields {
		one.shown["title"] = server + ": " + one.shown["title"].(string)
		if fields[nameOf(i)] = one.shown; one.required {
			required = append(required, nameOf(i))
		}
	}
	schema := map[string]any{"type": "object", "properties": fields}
	if len(required) > 0 {
		schema["required"] = required
	}
	message := (*builtin.Env)(nil).Framed("the server "+server, rows)
	return marshal(map[string]any{"mode": "form", "message": message, "requestedSchema": schema})
}

// answer returns the response for the server. An answer that does not fit the form is a cancelled one.
func (f *form) answer(result json.RawMessage) json.RawMessage {
	var r struct {
		Action  string
		Content map[string]any
	}
	if json.Unmarshal(result, &r) != nil || r.Action != "accept" {
		if r.Action == "decline" {
			return answered("decline", nil)
		}
		return answered("cancel", nil)
	}
	content := map[string]any{}
	for i, one := range f.fields {
		given := r.Content[nameOf(i)]
		if given == nil && !one.required {
			continue
		}
		value, ok := one.value(given)
		if !ok {
			return answered("cancel", nil)
		}
		content[one.own] = value
	}
	return answered("accept", content)
}

// value returns the value for the server of a value from a client.
func (f *field) value(given any) (value any, ok bool) {
	if f.many {
		list, isList := given.([]any)
		values := []string{}
		for _, one := range list {
			value, ok := f.chosen(one)
			if !ok {
				return nil, false
			}
			values = append(values, value)
		}
		return values, isList
	}
	switch v := given.(type) {
	case string:
		if f.choices != nil {
			return f.chosen(v)
		}
		return v, f.kind == "string" && utf8.RuneCountInString(v) <= maxAnswerText
	case bool:
		return v, f.kind == "boolean"
	case float64:
		return v, f.kind == "number" || f.kind == "integer" && v == math.Trunc(v)
	}
	return nil, false
}

// chosen returns the value of a label.
func (f *field) chosen(label any) (string, bool) {
	i := slices.IndexFunc(f.choices, func(c choice) bool { return c.label == label })
	if i < 0 {
		return "", false
	}
	return f.choices[i].value, true
}
