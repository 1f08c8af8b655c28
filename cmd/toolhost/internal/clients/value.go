package clients

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// A field is one member of an entry.
type field struct {
	key string
	// value is a string, a bool, an int, a []string or an object.
	value any
	// once says that the field is set when the entry is created, and belongs to the user afterwards.
	once bool
}

// An object is the members of an entry in the order in which they are written.
type object []field

func (o object) get(key string) (any, bool) {
	for _, f := range o {
		if f.key == key {
			return f.value, true
		}
	}
	return nil, false
}

// plain returns v in the types that a decoder returns.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		m := map[string]any{}
		for _, f := range v {
			m[f.key] = plain(f.value)
		}
		return m
	case []string:
		list := []any{}
		for _, s := range v {
			list = append(list, s)
		}
		return list
	}
	return normal(v)
}

// normal converts whole numbers to one type, because decoders differ.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case int:
		return json.Number(strconv.Itoa(v))
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	}
	return v
}

// same reports whether decoded values are equal. Unlike reflect.DeepEqual it takes two NaN for equal, which TOML and
// YAML can contain.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || math.IsNaN(a) && math.IsNaN(b))
	}
	return reflect.DeepEqual(a, b)
}

// quote returns a string in a form that JSON, TOML and YAML all accept.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // cannot fail for a string
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// scalar returns a value on one line, in a form that JSON, TOML and YAML all accept. Each format writes objects
// itself.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(v)
}
