package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// externalArgs decodes the arguments of an external tool, and converts them to its schema. text is encoded from the
// decoded arguments: the tool must get the arguments that rules see, even if a member was given twice in a nested
// object.
func externalArgs(d *Def, schema func() looseSchema, raw json.RawMessage) (args map[string]any, text json.RawMessage,
	err error) {
	given, twice, err := object(raw)
	if err != nil {
		return nil, nil, err
	}
	if twice != "" {
		return nil, nil, fmt.Errorf(repeated, quoted(twice))
	}
	if text, err = json.Marshal(given); err != nil {
		return nil, nil, err
	}
	value, err := decodeExact(text)
	if err != nil {
		return nil, nil, err
	}
	if args, _ = value.(map[string]any); args == nil {
		args = map[string]any{}
	}
	if d.Server != "" {
		root := schema()
		properties, _ := root["properties"].(map[string]any)
		for _, name := range clientFields {
			if properties[name] == nil {
				delete(args, name)
			}
		}
		(&converter{root: root, steps: minSchemaSteps + stepsPerByte*len(text)}).object(args, root)
	}
	text, err = json.Marshal(args)
	return args, text, err
}

// decodeExact decodes JSON without changing numbers.
func decodeExact(text []byte) (value any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return value, dec.Decode(&value)
}

// A looseSchema is the JSON Schema of another server, of whatever draft. Keywords that cannot be read are ignored.
type looseSchema = map[string]any

// looseSchemaOf returns a function that decodes a schema once.
func looseSchemaOf(raw json.RawMessage) func() looseSchema {
	return sync.OnceValue(func() looseSchema {
		schema, _ := decodeExact(raw)
		root, _ := schema.(looseSchema)
		return root
	})
}

// Limits of the work of one conversion: a short schema with references can require exponential work.
const (
	minSchemaSteps = 10_000
	stepsPerByte   = 4  // of the arguments
	maxSchemaParts = 32 // schemas that refer to or contain one another
)

// A converter converts arguments as models send them to a schema. Where the schema permits no text, a text that
// spells a value of a permitted type becomes that value. Other arguments are left for the validation.
type converter struct {
	root  looseSchema
	steps int // left
	depth int // of the schema that is examined
}

// enter reports whether the conversion may examine a schema. If so, leave must be called.
func (c *converter) enter(schema looseSchema) bool {
	if schema == nil || c.steps == 0 || c.depth == maxSchemaParts {
		return false
	}
	c.steps--
	c.depth++
	return true
}

func (c *converter) leave() { c.depth-- }

// value returns v, converted to a schema.
func (c *converter) value(v any, schema looseSchema) any {
	switch given := v.(type) {
	case string:
		types, known := c.types(schema)
		if !known || slices.Contains(types, "string") {
			return v
		}
		spelt, ok := spelledValue(given, types)
		if _, again := spelt.(string); !ok || again {
			return v
		}
		return c.value(spelt, schema)
	case json.Number:
		types, _ := c.types(schema)
		if whole, ok := spelled([]byte(given), "integer"); ok && slices.Contains(types, "integer") &&
			!slices.Contains(types, "number") {
			return json.Number(whole)
		}
	case map[string]any:
		c.object(given, schema)
	case []any:
		for i := range given {
			given[i] = c.value(given[i], c.item(schema, i))
		}
	}
	return v
}

// spelledValue returns the value that a text spells, if it has one of the types.
func spelledValue(text string, types []string) (value any, ok bool) {
	given := []byte(strings.TrimSpace(text))
	for _, kind := range types {
		if kind == "integer" && integral(given) && json.Valid(given) { // of any size
			kind = "number"
		}
		if value, ok := spelled(given, kind); ok {
			decoded, err := decodeExact(value)
			return decoded, err == nil
		}
	}
	return nil, false
}

// object converts the members of an object. Null means "not given" for an optional member that cannot be null.
func (c *converter) object(given map[string]any, schema looseSchema) {
	shapes := c.shapes(schema, nil)
	for name, v := range given {
		member := c.member(shapes, name)
		if v != nil {
			given[name] = c.value(v, member)
			continue
		}
		types, known := c.types(member)
		if known && !slices.Contains(types, "null") && !requires(shapes, name) {
			delete(given, name)
		}
	}
}

