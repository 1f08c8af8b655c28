package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
)

// skillText is a SKILL.md.
func skillText(name string) string {
	return "---\nname: " + name + "\ndescription: does " + name +
		"\nmetadata:\n  version: 1\n---\nFirst read references/a.md.\n"
}

// skillHost opens a host with skills of the workspace and of the user.
func skillHost(t *testing.T, change ...func(*Config)) *pipeClient {
	t.Helper()
	return startPipe(t, map[string]string{
		".claude/skills/build/SKILL.md": skillText("build"), ".claude/skills/build/references/a.md": "A.\n", ".claude/skills/build/logo.bin": "\xff\xfe",
		".claude/skills/secret/SKILL.md": skillText("secret"), ".claude/skills/secret/key": "hunter2", ".claude/skills/renamed/SKILL.md": skillText("other"),
		".claude/skills/linked/SKILL.md": skillText("linked"), "target": "target",
	}, append([]func(*Config){func(c *Config) {
		home := ownHome(t)
		writeFile(t, filepath.Join(home, ".claude", "skills", "build", "SKILL.md"), skillText("build"))
		writeFile(t, filepath.Join(home, ".claude", "skills", "notes", "SKILL.md"), skillText("notes"))
		writeFile(t, filepath.Join(home, ".claude", "skills", "notes", "a b.md"), "A.\n")
		if err := os.Mkdir(filepath.Join(home, ".claude", "skills", "notes", "empty"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../../../target", filepath.Join(c.Roots[0], ".claude", "skills", "linked", "link")); err != nil {
			t.Skip(err)
		}
		c.With, c.TrustWorkspace, c.Deny = []string{"Skill"}, true, []string{"Read(**/key)"}
	}}, change...)...)
}

// skillRequest is a modern request.
func skillRequest(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, params, modernMeta)
}

// TestSkillsListed: who gets which skills, and why others are left out.
func TestSkillsListed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string // the addresses; "" if there is no such method
	}{
		{"trusted", func(*Config) {}, "skill://user/build/SKILL.md skill://user/notes/SKILL.md skill://workspace/build/SKILL.md"},
		{"not trusted", func(c *Config) { c.TrustWorkspace = false }, "skill://user/build/SKILL.md skill://user/notes/SKILL.md"},
		{"denied", func(c *Config) { c.Deny = append(c.Deny, "Read(~/.claude/**)") }, "skill://workspace/build/SKILL.md"},
		{"the tool is denied", func(c *Config) { c.Deny = append(c.Deny, "Skill") }, ""},
		{"the tool is not served", func(c *Config) { c.With = nil }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := skillHost(t, tt.change)
			c.send(skillRequest(1, "server/discover", ""))
			if a := c.receive(); strings.Contains(string(a.Result), skillsExtension) != (tt.want != "") {
				t.Errorf("declared: %s", a.Result)
			}
			c.send(skillRequest(2, methodSkillList, ""))
			a := c.receive()
			if tt.want == "" {
				if a.Error == nil || a.Error.Code != mcp.METHOD_NOT_FOUND {
					t.Errorf("skills/list: %+v", a)
				}
				return
			}
			var listed struct{ Skills []gateway.Skill }
			if err := json.Unmarshal(a.Result, &listed); err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, s := range listed.Skills {
				all = append(all, s.URI)
			}
			if got := strings.Join(all, " "); got != tt.want {
				t.Errorf("skills:\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestSkillRead: files of skills are read by their addresses, and nothing else is.
func TestSkillRead(t *testing.T) {
	c := skillHost(t)
	for _, tt := range []struct{ method, uri, want string }{
		{"resources/read", "skill://workspace/build/SKILL.md", "name: build"},
		{"resources/read", "skill://workspace/build/references/a.md", `"text":"A.\n"`},
		{"resources/read", "skill://workspace/build/logo.bin", `"blob":"//4="`},
		{"resources/read", "skill://user/notes/SKILL.md", "name: notes"},
		{"resources/read", "skill://workspace/secret/key", "-32602"},
		{"resources/read", "skill://workspace/linked/link", "error"},
		{"resources/read", "skill://workspace/build/../../../target", "error"},
		{"resources/read", "skill://workspace/build/%2e%2e/%2e%2e/%2e%2e/target", "error"},
		{"resources/read", "skill://other/build/SKILL.md", "-32602"},
		{"resources/read", "other://workspace/build/SKILL.md", "-32602"},
		{methodDirectory, "skill://user/notes", `"name":"a b.md"`},
		{methodDirectory, "skill://user/notes", "a%20b.md"},
		{methodDirectory, "skill://user/notes/empty", `"resources":[]`},
		{methodDirectory, "skill://user/notes/none", "-32602"},
		{methodDirectory, "skill://workspace/secret", "-32602"},
		{methodSkillGet, "skill://workspace/build/SKILL.md", `"version":1`},
		{methodSkillGet, "skill://workspace/secret/SKILL.md", "-32602"},
		{methodDirectory, "skill://workspace/build", directoryType},
		{methodDirectory, "skill://workspace/build/references", "references/a.md"},
		{methodDirectory, "skill://workspace/build/references/a.md", "-32602"},
		{methodDirectory, "skill://workspace", "-32602"},
	} {
		c.send(skillRequest(1, tt.method, fmt.Sprintf(`"uri":%q,`, tt.uri)))
		a := c.receive()
		got := string(a.Result)
		if a.Error != nil {
			got = fmt.Sprintf("error %d: %s", a.Error.Code, a.Error.Message)
		}
		if !strings.Contains(got, tt.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.uri, got, tt.want)
		}
	}
}

// TestSkillReadHook: a hook sees the content of a skill's file, and what it makes of it is what the client gets.
func TestSkillReadHook(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	c := skillHost(t, func(*Config) {
		command := `grep -q 'First read' && echo '{"hookSpecificOutput": {"updatedToolOutput": "changed"}}'`
		hook := map[string]any{"matcher": "Skill",
			"hooks": []any{map[string]any{"type": "command", "command": command}}}
		userSettings(t, map[string]any{"hooks": map[string]any{"PostToolUse": []any{hook}}})
	})
	c.send(skillRequest(1, "resources/read", `"uri":"skill://workspace/build/SKILL.md",`))
	if a := c.receive(); !strings.Contains(string(a.Result), `"text":"changed"`) {
		t.Errorf("read: %s %+v", a.Result, a.Error)
	}
}

// TestSkillTool: the tool names the skills, and returns the instructions of one with its directory.
func TestSkillTool(t *testing.T) {
	c := skillHost(t)
	c.send(skillRequest(1, "tools/list", ""))
	if a := c.receive(); !strings.Contains(string(a.Result), `- notes: does notes`) ||
		!strings.Contains(string(a.Result), `- user/build: does build`) {
		t.Errorf("the description names no skills: %s", a.Result)
	}
	for args, want := range map[string]string{
		`{"skill":"notes","args":"of today"}`: "First read references/a.md.",
		`{"skill":"workspace/build"}`:         filepath.Join(c.root, ".claude", "skills", "build"),
		`{"skill":"build"}`:                   "give the path, user/build or workspace/build",
		`{"skill":"secret"}`:                  "First read", // its denied file stays denied
		`{"skill":"none"}`:                    "there is no skill",
	} {
		c.send(toolCall(2, "Skill", args))
		if a := c.receive(); !strings.Contains(string(a.Result), want) {
			t.Errorf("%s: %s, want %s", args, a.Result, want)
		}
	}
}
