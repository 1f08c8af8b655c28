package builtin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type boundInput struct {
	FilePath string   `json:"file_path" jsonschema:"a file"`
	Offset   int      `json:"offset,omitempty" jsonschema:"a number"`
	All      bool     `json:"all,omitempty" jsonschema:"a switch"`
	Names    []string `json:"names,omitempty" jsonschema:"a list"`
	Mode     string   `json:"mode,omitempty" jsonschema:"a choice"`
	Head     *int     `json:"head_limit,omitempty" jsonschema:"a number that may be zero"`
}

func boundBinder(t *testing.T) func(string) (boundInput, map[string]any, error) {
	t.Helper()
	schema, err := jsonschema.For[boundInput](nil)
	if err != nil {
		t.Fatal(err)
	}
	schema.Properties["offset"].Minimum = jsonschema.Ptr(1.0)
	schema.Properties["mode"].Enum = []any{"on", "off"}
	for name, kind := range map[string]string{"names": "array", "head_limit": "integer"} {
		schema.Properties[name].Type, schema.Properties[name].Types = kind, nil
	}
	return func(raw string) (in boundInput, args map[string]any, err error) {
		args, err = newBinder("Tool", schema, reflect.TypeFor[boundInput]()).bind(json.RawMessage(raw),
			reflect.ValueOf(&in).Elem())
		return in, args, err
	}
}

