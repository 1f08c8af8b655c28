package history

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// filledLine is a line with a value in every field, so that a new field cannot be forgotten where lines are encoded.
func filledLine(t *testing.T, text string) recordLine {
	t.Helper()
	l := recordLine{}
	v := reflect.ValueOf(&l).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)))
		case string, State:
			f.SetString(text)
		case []byte:
			f.SetBytes([]byte("\xff" + text))
		case []string:
			f.Set(reflect.ValueOf([]string{text, "b"}))
		case Blob:
			f.Set(reflect.ValueOf(Blob{Sum: text, Size: 1 << 40}))
		case location:
			f.Set(reflect.ValueOf(location{Pack: text, Offset: int64(i)}))
		default:
			t.Fatalf("a %s is not encoded", f.Type())
		}
	}
	return l
}

// A line is what encoding/json would make of it.
func TestAppendTo(t *testing.T) {
	lines := []recordLine{{}, {ID: "a", State: Done}, {Before: Blob{Size: 1}, AfterAt: location{Offset: 1}}}
	for _, text := range []string{"a", "a b<&>'/", "\"\\\b\n\t\x00\x1f\x7f", "é→😀\u2028"} {
		lines = append(lines, filledLine(t, text))
	}
	for i, l := range lines {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			got, err := l.appendTo(nil)
			if err != nil {
				t.Fatal(err)
			}
			var back recordLine
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatalf("%v in %s", err, got)
			}
			if d := cmp.Diff(l, back, cmp.AllowUnexported(recordLine{}, location{})); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			want, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var gotFields, wantFields map[string]any
			if err := json.Unmarshal(got, &gotFields); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(want, &wantFields); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(wantFields, gotFields); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}
