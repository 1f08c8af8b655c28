package release

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

//go:generate go test . -run TestSettingsPage -update

// TestSettingsPage holds the page of settings and the published schema against what the binary takes.
func TestSettingsPage(t *testing.T) {
	cmd := exec.Command(host.Binary, "schema")
	cmd.Env = host.CleanEnv(host.TempDir(t))
	schema, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	upToDate(t, docs+"settings.schema.json", func([]byte) []byte { return schema })
	var top node
	if err := json.Unmarshal(schema, &top); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| setting | default, or an example | what it does |\n|---|---|---|\n")
	top.rows(&table, "")
	generated(t, docs+"settings.md", "settings", table.String())
}

// generated holds the part of a page between two marks against what it should be, or writes it.
func generated(t *testing.T, page, name, table string) {
	t.Helper()
	begin, end := "<!-- "+name+": go generate ./integration/... -->\n", "<!-- /"+name+" -->"
	marked := regexp.MustCompile("(?s)" + begin + ".*?" + end)
	upToDate(t, page, func(old []byte) []byte {
		if !marked.Match(old) {
			t.Fatalf("%s has no place for the table of %s", page, name)
		}
		return marked.ReplaceAllLiteral(old, []byte(begin+table+end))
	})
}

// upToDate holds a generated file against what it should be, or writes it.
func upToDate(t *testing.T, file string, make func(old []byte) []byte) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil && !*host.Update {
		t.Fatal(err)
	}
	now := make(old)
	switch {
	case bytes.Equal(old, now):
	case !*host.Update:
		t.Errorf("%s is out of date: run go generate ./integration/...", file)
	default:
		if err := os.WriteFile(file, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A node is a part of the schema: a setting, or an object of them.
type node struct {
	Type        string
	Description string
	Default     json.RawMessage
	Examples    []json.RawMessage
	Properties  map[string]node
}

// rows writes a line for each setting below a node, in alphabetical order.
func (s node) rows(out *strings.Builder, path string) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		if _, hook := p.Properties["command"]; hook { // its fields are in the page on rules
			p = node{Description: cmp.Or(p.Description,
				"A hook of the type command or http that answers allow or ask.")}
		}
		if len(p.Properties) > 0 {
			p.rows(out, path+name+".")
		} else if p.Description != "" {
			value := code(p.Default)
			if value == "" && len(p.Examples) > 0 {
				value = "e.g. " + code(p.Examples[0])
			}
			fmt.Fprintf(out, "| `%s%s` | %s | %s |\n", path, name, value, p.Description)
		}
	}
}

func code(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	var short bytes.Buffer
	if json.Compact(&short, value) != nil {
		return string(value)
	}
	return "`" + short.String() + "`"
}
