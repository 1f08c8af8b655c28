package guard

import (
	"slices"
	"strings"
	"testing"
)

func TestProtected(t *testing.T) {
	for _, tt := range []struct {
		path         string
		in, settings bool
	}{
		{"/ws/a/.git/hooks/x", true, false},
		{"/ws/.GIT/config", true, false},
		{"/ws/.g\u200cit/config", true, false},
		{"/ws/a/.envrc", true, false},
		{"/ws/a/.envrc.md", false, false},
		{"/ws/src/main.go", false, false},
		{"/ws/.claude/settings.json", true, true},
		{"/ws/.claude/Settings.LOCAL.json", true, true},
		{"/ws/.claude/agents/x.md", true, false},
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

// TestLists: each list names a thing once, and secrets lie in the home directory or nowhere.
func TestLists(t *testing.T) {
	for _, list := range [][]string{protectedNames(), homeSecrets("/home/u")} {
		sorted := slices.Sorted(slices.Values(list))
		if len(slices.Compact(sorted)) != len(list) {
			t.Errorf("a name stands there twice: %q", list)
		}
	}
	if slices.ContainsFunc(protectedNames(), func(name string) bool { return strings.ContainsAny(name, `/\`) || name != strings.TrimSpace(name) }) {
		t.Error("a protected name is more than one element")
	}
	if len(homeSecrets("")) > 0 {
		t.Error("where no home directory is known there are secrets")
	}
}