func TestBind(t *testing.T) {
	three := 3
	tests := []struct {
		name, raw string
		want      boundInput
	}{
		{"as it should be", `{"file_path":"a","offset":3,"all":true,"names":["x"]}`, boundInput{FilePath: "a", Offset: 3, All: true, Names: []string{"x"}}},
		{"a number sent as a string", `{"file_path":"a","offset":"3"}`, boundInput{FilePath: "a", Offset: 3}},
		{"a whole number with a fraction of zero", `{"file_path":"a","offset":3.0}`, boundInput{FilePath: "a", Offset: 3}},
		{"a boolean sent as a string", `{"file_path":"a","all":"True"}`, boundInput{FilePath: "a", All: true}},
		{"a list sent as a string", `{"file_path":"a","names":"[\"x\",\"y\"]"}`, boundInput{FilePath: "a", Names: []string{"x", "y"}}},
		{"a parameter of the client's own", `{"file_path":"a","wait_for_previous":true}`, boundInput{FilePath: "a"}},
		{"null for not given", `{"file_path":"a","offset":null}`, boundInput{FilePath: "a"}},
		{"an empty choice is none", `{"file_path":"a","mode":""}`, boundInput{FilePath: "a"}},
		{"a pointer", `{"file_path":"a","head_limit":"3"}`, boundInput{FilePath: "a", Head: &three}},
		{"a character in two halves, and what only looks like one", `{"file_path":"\ud83d\uDE00\\ud83d"}`, boundInput{FilePath: "😀\\ud83d"}},
		{"0 and 1 for a boolean", `{"file_path":"a","all":1}`, boundInput{FilePath: "a", All: true}},
		{"yes for a boolean", `{"file_path":"a","all":"yes"}`, boundInput{FilePath: "a", All: true}},
		{"an empty text for not given", `{"file_path":"a","offset":"","all":"","head_limit":"null"}`, boundInput{FilePath: "a"}},
		{"one element for a list", `{"file_path":"a","names":"x"}`, boundInput{FilePath: "a", Names: []string{"x"}}},
		{"the whole object as a string", `"{\"file_path\":\"a\"}"`, boundInput{FilePath: "a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := boundBinder(t)(test.raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// manyNames are so many fields that no one knows.
func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"unknown%d":1`, i)
	}
	return b.String()
}

func TestBindRefuses(t *testing.T) {
	tests := []struct {
		name, raw string
		want      []string // each must stand in the error
	}{
		{"a wrong type names field, value and type", `{"file_path":"a","offset":"many"}`, []string{"offset:", `"many"`, "expected an integer"}},
		{"a number that is too large", `{"file_path":"a","offset":1000000000000000000}`, []string{"offset:", "expected an integer of at most 9007199254740991"}},
		{"a fraction", `{"file_path":"a","offset":1.5}`, []string{"offset:", "1.5", "an integer"}},
		{"a number for a text", `{"file_path":7}`, []string{"file_path:", "the number 7", "expected a string"}},
		{"null for a text", `{"file_path":null}`, []string{"file_path:", "null", "a string"}},
		{"an object for a text", `{"file_path":{"a":1}}`, []string{"file_path:", "an object"}},
		{"a missing field", `{}`, []string{"file_path is missing"}},
		{"nothing at all", ``, []string{"file_path is missing"}},
		{"a list instead of an object", `[1]`, []string{"one JSON object", "a list"}},
		{"too small", `{"file_path":"a","offset":0}`, []string{"offset:", "got 0", "expected 1 or more"}},
		{"no such choice", `{"file_path":"a","mode":"maybe"}`, []string{"mode:", `"maybe"`, "on, off"}},
		{"an unknown field, and the one that was meant", `{"path":"a"}`, []string{`"path" is not a parameter`, "did you mean file_path?", "file_path is missing"}},
		{"a slip of the pen", `{"file_path":"a","ofset":1}`, []string{`"ofset"`, "did you mean offset?"}},
		{"a number for a boolean", `{"file_path":"a","all":2}`, []string{"all:", "expected a boolean, got the number 2"}},
		{"a number for a list of texts", `{"file_path":"a","names":2}`, []string{"names:", "expected an array"}},
		{"half a character", `{"file_path":"a\ud83d"}`, []string{`file_path: \ud83d is half of a character`}},
		{"the other half", `{"file_path":"\\\uDE00"}`, []string{`file_path: \uDE00 is half of a character`}},
		{"halves in the wrong order", `{"file_path":"\ude00\ud83d"}`, []string{`\ude00 is half`}},
		{"a long name", `{"file_path":"a","` + strings.Repeat("offset", 1000) + `":1}`, []string{`"offsetoffset`, `…" is not a parameter of`}},
		{"a long value", `{"file_path":"a","offset":"` + strings.Repeat("é", 1000) + `"}`, []string{`the string "` + strings.Repeat("é", 39) + "…"}},
		{"very many names", `{"file_path":"a"` + strings.Repeat(`,"x":1`, 3) + manyNames(1000) + `}`, []string{"the rest was not checked"}},
		{"other spelling", `{"filePath":"a"}`, []string{"did you mean file_path?"}},
		{"an unknown field like no other", `{"file_path":"a","colour":1}`, []string{`"colour"`, "it has file_path, offset"}},
		{"a field twice", `{"file_path":"a","offset":1,"file_path":"b"}`, []string{`"file_path" is given twice`}},
		{"a field twice, spelt with an escape", `{"file_path":"a","offset":1,"file\u005fpath":"b"}`, []string{`"file_path" is given twice`}},
		{"a field twice in an object sent as a string", `"{\"file_path\":\"a\",\"file_path\":\"b\"}"`, []string{`"file_path" is given twice`}},
		{"all at once", `{"offset":"x","wat":1}`, []string{"offset:", `"wat"`, "file_path is missing"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := boundBinder(t)(test.raw)
			if err == nil {
				t.Fatal("it was bound")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
		})
	}
}

// TestForms: other forms of arguments that have one meaning.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		tool      *Def
		raw, want string // the input as JSON, "" if it is refused
	}{
		{writeTool, `{"file_path":"a.json","content":{"b":1,"a":[true,"\u00e9<"],"n":1.50}}`, `{"file_path":"a.json","content":"{\n  \"b\": 1,\n  \"a\": [\n    true,\n    \"\\u00e9\u003c\"\n  ],\n  \"n\": 1.50\n}\n"}`},
		{writeTool, `{"file_path":"d/.eslintrc","contents":[]}`, `{"file_path":"d/.eslintrc","content":"[]\n"}`},
		{writeTool, `{"file_path":"a.json","content":5}`, `{"file_path":"a.json","content":"5\n"}`},
		{writeTool, `{"file_path":"a.json","content":"{}"}`, `{"file_path":"a.json","content":"{}"}`},
		{writeTool, `{"file_path":"a.txt","content":{"b":1}}`, ""},
		{writeTool, `{"file_path":".bashrc","content":[]}`, ""},
		{writeTool, `{"file_path":"a.json","content":null}`, ""},
		{Read, `{"file_path":"a.pdf","pages":2}`, `{"file_path":"a.pdf","pages":"2"}`},
		{Read, `{"file_path":"a.pdf","pages":2.5}`, ""},
		{Read, `{"file_path":"a","limit":-1}`, `{"file_path":"a"}`},
		{Read, `{"file_path":"a","limit":-2}`, ""},
		{grepTool, `{"pattern":"x","head_limit":-1}`, `{"pattern":"x","head_limit":0}`},
		{grepTool, `{"pattern":404,"glob":["*.ts","*.{js,mjs}"],"type":["go"]}`, `{"pattern":"404","glob":"*.ts,*.{js,mjs}","type":"go"}`},
		{grepTool, `{"pattern":1.5}`, ""},
		{grepTool, `{"pattern":"x","glob":[1]}`, ""},
		{grepTool, `{"pattern":"x","glob":null}`, `{"pattern":"x"}`},
		{notebookEditTool, `{"notebook_path":"a.ipynb","cell_id":"c","new_source":["a\n","b"]}`, `{"notebook_path":"a.ipynb","cell_id":"c","new_source":"a\nb"}`},
		{notebookEditTool, `{"notebook_path":"a.ipynb","cell_id":"c","new_source":["a","b"]}`, `{"notebook_path":"a.ipynb","cell_id":"c","new_source":"a\nb"}`},
	} {
		call, err := tt.tool.Bind(json.RawMessage(tt.raw))
		if err != nil {
			if tt.want != "" {
				t.Errorf("%s: %v", tt.raw, err)
			}
			continue
		}
		if got, err := call.Input(); err != nil || !sameJSON(got, []byte(tt.want)) {
			t.Errorf("%s: %s, %v, want %s", tt.raw, got, err, tt.want)
		}
	}
}

// TestSchemasArePortable holds every tool's schema against what strict clients take, and against the schema of schemas.
func TestSchemasArePortable(t *testing.T) {
	for _, d := range All() {
		if _, err := d.Schema.CloneSchemas().Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		raw, err := json.Marshal(d.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), `"null"`) || strings.Contains(string(raw), `"type":[`) {
			t.Errorf("%s: a type with alternatives: %s", d.Name, raw)
		}
		if !strings.Contains(string(raw), `"additionalProperties":false`) {
			t.Errorf("%s: unknown fields are allowed: %s", d.Name, raw)
		}
		for name, p := range d.Schema.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", d.Name, name)
			}
		}
	}
}

