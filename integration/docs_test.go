package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run TestSettingsPage -update

// docs is where the pages for users are.
const docs = "../cmd/toolhost/docs/"

// TestSettingsPage holds the page of settings and the published schema against what the binary takes.
func TestSettingsPage(t *testing.T) {
	cmd := exec.Command(binary, "schema")
	cmd.Env = cleanEnv(tempDir(t))
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
	table.WriteString("| setting | default | for instance | what it does |\n|---|---|---|---|\n")
	top.rows(&table, "")
	marked := regexp.MustCompile(`(?s)(<!-- settings: go generate ./integration -->\n).*?(<!-- /settings -->)`)
	upToDate(t, docs+"settings.md", func(old []byte) []byte {
		if !marked.Match(old) {
			t.Fatal("the page of settings has no place for their table")
		}
		return marked.ReplaceAllFunc(old, func([]byte) []byte {
			return []byte("<!-- settings: go generate ./integration -->\n" + table.String() + "<!-- /settings -->")
		})
	})
}

// upToDate holds a generated file against what it should be, or writes it.
func upToDate(t *testing.T, file string, make func(old []byte) []byte) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	now := make(old)
	switch {
	case bytes.Equal(old, now):
	case !*update:
		t.Errorf("%s is out of date: run go generate ./integration", file)
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
		if len(p.Properties) > 0 {
			p.rows(out, path+name+".")
		} else if p.Description != "" {
			fmt.Fprintf(out, "| `%s%s` | %s | %s | %s |\n", path, name, code(p.Default), code(slices.Concat(p.Examples...)), p.Description)
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

// TestLinks: every link from one page to another, or to a file here, leads somewhere.
func TestLinks(t *testing.T) {
	pages := []string{"../README.md"}
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".md") {
			pages = append(pages, docs+e.Name())
		}
	}
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		dir := page[:strings.LastIndexByte(page, '/')+1]
		for _, m := range link.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(dir + string(m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// TestRulesPage runs the examples of the page on rules: each row of a table is what toolhost check must say.
func TestRulesPage(t *testing.T) {
	page, err := os.ReadFile(docs + "rules.md")
	if err != nil {
		t.Fatal(err)
	}
	if !contained(t) {
		t.Skip("nothing contains commands on this machine, so that most of them would be asked")
	}
	root := tempDir(t)
	for name, text := range map[string]string{".env": "SECRET=1\n", "src/main.go": "package main\n", "vendor/x.go": "package x\n", "Makefile": "all:\n\tgo build ./...\nclean:\n\trm -rf build\n"} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows := regexp.MustCompile(`(?m)^\| ?(.*?) ?\| (.*) \| (allow|ask|deny)\b.*\|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 30 {
		t.Fatalf("only %d rows are found", len(rows))
	}
	for _, row := range rows {
		if got := checked(t, root, row[1], row[2]); got != row[3] {
			t.Errorf("%s: %s, not %s", row[0], got, row[3])
		}
	}
}

// checked is what toolhost check says of a call under rules, both as the page writes them.
func checked(t *testing.T, root, rules, call string) string {
	t.Helper()
	permissions := map[string]any{}
	for _, m := range regexp.MustCompile("(allow|ask|deny|mode) `([^`]*)`").FindAllStringSubmatch(rules, -1) {
		if m[1] == "mode" {
			permissions["defaultMode"] = m[2]
			continue
		}
		list, _ := permissions[m[1]].([]string)
		permissions[m[1]] = append(list, m[2])
	}
	home := tempDir(t)
	settings, err := json.Marshal(map[string]any{"permissions": permissions})
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, ".claude"), 0o755)
	}
	file := filepath.Join(root, ".claude", "settings.json") // where /p is relative to the root
	if err == nil {
		err = os.WriteFile(file, settings, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	tool, text, _ := strings.Cut(strings.TrimSuffix(call, "`"), "`")
	args := map[string]any{"file_path": text}
	switch tool = strings.TrimSpace(tool); tool {
	case "":
		tool, args = "Bash", map[string]any{"command": text}
	case "Write":
		args["content"] = "x"
	case "Edit":
		args["old_string"], args["new_string"] = "a", "b"
	}
	input, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "check", tool, string(input), "--root", root, "--trust-workspace")
	cmd.Env, cmd.Dir = cleanEnv(home), root
	out, _ := cmd.Output() // a call that would not run is told by the exit status
	said, _, _ := strings.Cut(string(out), "\n")
	return said
}

// TestTroubleshootingPage: an error that the page explains is one that the program can say.
func TestTroubleshootingPage(t *testing.T) {
	page, err := os.ReadFile(docs + "troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, room := range []string{"builtin", "cmd", "guard", "mcpserver", "readstate", "resultstore"} {
		err := filepath.WalkDir(filepath.Join("..", room), func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			source.Write(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (?:40. )?`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		for part := range strings.SplitSeq(row[1], "…") {
			for part := range strings.SplitSeq(part, " N ") {
				if part = strings.Trim(part, " ()"); len(part) > 3 && !strings.Contains(source.String(), part) && !strings.HasPrefix(part, "Read-only file") {
					t.Errorf("nothing says %q", part)
				}
			}
		}
	}
}
