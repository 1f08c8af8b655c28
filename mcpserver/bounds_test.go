//go:build slow

package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// The longest results in characters, as they are documented.
const (
	readBound  = 87_500
	otherBound = 30_000
)

// TestResultsKeepTheirBounds: whatever a tool is asked for, its result is no longer than it may be.
func TestResultsKeepTheirBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	output := func(text string) string {
		raw, _ := json.Marshal(text)
		return `{"output_type":"stream","name":"stdout","text":` + string(raw) + `}`
	}
	cell := func(source string, outputs ...string) string {
		raw, _ := json.Marshal(source)
		return `{"cell_type":"code","id":"` + fmt.Sprint(len(source)) +
			`","metadata":{},"execution_count":1,"source":` + string(raw) + `,"outputs":[` + strings.Join(outputs, ",") + `]}`
	}
	book := func(cells ...string) string {
		return `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[` + strings.Join(cells, ",") + `]}`
	}
	many := make([]string, 150)
	for i := range many {
		many[i] = output(strings.Repeat("out\n", 5000))
	}
	files := map[string]string{
		"empty lines.txt": strings.Repeat("\n", 300_000),
		"short.txt":       strings.Repeat("x\n", 200_000),
		"forty.txt":       strings.Repeat(strings.Repeat("y", 40)+"\n", 20_000),
		"long.txt":        strings.Repeat(strings.Repeat("z", 2001)+"\n", 2_000),
		"one line.txt":    strings.Repeat("w", 3_000_000),
		"wide.txt":        strings.Repeat(strings.Repeat("語", 1999)+"\n", 500),
		"bad.txt":         strings.Repeat("x\xff\n", 100_000),
		"crlf.txt":        strings.Repeat("a\r\n", 100_000),
		"legacy.txt":      strings.Repeat("\xef\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0\n", 20_000),
		"outputs.ipynb":   book(cell("x", many...), cell("y", many...)),
		"sources.ipynb":   book(cell(strings.Repeat("x = 1\n", 50_000)), cell(strings.Repeat("y", 400_000), many...)),
		"cells.ipynb":     book(strings.Split(strings.Repeat(cell("x")+"\n", 5000)[:len(cell("x")+"\n")*5000-1], "\n")...),
		"broken.ipynb":    strings.Repeat(`{"cells":[`+"\n", 30_000),
	}
	for i := range 3000 {
		files[fmt.Sprintf("tree/%s/%d.txt", strings.Repeat("d", 100), i)] = "needle " + strings.Repeat("n", 100) + "\n"
	}
	h, _ := openHost(t, files)
	ask := func(tool string, most int, args map[string]any) {
		t.Helper()
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		r := do(h, tool, string(raw))
		if n := utf8.RuneCountInString(r.Text); n > most {
			t.Errorf("%s %.200s: %d characters, more than %d; error: %v\n%.100s…", tool, raw, n, most,
				r.IsError, r.Text)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "tree/") {
			continue
		}
		for _, page := range []map[string]any{{}, {"limit": 1}, {"limit": 1 << 30}, {"offset": 2},
			{"offset": 2, "limit": 1}, {"offset": 99_990, "limit": 50_000}} {
			page["file_path"] = name
			ask("Read", readBound, page)
		}
	}
	ask("Read", readBound, map[string]any{"file_path": "tree/" + strings.Repeat("d", 100)})
	for _, mode := range []string{"content", "files_with_matches", "count"} {
		for _, pattern := range []string{".", "needle", "z", "$"} {
			ask("Grep", otherBound, map[string]any{"pattern": pattern, "output_mode": mode, "head_limit": 1_000_000})
		}
	}
	ask("Glob", otherBound, map[string]any{"pattern": "**/*"})
	ask("Edit", otherBound, map[string]any{"file_path": "short.txt", "old_string": "x", "new_string": "y"})
	ask("Edit", otherBound, map[string]any{"file_path": "short.txt", "old_string": strings.Repeat("not there\n", 20_000), "new_string": "y"})
	do(h, "Read", `{"file_path":"short.txt","limit":1000000}`)
	ask("Edit", otherBound, map[string]any{"file_path": "short.txt", "old_string": "x",
		"new_string": strings.Repeat("w", 500), "replace_all": true})
	ask("Edit", otherBound, map[string]any{"file_path": "long.txt", "old_string": "z",
		"new_string": strings.Repeat("w\n", 500), "replace_all": true})
	ask("Write", otherBound, map[string]any{"file_path": "forty.txt", "content": strings.Repeat(strings.Repeat("v", 900)+"\n", 1000)})
	ask("NotebookEdit", otherBound, map[string]any{"notebook_path": "sources.ipynb", "cell_id": "300000",
		"new_source": strings.Repeat(strings.Repeat("v", 900)+"\n", 1000)})
	if !testing.Short() {
		ask("Bash", otherBound, map[string]any{"command": "yes | head -c 2000000"})
		ask("Bash", otherBound, map[string]any{"command": "yes 語 | head -c 2000000; exit 3"})
		ask("Bash", otherBound, map[string]any{"command": "cat 'one line.txt'"})
	}
}
