package clients

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// local and remote are the servers that the tests add; the path has what has to be quoted.
var (
	local = Server{Name: "toolhost", Command: `/opt/bin/toolhost`,
		Args: []string{"stdio", "--root", `/home/jö/my "best" proj\ect`}}
	remote = Server{Name: "toolhost", URL: "http://127.0.0.1:8377/mcp", Token: "secret-token-of-the-test"}
)

// localOf is local as Install writes it for a client.
func localOf(c Client) Server {
	s := local
	s.Args = Arguments(c, local.Args[2])
	return s
}

// A sample is a file as it may be found. OURS stands for the key of the servers.
type sample struct{ name, body string }

// samples are files of each format in which there is no toolhost yet.
var samples = map[string][]sample{
	"json": {
		{"empty", ""},
		{"blank", "\n"},
		{"no members", "{}"},
		{"no members, spaced", "{\n}\n"},
		{"no servers", "{\n  \"OURS\": {}\n}\n"},
		{"other settings", "{\n  \"theme\": \"dark\",\n  \"n\": 12345678901234567890.10\n}\n"},
		{"other servers", "{\n  \"OURS\": {\n    \"other\": {\n      \"command\": \"x\",\n      \"args\": []\n    }\n  },\n  \"z\": [1, 2]\n}"},
		{"one line", `{"OURS":{"other":{"command":"x"}},"z":1}`},
		{"one line, spaced", `{"OURS": {"other": {"command": "x"}}, "z": 1}` + "\n"},
		{"inline servers", "{\n    \"OURS\": { \"other\": { \"command\": \"x\" } }\n}\n"},
		{"CRLF", "{\r\n  \"OURS\": {\r\n    \"other\": {\"command\": \"x\"}\r\n  }\r\n}\r\n"},
		{"BOM", "\xef\xbb\xbf{\n  \"a\": 1\n}\n"},
		{"tabs", "{\n\t\"OURS\": {\n\t\t\"other\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t}\n}\n"},
		{"escapes", "{\n  \"\\u00fc\": \"\\ud83d\\ude00 \\/ é\",\n  \"OURS\": {}\n}\n"},
		{"mixed line breaks", "{\r\n  \"OURS\": {\n    \"other\": {\"command\": \"x\"}\r\n  }\n}"},
		{"other keys twice", "{\n  \"a\": {\"b\": 1, \"b\": 2},\n  \"OURS\": {\n    \"other\": {\"env\": {\"K\": \"1\", \"K\": \"2\"}}\n  }\n}\n"},
		{"key in escapes", "{\n  \"\\u0061\": 1,\n  \"OURS\": {\n    \"oth\\u0065r\": {\"command\": \"other\"},\n    \"日本語\": {}\n  }\n}\n"},
		{"closed on its line", "{\"a\": 1,\n \"OURS\": {\"other\": {\n  \"command\": \"x\"}}}"},
		{"name elsewhere", "{\n  \"toolhost\": 1,\n  \"projects\": {\"toolhost\": {\"OURS\": {\"toolhost\": 2}}}\n}\n"},
	},
	"jsonc": {
		{"comments", "// top\n{\n  // before\n  \"OURS\": {\n    \"other\": {\"command\": \"x\"} // behind\n    // last\n  } /* c */\n  // end\n}\n// after\n"},
		{"comments only inside", "{\n  // nothing yet\n}\n"},
		{"trailing commas", "{\n  \"a\": 1, // one\n  \"OURS\": {\n    \"other\": {\"command\": \"x\",}, // behind\n  },\n}\n"},
		{"comment at the end of the file", "{\n  \"OURS\": {\n    \"other\": {} // { \"no\": 1, }\n  }\n} // no line break"},
		{"comments everywhere", "/**/{/*a*/\"OURS\"/*b*/:/*c*/{/*d*/\"other\"/*e*/:/*f*/{}/*g*/,/*h*/}/*i*/}/*j*/"},
		{"comment behind the last comma", "{\n  \"OURS\": {\n    \"other\": {}, // }\n    /* , */\n  },\n  // }\n}\n"},
		{"BOM, tabs, CRLF, comments", "\xef\xbb\xbf{\r\n\t// c\r\n\t\"OURS\": {\r\n\t\t\"other\": {}, // d\r\n\t},\r\n}"},
		{"comments and CRLF", "{\r\n  \"OURS\": {\r\n    \"other\": {} // behind\r\n  }\r\n}\r\n"},
	},
	"toml": {
		{"empty", ""},
		{"other settings", "# top\nmodel = \"o3\" # which\n\n[tui]\ntheme = 'dark'\n"},
		{"no final newline", "model = \"o3\""},
		{"other servers", "[mcp_servers.other]\ncommand = \"x\"\nargs = [\n  \"a\", # one\n  \"b\",\n]\n\n[mcp_servers.other.env]\nK = \"v\"\n\n# the end\n"},
		{"table above", "[mcp_servers]\nother = { command = \"x\" }\n\n[z]\nwhen = 1979-05-27T07:32:00Z\nnot = nan\n"},
		{"CRLF", "model = \"o3\"\r\n\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n"},
		{"BOM", "\xef\xbb\xbfmodel = \"o3\"\n"},
		{"tabs", "[a]\n\tb = 1\n\t[a.c]\n\t\td = \"\"\"\n[mcp_servers.toolhost]\n\"\"\"\n"},
		{"dotted keys", "tui.theme = 'dark'\n\"tui\".\"näme\" = 1\n[mcp_servers]\nother.command = \"x\"\nother.env = { K = \"v\", \"a b\" = '[mcp_servers.toolhost]' }\n"},
		{"quoted headers", "[ \"mcp_servers\" . 'other' ] # [mcp_servers.toolhost]\ncommand = 'x'\n\n\n"},
		{"comment without a line break", "[mcp_servers.other]\ncommand = \"x\" # the end"},
		{"BOM and CRLF", "\xef\xbb\xbf[mcp_servers.other]\r\ncommand = \"x\"\r\n"},
		{"array of tables", "[[profile]]\nname = \"ü\"\n[[profile]]\nname = \"é\"\n"},
	},
	"yaml": {
		{"empty", ""},
		{"comments only", "# nothing\n"},
		{"other settings", "# top\nGOOSE_MODEL: o3 # which\nGOOSE_MODE: \"auto\"\n"},
		{"no final newline", "GOOSE_MODEL: o3"},
		{"other servers", "extensions:\n  developer:\n    enabled: true\n    type: builtin\n  memory:\n    type: builtin # kept\n\n# below\nGOOSE_MODEL: o3\n"},
		{"no servers", "extensions: {} # none\nGOOSE_MODEL: o3\n"},
		{"null servers", "extensions:\nGOOSE_MODEL: o3\n"},
		{"four spaces", "extensions:\n    developer:\n        enabled: true\n    # the last\nz: |\n  text\n\n  # no comment\n"},
		{"CRLF", "extensions:\r\n  developer:\r\n    enabled: true\r\nz: 1\r\n"},
		{"CRLF and comments", "# top\r\nextensions:  # ours\r\n  developer: # kept\r\n    enabled: true # so\r\n\r\n# below\r\nz: |\r\n  text\r\n"},
		{"BOM", "\xef\xbb\xbfGOOSE_MODEL: o3\n"},
		{"document", "---\nGOOSE_MODEL: o3\nlist:\n- a\n- b: c\n"},
		{"anchors", "x: &env {K: v}\nlist: &list\n- a\nextensions:\n  developer: &dev\n    envs: *env\n  memory:\n    <<: *dev\n    args: *list\nz: *list\n"},
		{"text at the end", "extensions:\n  developer:\n    description: |+\n      kept\n\n      toolhost:\nz: >-\n  folded\n  extensions:\n"},
		{"not indented list", "a:\n- b\n- c\nextensions:\n  developer: {type: builtin, enabled: true} # kept"},
		{"BOM and CRLF", "\xef\xbb\xbfextensions:\r\n  developer:\r\n    enabled: true"},
		{"unicode", "\"ü\": 'é'\nextensions:\n  \"größe\":\n    enabled: false\n"},
	},
}

