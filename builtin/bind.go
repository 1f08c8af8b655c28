package builtin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/jsontext"
	"github.com/toolhost/toolhost/guard/alias"
)

// A binder turns raw arguments into one tool's typed input. The schema that clients see is the one that
// binds, so the two cannot disagree.
type binder struct {
	tool   string
	schema *jsonschema.Schema
	fields map[string]int // JSON name → index of the struct field
	forms  func(given map[string]json.RawMessage)
}

func newBinder(tool string, schema *jsonschema.Schema, in reflect.Type) *binder {
	b := &binder{tool: tool, schema: schema, fields: map[string]int{}}
	for i := range in.NumField() {
		name, _, _ := strings.Cut(in.Field(i).Tag.Get("json"), ",")
		b.fields[name] = i
	}
	return b
}

// A bindError lists everything that is wrong with a call's arguments.
type bindError struct {
	Tool     string
	Problems []string
}

func (e *bindError) Error() string {
	return fmt.Sprintf("%s was not run, its arguments are wrong:\n- %s", e.Tool, strings.Join(e.Problems, "\n- "))
}

// clientFields are parameters that clients add to the schema of every tool for their own use, and do not remove from
// calls. Gemini CLI adds whether a call waits for the previous ones.
var clientFields = []string{"wait_for_previous"}

// repeated says what is wrong with a name that is given twice.
const repeated = "%s is given twice, and a check between client and host could have read the other one: give it once"

// maxProblems is how many problems an error lists.
const maxProblems = 20

// bind decodes raw into the struct in and returns the scalar arguments.
func (b *binder) bind(raw json.RawMessage, in reflect.Value) (map[string]any, error) {
	given, twice, err := object(raw)
	if err != nil {
		return nil, &bindError{Tool: b.tool, Problems: []string{err.Error()}}
	}
	problems := b.applyAliases(given)
	if twice != "" {
		problems = append(problems, fmt.Sprintf(repeated, quoted(twice)))
	}
	if b.forms != nil {
		b.forms(given)
	}
	scalars := map[string]any{}
	for _, name := range b.order(given) {
		if len(problems) == maxProblems {
			problems = append(problems, "the rest was not checked")
			break
		}
		value := given[name]
		prop := b.schema.Properties[name]
		if prop == nil {
			if !slices.Contains(clientFields, name) {
				problems = append(problems, b.unknown(name))
			}
			continue
		}
		if isUnset(value, prop) && !slices.Contains(b.schema.Required, name) {
			continue
		}
		field := in.Field(b.fields[name])
		if err := decode(value, prop, field); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v%s", name, err, asText(name, value, prop)))
			continue
		}
		if v := reflect.Indirect(field); v.Kind() != reflect.Slice && v.Kind() != reflect.Struct {
			scalars[name] = v.Interface()
		}
	}
	for _, name := range b.schema.Required {
		if _, ok := given[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s is missing: %s", name, b.schema.Properties[name].Description))
		}
	}
	if problems != nil {
		return nil, &bindError{Tool: b.tool, Problems: problems}
	}
	return scalars, nil
}

// decode decodes a value into its field.
func decode(value json.RawMessage, prop *jsonschema.Schema, field reflect.Value) error {
	if prop.Type == "string" && field.Type() == reflect.TypeFor[string]() {
		if text, ok := jsontext.String(value); ok { // fast path: without escapes, which could be lone surrogates
			field.SetString(text)
			return within(field, prop)
		}
	}
	if err := whole(value); err != nil {
		return err
	}
	value, err := coerce(value, prop)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(value, field.Addr().Interface()); err != nil {
		return err
	}
	return within(reflect.Indirect(field), prop)
}

