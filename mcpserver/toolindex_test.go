package mcpserver

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
)

// readTable returns the fields of the lines of a file of testdata, which tabs separate.
func readTable(t testing.TB, name string) (lines [][]string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return lines
}

// realTools are 187 tools of eleven servers that many people use, in own words.
func realTools(t testing.TB) (tools []*builtin.Def) {
	t.Helper()
	for _, f := range readTable(t, "toolsearch-tools.txt") {
		server, tool, _ := strings.Cut(f[0], "/")
		var properties []string
		for _, name := range strings.Fields(f[2]) {
			properties = append(properties, fmt.Sprintf(`%q:{"type":"string"}`, name))
		}
		tools = append(tools, foreignTool(server, tool, f[1], `{"type":"object","properties":{`+strings.Join(properties, ",")+`}}`))
	}
	return tools
}

// TestToolIndex: plain questions find the tool that answers them, in the same order on every run.
func TestToolIndex(t *testing.T) {
	t.Parallel()
	tools, questions := realTools(t), readTable(t, "toolsearch-questions.txt")
	if len(tools) != 187 || len(questions) != 47 {
		t.Fatalf("%d tools, %d questions", len(tools), len(questions))
	}
	x := newToolIndex(tools, nil)
	first, five := 0, 0
	for _, q := range questions {
		rank := -1
		found := x.find(q[0], nil)
		for i, e := range found[:min(5, len(found))] {
			if rank < 0 && slices.Contains(strings.Fields(q[1]), e.def.Server+"/"+strings.TrimPrefix(e.name, "mcp__"+e.def.Server+"__")) {
				rank = i
			}
		}
		if rank == 0 {
			first++
		} else {
			t.Logf("%d: %s: %s", rank, q[0], found[0].name)
		}
		if rank >= 0 {
			five++
		}
		for range 3 {
			again := newToolIndex(tools, nil).find(q[0], nil)
			if !slices.EqualFunc(again, found, func(a, b toolEntry) bool { return a.name == b.name }) {
				t.Errorf("%s: the order differs from run to run", q[0])
			}
		}
	}
	t.Logf("first %d, in five %d of %d", first, five, len(questions))
	if n := float64(len(questions)); float64(first) < .80*n || float64(five) < .93*n {
		t.Errorf("first %.2f, expected .80; in five %.2f, expected .93", float64(first)/n, float64(five)/n)
	}
}

// TestToolIndexTies: equal tools are ordered by name, and words are those of camelCase and of every script.
func TestToolIndexTies(t *testing.T) {
	x := newToolIndex([]*builtin.Def{foreignTool("b", "same", "", "{}"), foreignTool("a", "same", "", "{}"),
		foreignTool("c", "getHTTPStatus2", "日本語 Größe", "{}")}, nil)
	for query, want := range map[string]string{"same": "mcp__a__same mcp__b__same",
		"getHttpstatus2": "mcp__c__getHTTPStatus2", "größe": "mcp__c__getHTTPStatus2", "日本語": "mcp__c__getHTTPStatus2", "nowhere": ""} {
		var names []string
		for _, e := range x.find(query, nil) {
			names = append(names, e.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// manyTools are the real tools many times, on servers of other names.
func manyTools(t testing.TB, n int) (tools []*builtin.Def) {
	for copied, real := 0, realTools(t); len(tools) < n; copied++ {
		for _, d := range real[:min(len(real), n-len(tools))] {
			server := fmt.Sprintf("%s%d", d.Server, copied)
			tools = append(tools, foreignTool(server, strings.TrimPrefix(d.Name, "mcp__"+d.Server+"__"), d.Doc, string(d.RawSchema)))
		}
	}
	return tools
}

// BenchmarkToolIndex searches 10,000 tools: 20 ms are the limit.
func BenchmarkToolIndex(b *testing.B) {
	x, questions := newToolIndex(manyTools(b, 10_000), nil), readTable(b, "toolsearch-questions.txt")
	for i := 0; b.Loop(); i++ {
		x.find(questions[i%len(questions)][0], nil)
	}
}

// BenchmarkToolSearch makes whole calls of ToolSearch over 10,000 tools.
func BenchmarkToolSearch(b *testing.B) {
	h, _ := openHost(b, nil)
	serve(b, h, true, manyTools(b, 10_000)...)
	search(b, h, "first") // which makes the index
	questions := readTable(b, "toolsearch-questions.txt")
	for i := 0; b.Loop(); i++ {
		search(b, h, questions[i%len(questions)][0])
	}
}
