package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/mcpserver"
)

// TestDirPlacesArguments: the arguments of hosts, which say which hosts servers share, are the same each time.
func TestDirPlacesArguments(t *testing.T) {
	state := t.TempDir()
	cfg := mcpserver.Config{
		StateDir: state, AuditLog: filepath.Join(state, "audit"),
		MCPConfig: []string{filepath.Join(state, "one.json"), filepath.Join(state, "two.json")},
	}
	var first []string
	for range 20 {
		var f hostFlags
		d, err := f.dirPlaces(t.TempDir(), cfg, &authFlags{}, &networkFlags{})
		if err != nil {
			t.Fatal(err)
		}
		args := slices.DeleteFunc(d.args, func(arg string) bool { return arg == "--apart="+d.dir })
		if first == nil {
			first = args
		}
		if !slices.Equal(args, first) {
			t.Fatalf("%q after %q", args, first)
		}
	}
	if !slices.Contains(first, "--audit-log="+cfg.AuditLog) ||
		!slices.Contains(first, "--mcp-config="+cfg.MCPConfig[1]) {
		t.Errorf("a file is missing in %q", first)
	}
}
