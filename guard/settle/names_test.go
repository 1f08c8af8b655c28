package settle

import "testing"

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		rel  string
		want Class
	}{
		{"a.txt", Free}, {".vscode", Held}, {".vscode/tasks.json", Held}, {"a/b/.VSCode/tasks.json", Held},
		{".claude/settings.json", Held}, {".claude/commands/a.md", Prompt}, {".claude/agents", Prompt},
		{"CLAUDE.md", Prompt}, {"a/agents.md", Prompt}, {"x.code-workspace", Held}, {"code-workspace", Free},
		{".hg/store/00changelog.i", Free}, {"a/.hg/hgrc", Held}, {".svn/wc.db", Free}, {".jj/repo/config.toml", Held}, {".jj/repo/store/x", Free},
		{"node_modules/a/.vscode/settings.json", Free}, {"node_modules/a/.mcp.json", Held}, {"node_modules/a/.claude/settings.json", Held},
		{".claude/worktrees/w/main.go", Free}, {".claude/worktrees/w/.envrc", Held}, {".claude/worktrees/w/.claude/settings.json", Held},
		{".github/mcp.json", Held}, {".github/workflows/a.yml", Free}, {"kilo.json", Held}, {".devin/mcp_config.json", Held},
		{".agents/mcp_config.json", Held}, {".git/config", Free}, {".cursor/rules/a.mdc", Prompt}, {".cursor/mcp.json", Held},
		{".gitattributes", Free}, {".npmrc", Free}, {"package.json", Free}, {".husky/pre-commit", Held}, {"mise.toml", Held},
	} {
		if got := ClassOf(c.rel); got != c.want {
			t.Errorf("%s: class %d, want %d", c.rel, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Names() {
		if n.Reason == "" || n.Source == "" || seen[n.Pattern] {
			t.Errorf("%s: no reason, no source, or twice", n.Pattern)
		}
		if seen[n.Pattern] = true; !IsMark(n.elements[0]) {
			t.Errorf("%s: does not begin a name", n.Pattern)
		}
	}
	if len(seen) < 80 {
		t.Errorf("%d names: the table was not read", len(seen))
	}
}

func TestNameInNotes(t *testing.T) {
	for rel, want := range map[name]string{".vscode/tasks.json": ".vscode/tasks.json", ".idea/a b": ".idea/a b",
		".idea/x\n[Note": `".idea/x\n[Note"`, ".idea/x (new), y": `".idea/x (new), y"`} {
		if got := rel.String(); got != want {
			t.Errorf("%q: %s, want %s", string(rel), got, want)
		}
	}
}
