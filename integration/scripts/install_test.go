package scripts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestInstallCommand goes through the commands as a person does.
func TestInstallCommand(t *testing.T) {
	p := host.NewPerson(t)
	file := filepath.Join(p.Home, "config", "Claude", "claude_desktop_config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	before := "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		args string
		ok   bool
		want []string
	}{
		{"install", false, []string{"which client?", "claude-desktop", "--list"}},
		{"install emacs --root .", false, []string{"no client \"emacs\"", "windsurf"}},
		{"install claude-desktop", false, []string{"--root DIR"}},
		{"install claude-desktop --root nowhere", false, []string{"nowhere is not a directory"}},
		{"install cursor --root .", false, []string{"does not seem to be installed"}},
		{"install claude-desktop --root . --name a/b", false, []string{"--name"}},
		{"install claude-desktop --http http://127.0.0.1:1", false, []string{"cannot name a server by its URL"}},
		{"install librechat --http http://tools.example.com/mcp", false, []string{"in clear"}},
		{"install librechat --http http://me:pw@127.0.0.1/mcp", false, []string{"password"}},
		{"install zed --force --http http://127.0.0.1:1", false, []string{"TOOLHOST_TOKEN"}},
		{"install claude-desktop --root . --dry-run", true, []string{"would be added", "+\t\t\"toolhost\": {"}},
		{"install claude-desktop --root .", true, []string{"toolhost added to " + file, "backup: ", "next:   quit Claude Desktop"}},
		{"install claude-desktop --root .", true, []string{"nothing to do"}},
		{"install --list", true, []string{"installed: " + host.Binary + " stdio --root " + p.Project + " --with AskUserQuestion,EnterPlanMode,ExitPlanMode"}},
		{"install vscode --project", true, []string{filepath.Join(p.Project, ".vscode", "mcp.json"), "before you commit it"}},
		{"install librechat --root .", true, []string{"mcpServers:\n  toolhost:\n    type: \"stdio\"\n", "next: "}},
		{"uninstall vscode --project", true, []string{"removed from"}},
		{"uninstall claude-desktop", true, []string{"toolhost removed from " + file, "next:   restart Claude Desktop"}},
		{"uninstall claude-desktop", true, []string{"nothing to do"}},
		{"install --all zed", false, []string{"exclude each other"}},
		{"install --all --root .", true, []string{"toolhost added to " + file}},
		{"uninstall claude-desktop", true, []string{"toolhost removed from " + file}},
	}
	for _, s := range steps {
		out, ok := p.Run(t, nil, host.Binary, strings.Fields(s.args)...)
		if ok != s.ok {
			t.Fatalf("%s: success %v, want %v:\n%s", s.args, ok, s.ok, out)
		}
		for _, want := range s.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the output lacks %q:\n%s", s.args, want, out)
			}
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != before {
		t.Errorf("afterwards the file holds %q, %v; want %q", after, err, before)
	}
	if _, err := os.Stat(filepath.Join(p.Project, ".vscode", "mcp.json")); err == nil {
		t.Error("the file that was made in the project is still there")
	}
}

// TestInstallList prints what a program can read.
func TestInstallList(t *testing.T) {
	out, _ := host.NewPerson(t).Run(t, nil, host.Binary, "install", "--list", "--json")
	var list []struct {
		Client, Title, File, State string
		Present                    bool
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) < 12 {
		t.Fatalf("%d clients, %v:\n%s", len(list), err, out)
	}
	for _, c := range list {
		if c.Client == "" || c.Title == "" || c.State != "absent" {
			t.Errorf("%+v", c)
		}
	}
}

// TestInstalledEntryStarts starts what an entry says, as the client would.
func TestInstalledEntryStarts(t *testing.T) {
	for name, path := range map[string]string{"cursor": ".cursor/mcp.json",
		"claude-desktop": "config/Claude/claude_desktop_config.json", "qwen": ".qwen/settings.json"} {
		p := host.NewPerson(t)
		if out, ok := p.Run(t, nil, host.Binary, "install", name, "--root", ".", "--force"); !ok {
			t.Fatal(out)
		}
		raw, err := os.ReadFile(filepath.Join(p.Home, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			McpServers map[string]struct {
				Command string
				Args    []string
			}
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		entry := file.McpServers["toolhost"]
		cmd := exec.CommandContext(t.Context(), entry.Command, entry.Args...)
		cmd.Env = host.CleanEnv(p.Home)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}` + "\n")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), `"serverInfo"`) {
			t.Errorf("%s: %q: %v: %s", name, entry.Args, err, out)
		}
	}
}
