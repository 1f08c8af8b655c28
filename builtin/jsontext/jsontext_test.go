package jsontext_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// texts are JSON, and what is nearly so. Those of usual must be accepted, or the package is of no use.
var (
	usual = []string{
		`{}`, ` { } `, `[]`, `"x"`, `0`, `-1`, `10`, `-1.5`, `0.10`, `1e5`, `1.5E-03`, `1e+0`, `12e99`, `-1E-99`, `true`, `false`, `null`, `{"a":1}`, `{"a":[1,{"b":null}],"c":"d"}`,
		`{"file_path":"/a b/ü","content":"a\n\tb \"c\" \\ \/ \b\f\r"}`, `"12345678\n12345678"`, `"\u00fc"`, "\t[\n1 ,\r2 ]\n", `{"":""}`,
		`"` + strings.Repeat("länger→", 100) + `"`,
	}
	odd = []string{
		``, ` `, `{`, `}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `[1,]`, `[,]`, `[1 2]`, `[`, `]`,
		`01`, `-`, `-01`, `1.`, `1e`, `1e+`, `1.e1`, `1.5.5`, `1e1.5`, `-.5`, `--1`, `1-`, `+1`, `.5`, `1e400`, `1e-400`, `1e0000000001`, strings.Repeat("9", 400), strings.Repeat("9", 200) + "e99", "0." + strings.Repeat("9", 400), `0x1`, `1a`, `tru`, `truex`, `nulls`, `nul`, `"`, `"\"`, `"\x"`, `"\u12"`,
		`"\u12g4"`, `"\uD800"`, `"\u0000"`, "\"\n\"", "\"a\x00\"", "\"\x1f1234567\"", "\"1234567\x1f\"", "\"\xff\"", "\"\x80abcdefghi\"",
		`{"a":1,"a":2}`, `{"\u0061":1}`, `{"ü":1}`, `{"a\n":1}`, `"a"b`, `"a" "b"`, "\ufeff{}", "\u00a0{}", strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
		strings.Repeat(`{"a":`, 999) + "1" + strings.Repeat("}", 999),
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
	}
)

func TestUsualIsAccepted(t *testing.T) {
	for _, text := range usual {
		if !accepted([]byte(text)) {
			t.Errorf("%q is refused", text)
		}
		check(t, []byte(text))
	}
}

func TestOddIsNoOther(t *testing.T) {
	for _, text := range odd {
		check(t, []byte(text))
	}
}

// TestStringsByLength puts what is special at each place of strings of each length.
func TestStringsByLength(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for _, c := range []string{"\n", `"`, `\`, `\n`, `\"`, `\u0041`, "\x1f", " ", "!", "#", "[", "]", "\x7f",
				"\x80", "\xff", "ü"} {
				check(t, []byte(`"`+strings.Repeat("x", at)+c+strings.Repeat("y", n-at)+`"`))
			}
		}
	}
}

// accepted reports whether a text is gone over as one value.
func accepted(text []byte) bool {
	s := jsontext.NewScanner(text)
	return s.Value() != nil && s.End()
}

func FuzzLikeEncodingJSON(f *testing.F) {
	for _, text := range append(usual, odd...) {
		f.Add([]byte(text))
	}
	f.Fuzz(check)
}

// check holds what is accepted against encoding/json.
func check(t *testing.T, text []byte) {
	before := bytes.Clone(text)
	if accepted(text) {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Errorf("%q is accepted and cannot be decoded: %v", text, err)
		}
	}
	if s, ok := jsontext.String(text); ok && json.Valid(text) {
		var want string
		if err := json.Unmarshal(text, &want); err != nil || s != want {
			t.Errorf("%q is read as %q instead of %q (%v)", text, s, want, err)
		}
	}
	got := map[string]string{}
	if jsontext.Object(text, func(name, value []byte) bool { got[string(name)] = string(value); return true }) {
		var raw map[string]json.RawMessage
		err := json.Unmarshal(text, &raw)
		want := map[string]string{}
		for name, value := range raw {
			want[name] = string(value)
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q is read as %s instead of %s (%v)", text, fmt.Sprint(got), fmt.Sprint(want), err)
		}
	}
	if !bytes.Equal(before, text) {
		t.Errorf("%q was changed", before)
	}
}

func TestRepeated(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1,"b":{"a":2}}`: "", `{"a":1,"b":2,"a":3}`: "a", `{"a":1,"\u0061":2}`: "a", `{"a":1,"A":2}`: "",
		`["a","a"]`: "", `{"a":1,"a"`: "", ``: "",
	} {
		if got := jsontext.Repeated([]byte(object)); got != want {
			t.Errorf("%s: got %q, want %q", object, got, want)
		}
	}
}