// samplesOf are the files that a client may have.
func samplesOf(c Client) []sample {
	var all []sample
	switch f := c.format().(type) {
	case jsonFormat:
		all = append(all, samples["json"]...)
		if !f.strict {
			all = append(all, samples["jsonc"]...)
		}
	case tomlFormat:
		all = samples["toml"]
	case yamlFormat:
		all = samples["yaml"]
	}
	for i := range all {
		all[i].body = strings.ReplaceAll(all[i].body, "OURS", c.Container)
	}
	return all
}

// editable are the clients whose files are edited.
func editable() []Client {
	var some []Client
	for _, c := range All() {
		if c.Editable() {
			some = append(some, c)
		}
	}
	return some
}

// visible shows what a golden file cannot hold or an editor would change.
func visible(raw []byte) []byte {
	text := strings.NewReplacer("\xef\xbb\xbf", "<BOM>", "\r", "<CR>").Replace(string(raw))
	if !strings.HasSuffix(text, "\n") {
		text += "<no newline>\n"
	}
	return []byte(text)
}

// TestGolden compares what becomes of each sample, for each client, with what was looked at by a person.
func TestGolden(t *testing.T) {
	for _, c := range editable() {
		t.Run(c.Name, func(t *testing.T) {
			var got txtar.Archive
			add := func(name string, raw []byte) {
				got.Files = append(got.Files, txtar.File{Name: name, Data: visible(raw)})
			}
			for _, s := range samplesOf(c) {
				raw, err := c.put([]byte(s.body), localOf(c), false)
				if err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				add(s.name, raw)
			}
			if c.HTTP != nil {
				raw, err := c.put(nil, remote, false)
				if err != nil {
					t.Fatal(err)
				}
				add("over HTTP", raw)
				if raw, err = c.put(raw, localOf(c), false); err != nil {
					t.Fatal(err)
				}
				add("from HTTP to a command", raw)
			}
			file := filepath.Join("testdata", "golden", c.Name+".txtar")
			if *update {
				if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
				t.Errorf("%s (-want +got); go test -update writes it anew:\n%s", file, diff)
			}
		})
	}
}