// TestAliases: what models give a tool of another host is taken for what they mean, and for hooks and rules it is that.
func TestAliases(t *testing.T) {
	for _, test := range []struct{ tool, raw, want string }{
		{"Read", `{"path":"a","length":"5","description":"x"}`, `{"file_path":"a","limit":5}`},
		{"Read", `{"path":"a","file_path":"b"}`, ""},
		{"Edit", `{"path":"a","old_str":"b","new_str":"c"}`, `{"file_path":"a","old_string":"b","new_string":"c"}`},
		{"Edit", `{"file_path":"a","old_str":"b","old_string":"c","new_string":"d"}`, ""},
		{"Write", `{"path":"a","file_text":"b"}`, `{"file_path":"a","content":"b"}`},
		{"Write", `{"file_path":"a","file_text":"b","file_content":"c"}`, ""},
		{"Bash", `{"command":"a","timeout_ms":5,"command_description":"b"}`, `{"command":"a","timeout":5,"description":"b"}`},
		{"Grep", `{"pattern":"a","file_path":"b","-c":true,"-r":true}`, `{"pattern":"a","path":"b","output_mode":"count"}`},
		{"Grep", `{"pattern":"a","-l":true}`, `{"pattern":"a","output_mode":"files_with_matches"}`},
		{"Grep", `{"pattern":"a","-l":false}`, `{"pattern":"a"}`},
		{"Grep", `{"pattern":"a","-l":true,"output_mode":"content"}`, ""},
		{"Grep", `{"pattern":"a","-l":true,"-c":true}`, ""},
		{"Grep", `{"pattern":"a","-c":"many"}`, ""},
		{"Grep", `{"query":"a","include":"*.go","-r":true,"max_results":"5"}`, `{"pattern":"a","glob":"*.go","head_limit":5}`},
		{"Grep", `{"pattern":"a","query":"a"}`, `{"pattern":"a"}`},
		{"Grep", `{"pattern":"a","query":"b"}`, ""},
		{"Grep", `{"pattern":"a","-C":1,"-c":true}`, `{"pattern":"a","output_mode":"count","-C":1}`},
		{"Bash", `{"cmd":"a","cwd":null,"runInBackground":"true"}`, `{"command":"a","run_in_background":true}`},
		{"Bash", `{"cmd":"a","cwd":"b"}`, ""},
		{"Bash", `{"cmd":"a","script":"b"}`, ""},
		{"Bash", `{"command":"a","timeout_seconds":5}`, ""},
		{"Write", `{"filePath":"a","text":"b"}`, `{"file_path":"a","content":"b"}`},
		{"Write", `{"file_path":"a","content":"b","text":"b","path":null}`, `{"file_path":"a","content":"b"}`},
		{"Edit", `{"filePath":"a","oldString":"b","newString":"c","replaceAll":true}`, `{"file_path":"a","old_string":"b","new_string":"c","replace_all":true}`},
		{"Edit", `{"file_path":"a","edits":[]}`, ""},
		{"TaskOutput", `{"bash_id":"a"}`, `{"task_id":"a"}`},
		{"TaskStop", `{"shell_id":"a"}`, `{"task_id":"a"}`},
		{"NotebookEdit", `{"notebook_path":"a","cell_number":1,"new_source":"b"}`, ""},
		{"Read", `{"absolutePath":"a","start_line":2}`, `{"file_path":"a","offset":2}`},
		{"Read", `{"file_path":"a","view_range":[1,2]}`, ""},
	} {
		i := slices.IndexFunc(All(), func(d *Def) bool { return d.Name == test.tool })
		var got json.RawMessage
		call, err := All()[i].Bind(json.RawMessage(test.raw))
		if err == nil {
			got, err = call.Input()
		}
		if test.want != "" && err != nil || test.want != string(got) {
			t.Errorf("%s %s: got %s, %v, want %s", test.tool, test.raw, got, err, test.want)
		}
	}
}

func FuzzBind(f *testing.F) {
	for _, seed := range []string{`{"file_path":"a"}`, `[]`, `{"offset":"1e9"}`, `{"names":"[]"}`, `"{}"`,
		`{"a":{"b":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, d := range All() {
			call, err := d.Bind(raw)
			if (call == nil) == (err == nil) {
				t.Fatalf("%s: call %v, error %v", d.Name, call, err)
			}
		}
	})
}
