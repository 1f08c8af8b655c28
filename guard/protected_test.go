package guard

import (
	"slices"
	"testing"
)

func TestProtected(t *testing.T) {
	for _, tt := range []struct {
		path         string
		in, settings bool
	}{
		{"/ws/a/.git/hooks/x", true, false},
		{"/ws/.GIT/config", true, false},
		{"/ws/.git/index.lock", false, false},
		{"/ws/.git/x.lock/config", true, false},
		{"/ws/.g\u200cit/config", true, false},
		{"/ws/a/.envrc", true, false},
		{"/ws/a/.envrc.md", false, false},
		{"/ws/src/main.go", false, false},
		{"/ws/.claude/settings.json", true, true},
		{"/ws/.claude/Settings.LOCAL.json", true, true},
		{"/ws/.claude/agents/x.md", false, false},
		{"/ws/.claude/hooks/x.sh", true, false},
		{"/ws/.github/mcp.json", true, false},
		{"/ws/.npmrc", false, false},
		{"/ws/.toolhost", true, true},
		{"/ws/.toolhost/toolhost.json", true, true},
		{"/ws/.toolhost/a/b", true, false},
		{"/ws/settings.json", false, false},
	} {
		if in, settings := inProtected(tt.path), isSettingsFile(tt.path); in != tt.in || settings != tt.settings {
			t.Errorf("%q: in %v, settings %v; want %v, %v", tt.path, in, settings, tt.in, tt.settings)
		}
	}
	if isProtectedName("") || isProtectedName("git") || !isProtectedName(".Git") {
		t.Error("Is tells names wrong")
	}
}

// TestHomeSecrets checks that no secret is named twice, and that there are none without a home directory.
func TestHomeSecrets(t *testing.T) {
	list := homeSecrets("/home/u")
	sorted := slices.Sorted(slices.Values(list))
	if len(slices.Compact(sorted)) != len(list) {
		t.Errorf("a name is listed twice: %q", list)
	}
	if len(homeSecrets("")) > 0 {
		t.Error("there are secrets without a home directory")
	}
}
