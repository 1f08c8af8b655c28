package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCanComeBack(t *testing.T) {
	for token, want := range map[string]bool{
		`"t"`: true, `""`: true, `7`: true, `-3`: true, `0`: true, `9007199254740991`: true, `1e3`: true,
		`null`: false, `true`: false, `1.5`: false, `{"a":1}`: false, `[1]`: false, `9007199254740993`: false, `1e300`: false,
		`"\ud800"`: false, `"\ud83d\ude00"`: true, "\"\u00e9\"": true,
		`"` + strings.Repeat("x", maxProgressToken) + `"`: true, `"` + strings.Repeat("x", maxProgressToken+1) + `"`: false,
	} {
		var decoded any
		if err := json.Unmarshal([]byte(token), &decoded); err != nil {
			t.Fatal(err)
		}
		if got := isReturnable(decoded); got != want {
			t.Errorf("%.40s: %t, want %t", token, got, want)
		}
	}
}

// TestToolsAreFound: the first sentence of the instructions names every served tool, and clients are asked to show those six at once
// that models are trained on.
func TestToolsAreFound(t *testing.T) {
	h, _ := openHost(t, nil)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	text := instructions(h.cfg.Roots, h.tools.own, nil)
	first, _, _ := strings.Cut(text, ". ")
	if len(first) > 300 {
		t.Errorf("the first sentence has %d characters: %s", len(first), first)
	}
	for _, word := range []string{"file", "read", "edit", "shell", "command", "search"} {
		if !strings.Contains(strings.ToLower(first), word) {
			t.Errorf("the first sentence does not hold %q: %s", word, first)
		}
	}
	core := 0
	for name := range s.tools {
		if name == toolSearchName || name == toolCallName {
			continue // of other tools
		}
		if !strings.Contains(first, name+" (") {
			t.Errorf("the first sentence does not name %s: %s", name, first)
		}
		if meta := s.mcp.GetTool(name).Tool.Meta; meta != nil && meta.AdditionalFields[metaAlwaysLoad] == true &&
			meta.AdditionalFields[metaSearchHint] != "" {
			core++
		}
	}
	if core != 6 {
		t.Errorf("%d tools are always loaded", core)
	}
}
