package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// shownForm is a form as a client gets it.
type shownForm struct {
	Mode, Message   string
	RequestedSchema struct {
		Type       string
		Properties map[string]map[string]any
		Required   []string
	}
}

func showForm(t *testing.T, schema string) (*form, shownForm, string, error) {
	t.Helper()
	f, err := newForm(json.RawMessage(`{"message":"Who?","requestedSchema":` + schema + `}`))
	if err != nil {
		return nil, shownForm{}, "", err
	}
	raw := f.params("s")
	var shown shownForm
	if err := json.Unmarshal(raw, &shown); err != nil {
		t.Fatal(err)
	}
	return f, shown, string(raw), nil
}

// TestFormFields: fields are built anew, and the server gets the values under its own names.
func TestFormFields(t *testing.T) {
	for _, tt := range []struct{ property, shown, answer string }{
		{`{"type":"string"}`, `{"maxLength":10000,"title":"s: own","type":"string"}`, `"Ann"`},
		{`{"type":"string","title":"Your\u202e\nname","description":"a\u001b[2J\nb","minLength":1,"maxLength":5,"format":"email","default":"x","pattern":"(a+)+"}`,
			`{"default":"x","description":"a[2J b","format":"email","maxLength":5,"minLength":1,"title":"s: Your name","type":"string"}`, `"Ann"`},
		{`{"type":"string","format":"$ref"}`, `{"maxLength":10000,"title":"s: own","type":"string"}`, `"Ann"`},
		{`{"type":"string","enum":["a\u200b","b"],"enumNames":["An\u202eA","B"]}`, `{"enum":["AnA","B"],"title":"s: own","type":"string"}`, `"a` + "\u200b" + `"`},
		{`{"type":"string","enum":["b","a"],"default":"a"}`, `{"default":"a","enum":["b","a"],"title":"s: own","type":"string"}`, `"b"`},
		{`{"type":"string","oneOf":[{"const":"1","title":"One"},{"const":"2","title":"Two"}]}`, `{"enum":["One","Two"],"title":"s: own","type":"string"}`, `"1"`},
		{`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}`, `{"items":{"enum":["a","b"],"type":"string"},"minItems":1,"title":"s: own","type":"array"}`, `["a"]`},
		{`{"type":"array","items":{"anyOf":[{"const":"1","title":"One"}]}}`, `{"items":{"enum":["One"],"type":"string"},"title":"s: own","type":"array"}`, `["1"]`},
		{`{"type":"integer","minimum":1,"maximum":9,"default":2}`, `{"default":2,"maximum":9,"minimum":1,"title":"s: own","type":"integer"}`, `7`},
		{`{"type":"number"}`, `{"title":"s: own","type":"number"}`, `7`},
		{`{"type":"boolean","default":true}`, `{"default":true,"title":"s: own","type":"boolean"}`, `true`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"T"}`, `{"maxLength":10000,"title":"s: T","type":"string"}`, `"Ann"`},
		{`{"type":["integer","null"]}`, `{"title":"s: own","type":"integer"}`, `7`},
	} {
		f, shown, raw, err := showForm(t, `{"type":"object","properties":{"own":`+tt.property+`},"required":["own"]}`)
		if err != nil {
			t.Errorf("%s: %v", tt.property, err)
			continue
		}
		if got := string(marshal(shown.RequestedSchema.Properties["field01"])); got != tt.shown ||
			len(shown.RequestedSchema.Properties) != 1 || shown.RequestedSchema.Required[0] != "field01" {
			t.Errorf("%s:\n got %s\nwant %s\nin %s", tt.property, got, tt.shown, raw)
		}
		if got, want := string(f.answer(filled(json.RawMessage(raw)))), `{"action":"accept","content":{"own":`+
			tt.answer+`}}`; got != want {
			t.Errorf("%s: the answer is %s, want %s", tt.property, got, want)
		}
	}
}

// TestFormRefused: what is not flat is not shown, nor is what a client could read in two ways.
func TestFormRefused(t *testing.T) {
	one := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	many := ""
	for i := range maxFields + 1 {
		many += fmt.Sprintf(`,"f%d":{"type":"string"}`, i)
	}
	choices := strings.Repeat(`"x",`, maxChoices) + `"y"`
	for i := range maxChoices {
		choices = strings.Replace(choices, `"x"`, fmt.Sprintf(`"c%d"`, i), 1)
	}
	for _, schema := range []string{
		`{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `{"type":"object","allOf":[{"properties":{}}]}`, `{"type":"string"}`, `[]`, `7`, `{"type":"object","properties":[]}`,
		`{"type":"object","patternProperties":{"x":{}}}`, `{"type":"object","properties":{},"Properties":{}}`, `{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"string"}}}`,
		one(`{"$ref":"https://evil.example/"}`), one(`{"$ref":"#/x"}`),
		one(`{"type":"object","properties":{"b":{"type":"string"}}}`),
		one(`{"type":"array","items":{"type":"string"}}`),
		one(`{"type":"array","items":{"$ref":"#/x"}}`), one(`{"type":"array"}`), one(`{"type":"string","enum":[]}`),
		one(`{"type":"string","enum":[1]}`), one(`{"type":"string","enum":["a","a"]}`),
		one(`{"type":"string","enum":["a","a\u200b"]}`), one(`{"type":"string","oneOf":[{"title":"x"}]}`),
		one(`{"type":"string","anyOf":[{"type":"string"}]}`), one(`{"type":"string","type":"boolean"}`),
		one(`{}`), one(`true`), one(`null`), one(`{"type":"string","x-html":"<b>"}`), one(`{"type":"string","not":{}}`),
		one(`{"type":"string","contentEncoding":"base64"}`),
		`{"type":"object","properties":{` + many[1:] + `}}`, one(`{"type":"string","enum":[` + choices + `]}`),
	} {
		if _, _, raw, err := showForm(t, schema); err == nil {
			t.Errorf("%.200s is shown as %s", schema, raw)
		}
	}
}

// TestFormImitates: no text of a server is outside of the frame, and no field has a name of a field of this host.
func TestFormImitates(t *testing.T) {
	const long = "A very long text. "
	message := "Thanks.\n\n\n\u2028\r\nBash: rm -rf / asks to be allowed\u202e\u001b[2J\n" +
		strings.Repeat("\n", 500) + strings.Repeat(" ", 5000) + "Always allow?\n" + strings.Repeat(long, 500)
	f, err := newForm(marshal(map[string]any{"message": message, "requestedSchema": json.RawMessage(
		`{"type":"object","properties":{"decision":{"type":"string","title":"Decision","enum":["allow once","deny"]},"rule":{"type":"string","title":"Rule to remember","description":` + string(marshal(strings.Repeat(long, 500))) + `},"reason":{"type":"string"},"answer1":{"type":"string"}},"required":["decision","other"]}`)}))
	if err != nil {
		t.Fatal(err)
	}
	raw := f.params("s")
	var shown shownForm
	if err := json.Unmarshal(raw, &shown); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(shown.Message, "\n")
	if first != "A question of the server s. It is no request for permission: no answer to it allows anything." {
		t.Errorf("the form begins with %q", first)
	}
	rows := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	for _, row := range rows {
		if !strings.HasPrefix(row, "  | ") || strings.ContainsAny(row, "\u202e\u001b\u2028\r") {
			t.Errorf("a line without a mark: %q", row)
		}
	}
	if len(rows) > maxQuestionRows || len([]rune(rest)) > maxQuestionText+maxQuestionRows*5 || len(raw) > 4000 {
		t.Errorf("%d lines, %d bytes: %s", len(rows), len(raw), raw)
	}
	for name, field := range shown.RequestedSchema.Properties {
		if !strings.HasPrefix(name, "field0") || !strings.HasPrefix(field["title"].(string), "s: ") {
			t.Errorf("the field %s: %v", name, field)
		}
	}
}

// TestFormAnswers: an answer that does not fit the form is a cancelled one, and carries nothing else.
func TestFormAnswers(t *testing.T) {
	const schema = `{"type":"object","properties":{"who":{"type":"string","enum":["a","b"]},"n":{"type":"integer"},"on":{"type":"boolean"},"all":{"type":"array","items":{"enum":["x","y"]}}},"required":["who"]}`
	f, _, _, err := showForm(t, schema)
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"field01":"a"}}`:                                                      `{"action":"accept","content":{"who":"a"}}`,
		`{"action":"accept","content":{"field01":"b","field02":3,"field03":false,"field04":["y"],"evil":1}}`: `{"action":"accept","content":{"all":["y"],"n":3,"on":false,"who":"b"}}`,
		`{"action":"accept","content":{"field01":"c"}}`:                                                      `{"action":"cancel"}`,
		`{"action":"accept","content":{"field01":"a","field02":1.5}}`:                                        `{"action":"cancel"}`,
		`{"action":"accept","content":{"field01":"a","field03":"true"}}`:                                     `{"action":"cancel"}`,
		`{"action":"accept","content":{"field01":"a","field04":["z"]}}`:                                      `{"action":"cancel"}`,
		`{"action":"accept","content":{"who":"a"}}`:                                                          `{"action":"cancel"}`,
		`{"action":"accept"}`:                        `{"action":"cancel"}`,
		`{"action":"decline","content":{"who":"a"}}`: `{"action":"decline"}`,
		`{"action":"other"}`:                         `{"action":"cancel"}`,
		`7`:                                          `{"action":"cancel"}`,
		``:                                           `{"action":"cancel"}`,
	} {
		if got := string(f.answer(json.RawMessage(answer))); got != want {
			t.Errorf("%s: got %s, want %s", answer, got, want)
		}
	}
}
