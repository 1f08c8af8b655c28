package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const testDefinition = "---\nname: reviewer\ndescription: reviews\n---\nReview it.\n"

func TestLoad(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, dir string) // dir is .claude/agents, and does not exist yet
		want string                         // part of the error; "" for a definition that is read
	}{
		{"a file", func(t *testing.T, dir string) { write(t, dir, testDefinition) }, ""},
		{"a link to a file", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "../denied"), testDefinition)
			write(t, dir, "")
			replace(t, filepath.Join(dir, "reviewer.md"), filepath.Join(dir, "../denied/reviewer.md"))
		}, "not a regular file"},
		{"a link to a directory", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "../denied"), testDefinition)
			replace(t, dir, filepath.Join(dir, "../denied"))
		}, "it is a symbolic link"},
		{"too long", func(t *testing.T, dir string) {
			write(t, dir, testDefinition+strings.Repeat("x", maxDefinition))
		}, "more than 65536 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "agents")
			tc.make(t, dir)
			all, wrong := Load([]string{dir}, func(name string) string { return name })
			read := len(all) > len(builtIn())
			if tc.want == "" && (!read || wrong != nil) {
				t.Errorf("got %v, error %v, expected the definition", all, wrong)
			}
			if tc.want != "" && (read || wrong == nil || !strings.Contains(wrong.Error(), tc.want)) {
				t.Errorf("got %v, error %v, expected none and %q", all, wrong, tc.want)
			}
		})
	}
}

// TestParse has the members of definitions, and what is wrong with them.
func TestParse(t *testing.T) {
	const needed = "name: one\ndescription: does\n  it\n"
	base := Definition{Name: "one", Description: "does it", Prompt: "Do it."}
	with := func(change func(*Definition)) Definition {
		d := base
		change(&d)
		return d
	}
	for _, tc := range []struct {
		members string
		want    Definition
		wrong   string // part of the error
	}{
		{needed, base, ""},
		{needed + "tools: Read, Grep", with(func(d *Definition) { d.Tools = []string{"Read", "Grep"} }), ""},
		{needed + "tools: [Read, 'Bash(git:*)', Task, mcp__s]", with(func(d *Definition) { d.Tools = []string{"Read", "Bash", "Agent", "mcp__s"} }), ""},
		{needed + "tools: []", with(func(d *Definition) { d.Tools = []string{"none"} }), ""},
		{needed + "tools:", base, ""},
		{needed + "disallowedTools: Bash", with(func(d *Definition) { d.Denied = []string{"Bash"} }), ""},
		{needed + "mcpServers: []", with(func(d *Definition) { d.Servers = []string{} }), ""},
		{needed + "mcpServers: {b: {}, a: {}}", with(func(d *Definition) { d.Servers = []string{"a", "b"} }), ""},
		{needed + "model: inherit", base, ""},
		{needed + "model: small", with(func(d *Definition) { d.Model = "small" }), ""},
		{needed + "permissionMode: plan", with(func(d *Definition) { d.Mode = "plan" }), ""},
		{needed + "permissionMode: bypassPermissions", base, "ignored: permissionMode bypassPermissions"},
		{needed + "permissionMode: [plan]", base, "ignored: permissionMode [plan]"},
		{needed + "maxTurns: 3", with(func(d *Definition) { d.MaxTurns = 3 }), ""},
		{needed + "maxTurns: -3", base, "ignored: maxTurns -3"},
		{needed + "maxTurns: many", base, "ignored: maxTurns many"},
		{needed + "isolation: worktree\nbackground: true\ncolor: red", with(func(d *Definition) { d.Isolation, d.Background = "worktree", true }), ""},
		{needed + "isolation: remote", base, "ignored: isolation remote"},
		{needed + "skills: [x]\nhooks: {}", base, "the agent one: ignored: hooks, skills"},
		{"description: nameless", Definition{}, "left out: name: expected letters"},
		{"name: ../one\ndescription: x", Definition{}, `got "../one"`},
		{"name: one\ndescription: \" \"", Definition{}, "left out: it has no description"},
		{"name: one\nname: two", Definition{}, "is not YAML"},
		{"{{", Definition{}, "is not YAML"},
		{"- a list", Definition{}, "is not YAML"},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll("---\n"+strings.TrimSuffix(tc.members, "\n")+"\n---\n\nDo it.\n", "\n", end)
			got, err := parse([]byte(text), func(name string) string { return map[string]string{"Task": "Agent"}[name] })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%q (-want +got)\n%s", text, diff)
			}
			if tc.wrong == "" && err != nil || tc.wrong != "" &&
				(err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("%q: got error %v, expected %q", text, err, tc.wrong)
			}
		}
	}
	for _, text := range []string{"", "---", "---\n---\n", "name: one\n---\n", "---\nname: one\ndescription: x\n"} {
		if d, err := parse([]byte(text), nil); err == nil || !strings.Contains(err.Error(), "left out") {
			t.Errorf("%q: got %v, error %v, expected that it is left out", text, d, err)
		}
	}
}

// TestPrecedence has a directory of a root go before that of the user, and neither before what is built in.
func TestPrecedence(t *testing.T) {
	root, user := filepath.Join(t.TempDir(), "agents"), filepath.Join(t.TempDir(), "agents")
	write(t, root, "---\nname: Reviewer\ndescription: of the root\n---\n")
	write(t, user, testDefinition)
	for _, dir := range []string{root, user} {
		if err := os.WriteFile(filepath.Join(dir, "explore.md"),
			[]byte("---\nname: Explore\ndescription: with all tools\n---\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, wrong := Load([]string{root, user, filepath.Join(root, "none")}, func(name string) string { return name })
	if got := len(all); got != len(builtIn())+1 || all[0].Description != "of the root" {
		t.Errorf("got %v, expected that of the root and what is built in", all)
	}
	for _, d := range all {
		if d.Name == "explore" && !d.ReadsOnly() {
			t.Errorf("the built-in explore was replaced by %v", d)
		}
	}
	if wrong == nil || strings.Count(wrong.Error(), "is built in: give it another name") != 2 {
		t.Errorf("got error %v, expected one for each explore.md", wrong)
	}
}

// TestList holds the list to its bytes, whatever the definitions say.
func TestList(t *testing.T) {
	for _, n := range []int{1, 20, 100, maxDefinitions} {
		for _, size := range []int{1, 100, 60_000} {
			all := builtIn()
			for i := range n {
				all = append(all, Definition{Name: fmt.Sprintf("agent-%d", i), Description: strings.Repeat("é", size)})
			}
			text := List(all)
			if len(text) > maxListed || !utf8.ValidString(text) || !strings.Contains(text, "- general: ") {
				t.Errorf("%d definitions of %d characters: got %d bytes\n%s", n, size, len(text), text)
			}
			if listed := strings.Count(text, "\n- "); listed < len(all) &&
				!strings.Contains(text, fmt.Sprintf("- and %d more: ", len(all)-listed+1)) {
				t.Errorf("%d definitions of %d characters: %d lines, and the rest is not counted\n%s", n, size,
					listed, text)
			}
		}
	}
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "reviewer.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace puts a symbolic link in the place of what has a name.
func replace(t *testing.T, name, target string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Skip(err)
	}
}