func requires(shapes []looseSchema, name string) bool {
	return slices.ContainsFunc(shapes, func(s looseSchema) bool {
		names, _ := s["required"].([]any)
		return slices.Contains(names, any(name))
	})
}

// member returns the schema of a member of an object that has one of these schemas.
func (c *converter) member(shapes []looseSchema, name string) looseSchema {
	var named, others []any
	for _, s := range shapes {
		properties, _ := s["properties"].(map[string]any)
		if p, ok := properties[name]; ok {
			named = append(named, p)
		} else if more, ok := s["additionalProperties"].(looseSchema); ok {
			others = append(others, more)
		}
	}
	if named == nil {
		named = others
	}
	return oneOf(named)
}

// item returns the schema of an element of a list.
func (c *converter) item(schema looseSchema, i int) looseSchema {
	var all []any
	for _, s := range c.shapes(schema, nil) {
		first, _ := s["prefixItems"].([]any)
		if list, ok := s["items"].([]any); ok { // until draft 2019-09
			first = list
		}
		if i < len(first) {
			all = append(all, first[i])
		} else if items, ok := s["items"].(looseSchema); ok {
			all = append(all, items)
		}
	}
	return oneOf(all)
}

// oneOf returns a schema that permits what any of these schemas permits. Without schemas, it permits everything.
func oneOf(schemas []any) looseSchema {
	if len(schemas) == 1 {
		s, _ := schemas[0].(looseSchema)
		return s
	}
	if len(schemas) == 0 {
		return nil
	}
	return looseSchema{"anyOf": schemas}
}

// parts returns the schemas that a schema consists of: the target of its reference, and the schemas that it combines.
func (c *converter) parts(schema looseSchema, keywords ...string) (all []looseSchema) {
	if ref, ok := schema["$ref"].(string); ok {
		if target := c.target(ref); target != nil {
			all = append(all, target)
		}
	}
	for _, keyword := range keywords {
		list, _ := schema[keyword].([]any)
		for _, s := range list {
			part, _ := s.(looseSchema)
			all = append(all, part)
		}
	}
	return all
}

// shapes appends the schema and all its parts.
func (c *converter) shapes(schema looseSchema, all []looseSchema) []looseSchema {
	if !c.enter(schema) {
		return all
	}
	defer c.leave()
	all = append(all, schema)
	for _, part := range c.parts(schema, "allOf", "anyOf", "oneOf") {
		all = c.shapes(part, all)
	}
	return all
}

// types returns the types that a schema permits. known is false if it permits all types, or if they are not known.
func (c *converter) types(schema looseSchema) (types []string, known bool) {
	if !c.enter(schema) {
		return nil, false
	}
	defer c.leave()
	if one, ok := schema["type"].(string); ok {
		return []string{one}, true
	}
	if list, ok := schema["type"].([]any); ok {
		for _, one := range list {
			name, _ := one.(string)
			types = append(types, name)
		}
		return types, true
	}
	values, ok := schema["enum"].([]any)
	if constant, is := schema["const"]; is {
		values, ok = []any{constant}, true
	}
	if ok {
		for _, v := range values {
			types = append(types, typeOf(v))
		}
		return types, true
	}
	for _, part := range c.parts(schema, "allOf") { // all of them apply
		if types, known = c.types(part); known {
			return types, true
		}
	}
	alternatives := c.parts(looseSchema{"anyOf": schema["anyOf"], "oneOf": schema["oneOf"]}, "anyOf", "oneOf")
	for _, part := range alternatives {
		some, known := c.types(part)
		if !known {
			return nil, false
		}
		types = append(types, some...)
	}
	return types, len(alternatives) > 0
}

// typeOf returns the type of a value in JSON Schema.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if integral([]byte(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// target returns the schema that a reference within the document names, or nil.
func (c *converter) target(ref string) looseSchema {
	path, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil || !strings.HasPrefix(ref, "#") || path != "" && path[0] != '/' {
		return nil
	}
	var at any = c.root
	for _, name := range strings.Split(path, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch here := at.(type) {
		case map[string]any:
			at = here[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(here) {
				return nil
			}
			at = here[i]
		default:
			return nil
		}
	}
	found, _ := at.(looseSchema)
	return found
}
