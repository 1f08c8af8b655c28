package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// A schemaObject has the members of a schema by name.
type schemaObject map[string]json.RawMessage

func (s schemaObject) text(name string) (text string) {
	_ = json.Unmarshal(s[name], &text) // "" if it is no string
	return text
}

// number returns a finite number, or nil.
func (s schemaObject) number(name string) any {
	var n *float64
	if json.Unmarshal(s[name], &n) != nil || n == nil || math.IsInf(*n, 0) {
		return nil
	}
	return *n
}

// members returns the members of an object, and their names in order. Names that differ only in case are an error.
func members(raw json.RawMessage) (all schemaObject, names []string, err error) {
	if err := checkDuplicates(json.NewDecoder(bytes.NewReader(raw)), 0); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		return nil, nil, errors.New("it is not an object")
	}
	for name := range jsontext.Members(raw) {
		names = append(names, name)
	}
	return all, names, nil
}

// The members that schemas may have. Those that a field has no use for are left out.
var (
	formKeys  = strings.Fields("$schema type title description properties required additionalProperties")
	itemKeys  = strings.Fields("type title description enum enumNames oneOf anyOf")
	fieldKeys = strings.Fields(`type title description default format minLength maxLength pattern minimum maximum exclusiveMinimum
		exclusiveMaximum multipleOf enum enumNames oneOf const items minItems maxItems uniqueItems examples $comment`)
)

// flat returns the members of a schema that has only known ones.
func flat(raw json.RawMessage, what string, known []string) (schemaObject, error) {
	all, names, err := members(raw)
	if err != nil {
		return nil, formErrorf("%s: an object without duplicate members is expected", what)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, formErrorf("%s: %q is not supported: only flat forms of strings, numbers, booleans and choices are",
				what, cleanText(name, maxFieldTitle))
		}
	}
	return all, nil
}

// withoutNull returns the schema without the alternative null, which some libraries add for optional fields. A schema
// with a duplicate member is returned as it is, and refused later.
func withoutNull(raw json.RawMessage) json.RawMessage {
	s, _, err := members(raw)
	if err != nil {
		return raw
	}
	var types []string
	if json.Unmarshal(s["type"], &types) == nil {
		if types = slices.DeleteFunc(types, func(t string) bool { return t == "null" }); len(types) == 1 {
			s["type"] = marshal(types[0])
		}
	}
	isNull := func(one json.RawMessage) bool { return string(canonical(one)) == `{"type":"null"}` }
	for _, key := range []string{"anyOf", "oneOf"} {
		var all []json.RawMessage
		if json.Unmarshal(s[key], &all) != nil || len(all) != 2 || s["type"] != nil {
			continue
		}
		if all = slices.DeleteFunc(all, isNull); len(all) != 1 {
			continue
		}
		if inner, _, err := members(all[0]); err == nil {
			delete(s, key)
			maps.Copy(s, inner)
		}
	}
	if string(s["default"]) == "null" {
		delete(s, "default")
	}
	return marshal(s)
}
