package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
)

// search makes one call of ToolSearch.
func search(t testing.TB, h *Host, query string) string {
	t.Helper()
	args, _ := json.Marshal(map[string]any{"query": query})
	r := do(h, toolSearchName, string(args))
	if r.IsError {
		t.Fatalf("%.100s: %s", query, r.Text)
	}
	return r.Text
}

// through makes one call of a tool through ToolCall.
func through(h *Host, name, args string) Reply {
	raw, _ := json.Marshal(map[string]any{"name": name, "arguments": json.RawMessage(args)})
	return do(h, toolCallName, string(raw))
}

// TestToolSearchAnswer: a tool is shown with all that a model needs to call it.
func TestToolSearchAnswer(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) { c.ToolSearch, c.Allow = "on", []string{"mcp__git"} })
	serve(t, h, true, foreignTool("git", "createBranch", "Makes a branch.\nOf another.", "{\n \"type\": \"object\",\n \"properties\": {\"from\": {\"type\": \"string\"}, \"force\": {\"type\": \"boolean\"}}, \"required\": [\"from\", \"force\"]}"),
		foreignTool("git", "log", "Shows commits.", "{}"))
	want := `mcp__git__createBranch
Makes a branch.
Of another.
schema: {"type":"object","properties":{"from":{"type":"string"},"force":{"type":"boolean"}},"required":["from","force"]}
ToolCall {"name": "mcp__git__createBranch", "arguments": {"from": "…", "force": false}}

`
	for _, query := range []string{"new branch", "+createB branch", "select:mcp__git__createBranch",
		"select: mcp__toolhost__mcp__git__createBranch", "+CREATEB"} {
		if got := search(t, h, query); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	if got := search(t, h, "select:mcp__git__log,Read,mcp__git__lgo,mcp__git__log"); !strings.HasPrefix(got,
		"mcp__git__log\n") || strings.Count(got, "mcp__git__log\n") != 1 ||
		!strings.Contains(got, "call it by its name: Read {\"file_path\": \"…\"}") ||
		!strings.HasSuffix(got, "There is no tool mcp__git__lgo. Similar: mcp__git__log.\n") {
		t.Errorf("selected: %s", got)
	}
	if got := search(t, h, "xyzzy"); got != "No tool was found. Servers: git (2 tools).\nThe nearest names: mcp__git__log, mcp__git__createBranch.\n" {
		t.Errorf("nothing: %s", got)
	}
	if r := through(h, "mcp__git__createBranch", `{"from":"main","force":true}`); r.IsError ||
		r.Text != `mcp__git__createBranch ran with {"force":true,"from":"main"}` {
		t.Errorf("called: %+v", r)
	}
}

// TestToolSearchInput: what cannot be searched for is told, and nothing breaks.
func TestToolSearchInput(t *testing.T) {
	t.Parallel()
	h, _ := openHost(t, nil)
	serve(t, h, true, foreignTool("s", "größe_messen", "Misst.", "{}"), foreignTool("s", "other", ".*", "{}"))
	for args, want := range map[string]string{
		`{"query":""}`: "expected words", `{"query":"+"}`: "expected words", `{"query":"+ ++"}`: "expected words", `{"query":"*.[(\\"}`: "expected words",
		`{"query":"select:"}`: "expected names after select:", `{"query":"select:,"}`: "expected names after select:", `{}`: "query is missing", `{"query":5}`: "expected a string",
		`{"query":"x","max_results":0}`: "expected 1 or more, got 0", `{"query":"x","max_results":1e9}`: "expected 20 or less", `{"query":"x","max_results":21}`: "expected 20 or less",
		`{"query":"Größe","max_results":"5"}`: "mcp__s__größe_messen", `{"query":"+größe"}`: "mcp__s__größe_messen", `{"query":"+("}`: "No tool was found",
		`{"query":"` + strings.Repeat("other ", 2000) + `"}`: "mcp__s__other", `{"query":"select:` + strings.Repeat("x,", 5000) + `"}`: "There is no tool x.",
		`{"query":"select:` + strings.Repeat("y", 1<<20) + `"}`: "There is no tool yyy",
	} {
		if r := do(h, toolSearchName, args); !strings.Contains(r.Text, want) || len(r.Text) > maxFound {
			t.Errorf("%.60s: %.300s", args, r.Text)
		}
	}
	names := "select:"
	for i := range 2000 {
		names += fmt.Sprintf("n%d,", i)
	}
	if got := search(t, h, names); !strings.Contains(got, "of 1990 further names") {
		t.Errorf("%.300s", got)
	}
}

// TestToolSearchRoom: an answer fits, and what does not fit is named.
func TestToolSearchRoom(t *testing.T) {
	h, _ := openHost(t, nil)
	long := func(n int) string {
		return `{"type":"object","properties":{"long":{"description":"` + strings.Repeat("y", n) + `"}}}`
	}
	var tools []*builtin.Def
	for i := range 20 {
		tools = append(tools, foreignTool("s", fmt.Sprintf("word%02d", i), "word "+strings.Repeat("doc ", 500),
			long(3000)))
	}
	serve(t, h, true, append(tools, foreignTool("s", "vast", "huge", long(60_000)))...)
	got := do(h, toolSearchName, `{"query":"word","max_results":20}`).Text
	if n := strings.Count(got, "\nschema: "); len(got) > maxFound || n < 5 || n > 9 ||
		!strings.Contains(got, "select:NAME shows one") || strings.Count(got, "mcp__s__word19") != 1 {
		t.Errorf("%d characters, %d schemas: %s", len(got), n, got[max(0, len(got)-800):])
	}
	if got := search(t, h, "vast"); len(got) > maxFound ||
		!strings.Contains(got, "The definition of mcp__s__vast is too long to show. Its parameters: long") {
		t.Errorf("%.300s", got)
	}
}

