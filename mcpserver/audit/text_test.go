package audit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// filled is a record with a value in every field, so that a new field cannot be forgotten where records are encoded.
func filled(t *testing.T, text string) Record {
	t.Helper()
	r := Record{Time: time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600))}
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
		case string:
			f.SetString(text)
		case []string:
			f.Set(reflect.ValueOf([]string{text, "b"}))
		case []Phase:
			f.Set(reflect.ValueOf([]Phase{{r.Time, text, text, text}, {Time: r.Time, What: "b"}}))
		case float64:
			f.SetFloat(0.125)
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(1 << 40)
		default:
			t.Fatalf("a %s is not encoded", f.Type())
		}
	}
	return r
}

// The line of a record says what encoding/json would, and has no characters that a terminal would obey.
func TestLine(t *testing.T) {
	for name, r := range map[string]Record{
		"empty":   {},
		"plain":   filled(t, "a"),
		"escapes": filled(t, "\"\\\b\f\n\r\t\x00\x1f/<>&'é→😀"),
		"hidden":  filled(t, "\x7f\u0085\u2028\u202e\ufeff\U000e0001"),
		"invalid": filled(t, "a\xff\xed\xa0\x80b"),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var wantFields, gotFields map[string]any
			line, err := r.line()
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(want, &wantFields); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(line, &gotFields); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			if d := cmp.Diff(wantFields, gotFields); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for _, c := range strings.TrimSuffix(string(line), "\n") {
				if c < ' ' || hidden(c) {
					t.Errorf("%q is not escaped in %s", c, line)
				}
			}
		})
	}
}