// TestPutTwice finds nothing to do the second time, and nothing of the entry left after take.
func TestPutTwice(t *testing.T) {
	for _, c := range editable() {
		for _, s := range samplesOf(c) {
			first, err := c.put([]byte(s.body), local, false)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.Name, s.name, err)
			}
			second, err := c.put(first, local, false)
			if err != nil || string(second) != string(first) {
				t.Errorf("%s, %s: the second time (%v):\n%s", c.Name, s.name, err,
					cmp.Diff(string(first), string(second)))
			}
			if _, err := c.take(first, local.Name); err != nil {
				t.Errorf("%s, %s: take: %v", c.Name, s.name, err)
			}
		}
	}
}

// TestTakeUndoesPut: without any backup, too, the bytes are what they were where there was another server.
func TestTakeUndoesPut(t *testing.T) {
	for _, c := range editable() {
		for _, s := range samplesOf(c) {
			if !strings.Contains(s.body, "other") && !strings.Contains(s.body, "developer") {
				continue
			}
			with, err := c.put([]byte(s.body), local, false)
			if err != nil {
				t.Fatal(err)
			}
			without, err := c.take(with, local.Name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(s.body, "\n") && c.format() != (jsonFormat{}) &&
				c.format() != (jsonFormat{strict: true}) {
				without = bytes.TrimRight(without, "\r\n") // the last line had to be ended
			}
			if diff := cmp.Diff(s.body, string(without)); diff != "" {
				t.Errorf("%s, %s (-before +after):\n%s", c.Name, s.name, diff)
			}
		}
	}
}

// A comment behind a key that loses its last member stays one: YAML wants white space before it.
func TestCommentBehindEmptyMapping(t *testing.T) {
	for before, want := range map[string]string{
		"extensions: {} # none\nz: 1\n":                 "extensions: {} # none\nz: 1\n",
		"extensions:  # none\nz: 1\n":                   "extensions: {}  # none\nz: 1\n",
		"extensions: # none":                            "extensions: {} # none\n",
		"# top\r\nextensions: # none\r\nz: 1 # one\r\n": "# top\r\nextensions: {} # none\r\nz: 1 # one\r\n",
		"a: 1\r\nextensions: {}\t# none\r\n":            "a: 1\r\nextensions: {}\t# none\r\n",
	} {
		c := known("goose")
		with, err := c.put([]byte(before), local, false)
		if err != nil {
			t.Fatalf("%q: %v", before, err)
		}
		after, err := c.take(with, local.Name)
		if err != nil || string(after) != want {
			t.Errorf("%q became %q, %v, want %q", before, after, err, want)
		}
	}
}
