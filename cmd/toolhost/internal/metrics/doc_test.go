package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

//go:generate go test . -run TestTableInTheDocumentation -update

var update = flag.Bool("update", false, "write the table of metrics into the documentation")

// TestTableInTheDocumentation holds the list of metrics for users against what is served.
func TestTableInTheDocumentation(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the metrics of the process are served on Linux only")
	}
	const file = "../../docs/observability.md"
	marked := regexp.MustCompile(`(?s)(<!-- metrics: go generate ./cmd/toolhost/internal/metrics -->\n).*?(<!-- /metrics -->)`)
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !marked.Match(old) {
		t.Fatalf("%s has no place for the table", file)
	}
	m := New()
	h := openHost(t, m)
	h.Call(t.Context(), h.AdmitNamed(""), mcpserver.Request{Tool: "Read", Args: json.RawMessage(`{"file_path":"a.txt"}`)})
	w := NewWorkspaces(func() int { return 1 })
	w.Done("alice", http.StatusOK, time.Second)
	var p page
	w.write(&p)
	own, _, _ := strings.Cut(p.String(), "# HELP "+authFailures.name) // which is in the other table
	table := tableOf(string(m.write(h.Operator().Stats(), "v1")) + own)
	now := marked.ReplaceAllStringFunc(string(old), func(string) string {
		return "<!-- metrics: go generate ./cmd/toolhost/internal/metrics -->\n" + table + "<!-- /metrics -->"
	})
	if now == string(old) {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: run go generate ./cmd/toolhost/internal/metrics\nwant:\n%s", file, table)
	}
	if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

var labelName = regexp.MustCompile(`[{,]([a-z]+)="`)

// tableOf lists the families of a page with their labels.
func tableOf(page string) string {
	var b strings.Builder
	b.WriteString("| metric | labels | meaning |\n|---|---|---|\n")
	for _, part := range strings.Split(page, "# HELP ")[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		name, help, _ := strings.Cut(head, " ")
		if !strings.HasPrefix(name, "toolhost_") {
			continue // of the Go runtime and the process, which everybody knows
		}
		_, samples, _ := strings.Cut(rest, "\n")
		first, _, _ := strings.Cut(samples, "\n")
		var labels []string
		for _, m := range labelName.FindAllStringSubmatch(first, -1) {
			if m[1] != "le" && m[1] != "quantile" {
				labels = append(labels, "`"+m[1]+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.Join(labels, " "), help)
	}
	return b.String()
}