// TestToolSearchDescription is bounded, has tools while they fit, and is the same whatever is asked.
func TestToolSearchDescription(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "[tool0]", 300: "what s0 does", 6000: "\ns0 (", 200_000: " more"} {
		c := startPipe(t, nil, func(c *Config) { c.ToolSearch = "on" })
		var tools []*builtin.Def
		for i := range min(n, 3000) {
			tools = append(tools, foreignTool(fmt.Sprint("s", i*n/min(n, 3000)/300%3000), fmt.Sprint("tool", i), "", "{}"))
		}
		serve(t, c.host, true, tools...)
		list := func() string {
			c.send(listTools)
			return string(c.receive().Result)
		}
		first := list()
		search(t, c.host, "tool0")
		through(c.host, "mcp__s0__tool0", "{}")
		if again := list(); again != first {
			t.Errorf("%d tools: the list has changed: %s", n, again)
		}
		for _, d := range c.host.Tools(Local()) {
			if d.Name == toolSearchName && (len(d.Doc) > maxSearchDoc || !strings.Contains(d.Doc, want)) {
				t.Errorf("%d tools: %s", n, d.Doc)
			}
		}
		if len(first) > 20_000 {
			t.Errorf("%d tools: the list has %d bytes", n, len(first))
		}
	}
}

// TestToolSearchMode: which tools are listed.
func TestToolSearchMode(t *testing.T) {
	t.Parallel()
	many := func(n, size int) (tools []*builtin.Def) {
		for i := range n {
			tools = append(tools, foreignTool("s", fmt.Sprint(i), strings.Repeat("x", size), "{}"))
		}
		return tools
	}
	searched := func(h *Host) bool {
		names := strings.Join(names(h.Tools(Local())), " ")
		if found := strings.Contains(names, "ToolCall ToolSearch"); found == strings.Contains(names, "mcp__") &&
			len(h.tools.now().Tools) > 0 {
			t.Errorf("listed: %s", names)
		}
		return strings.Contains(names, "ToolSearch")
	}
	for _, tt := range []struct {
		mode    string
		n, size int
		want    bool
	}{
		{"on", 0, 0, true}, {"on", 1, 0, true}, {"off", 0, 0, false}, {"off", 500, 500, false}, {"auto", 0, 0, false}, {"auto", 40, 800, false}, {"", 41, 0, true}, {"auto", 10, 3600, true},
	} {
		h, _ := openHost(t, nil, func(c *Config) { c.ToolSearch = tt.mode })
		serve(t, h, true, many(tt.n, tt.size)...)
		if got := searched(h); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
	h, _ := openHost(t, nil)
	for i, step := range []struct {
		n          int
		configured bool
		want       bool
	}{{1, true, false}, {50, false, true}, {1, false, true}, {1, true, false}} {
		if serve(t, h, step.configured, many(step.n, 0)...); searched(h) != step.want {
			t.Errorf("step %d: %t", i, !step.want)
		}
	}
	for n, want := range map[int]bool{maxUnasked: false, maxUnasked + 1: true} { // servers that have not been asked yet
		h, _ := openHost(t, nil)
		f := foreignSet{Configured: true}
		for i := range n {
			f.Servers = append(f.Servers, foreignServer{Name: fmt.Sprint("s", i), Unknown: true})
		}
		if err := h.setForeign(f); err != nil || searched(h) != want {
			t.Errorf("%d unknown servers: %t: %v", n, !want, err)
		}
		if serve(t, h, false, many(3, 0)...); searched(h) {
			t.Errorf("%d servers, once they are known, are not listed", n)
		}
	}
	if _, err := Open(Config{Roots: []string{t.TempDir()}, ToolSearch: "maybe"}); err == nil ||
		!strings.Contains(err.Error(), `got "maybe"`) {
		t.Errorf("a wrong mode: %v", err)
	}
}

// TestAlwaysLoad: as many as are allowed are listed beside ToolSearch.
func TestAlwaysLoad(t *testing.T) {
	for size, want := range map[int]int{10: maxLoadedTools, 1000: 10, 20_000: 0} {
		h, _ := openHost(t, nil, func(c *Config) { c.ToolSearch = "on" })
		var tools []*builtin.Def
		for i := range 30 {
			d := foreignTool("s", fmt.Sprintf("%02d", i), strings.Repeat("x", size), "{}")
			d.AlwaysLoad = true
			tools = append(tools, d)
		}
		serve(t, h, true, tools...)
		if got := strings.Count(strings.Join(names(h.Tools(Local())), " "), "mcp__s__"); got != want {
			t.Errorf("%d bytes each: %d are listed", size, got)
		}
	}
}