// applyAliases moves the values of aliases to their fields. Unknown names stay. It is a problem if an alias and its
// field are both given with different values.
func (b *binder) applyAliases(given map[string]json.RawMessage) (problems []string) {
	var others []string
	for name := range given {
		if b.schema.Properties[name] == nil {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		a, ok := alias.Field(b.tool, name, b.schema.PropertyOrder)
		value, means := closestField(a, given[name])
		if !ok || !means {
			continue
		}
		delete(given, name)
		if value == nil {
			continue
		}
		if now, both := given[a.Field]; both && !isNull(now) && !sameJSON(now, value) {
			problems = append(problems, fmt.Sprintf("%s is not a parameter of %s but means %s, and the two differ: give "+
				"%[3]s alone", quoted(name), b.tool, a.Field))
			continue
		}
		given[a.Field] = value
	}
	return problems
}

// closestField returns the value for the field of an alias, or nil. ok is false if the value is not valid for the
// field.
func closestField(a alias.Argument, value json.RawMessage) (meant json.RawMessage, ok bool) {
	switch {
	case a.Field == "" && a.Instead == "" || isNull(value):
		return nil, true
	case a.Field == "":
		return nil, false
	case a.For == "":
		return value, true
	case string(value) == "true":
		return json.RawMessage(strconv.Quote(a.For)), true
	}
	return nil, string(value) == "false"
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b json.RawMessage) bool {
	var v, w any
	return bytes.Equal(a, b) || json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && reflect.DeepEqual(v, w)
}

// order returns the given names in the order of the schema, with unknown ones last and sorted.
func (b *binder) order(given map[string]json.RawMessage) []string {
	rank := func(name string) uint { return uint(slices.Index(b.schema.PropertyOrder, name)) } // -1 becomes the largest
	return slices.SortedFunc(maps.Keys(given), func(x, y string) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), strings.Compare(x, y))
	})
}

// Limits for the name that an unknown name probably means: the edit distance, and the length.
const (
	farthest    = 3
	longestSlip = 40
)

func (b *binder) unknown(name string) string {
	best, distance := "", farthest+1
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for _, known := range b.schema.PropertyOrder {
		if len(name) > longestSlip {
			break
		}
		d := levenshtein.ComputeDistance(plain(name), plain(known))
		if k, n := plain(known), plain(name); n != "" && (strings.HasSuffix(k, n) || strings.HasSuffix(n, k)) {
			d = min(d, 1) // "path" for "file_path"
		}
		if d < distance {
			best, distance = known, d
		}
	}
	if a, ok := alias.Field(b.tool, name, nil); ok && a.Instead != "" {
		return fmt.Sprintf("%s is not a parameter of %s: %s", quoted(name), b.tool, a.Instead)
	}
	if best != "" && distance <= min(farthest, len(name)-1) {
		return fmt.Sprintf("%s is not a parameter of %s: did you mean %s?", quoted(name), b.tool, best)
	}
	return fmt.Sprintf("%s is not a parameter of %s: it has %s", quoted(name), b.tool,
		strings.Join(b.schema.PropertyOrder, ", "))
}

// object decodes the arguments as one JSON object. No arguments are an empty object. twice is a duplicate name, or "".
func object(raw json.RawMessage) (given map[string]json.RawMessage, twice string, err error) {
	if len(raw) == 0 || isNull(raw) {
		return nil, "", nil
	}
	if given, twice, ok := members(raw); ok {
		return given, twice, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if given, twice, ok := members([]byte(text)); ok {
			return given, twice, nil // the whole object, sent as a string
		}
	}
	if !json.Valid(raw) { // from a command line
		return nil, "", fmt.Errorf("the arguments must be one JSON object, such as {\"name\": \"value\"}, got invalid "+
			"JSON: %s", raw)
	}
	return nil, "", fmt.Errorf("the arguments must be one JSON object, got %s", show(raw))
}

// members returns the members of an object. Of duplicate members it returns the last.
func members(raw []byte) (given map[string]json.RawMessage, twice string, ok bool) {
	given = map[string]json.RawMessage{}
	if jsontext.Object(raw, func(name, value []byte) bool {
		before := len(given)
		if given[string(name)] = value; len(given) == before {
			twice = string(name)
		}
		return true
	}) {
		return given, twice, true
	}
	given = nil
	if json.Unmarshal(raw, &given) != nil {
		return nil, "", false
	}
	return given, jsontext.Repeated(raw), true
}

// surrogates are escapes of halves of a character: a high one, a low one, or any other escape, so that a backslash is
// not taken for the beginning of one.
var surrogates = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)

// whole refuses lone surrogates, which would be decoded as U+FFFD: a file must get exactly the text that was sent.
func whole(raw json.RawMessage) error {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return nil
	}
	const half = len(`\ud800`)
	for _, at := range surrogates.FindAllIndex(raw, -1) {
		if at[1]-at[0] == half {
			return fmt.Errorf("%s is half of a character, and its other half is missing: send the whole character",
				raw[at[0]:at[1]])
		}
	}
	return nil
}
