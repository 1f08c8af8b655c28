package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
)

// TestServedOnRequest: the table of clients names tools that are served on request.
func TestServedOnRequest(t *testing.T) {
	for _, c := range clients.All() {
		for _, name := range c.With {
			if !slices.ContainsFunc(builtin.All(), func(d *builtin.Def) bool { return d.Name == name && d.OptIn }) {
				t.Errorf("%s: %s is not a tool that is served on request", c.Name, name)
			}
		}
	}
}

// A copy is written into the layer only, though a client has planted a link there.
func TestCopyNewer(t *testing.T) {
	dir := t.TempDir()
	from, to, outside := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "outside")
	for path, text := range map[string]string{from: "new", outside: "kept"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(from, later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, to); err != nil {
		t.Skip(err)
	}
	if err := copyNewer(from, to); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{outside: "kept", to: "new"} {
		if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if err := copyNewer(filepath.Join(dir, "none"), to); err != nil {
		t.Error(err)
	}
}

// A layer hides no root.
func TestLayerShowsRoots(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, "config")
	for _, dir := range []string{"config/project", "config-of-others", "state"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for root, private := range map[string]bool{
		config: false, filepath.Join(config, "project"): false,
		filepath.Join(home, "config-of-others"): true, home: true,
	} {
		r := runClient{env: clients.Env{Home: home}, state: filepath.Join(home, "state"), roots: []string{root}}
		spec := builtin.CellSpec{Layers: map[string]string{}}
		layer, err := r.layer(&spec, config, 0)
		if err != nil || spec.Layers[config] == layer != private || layer == config == private {
			t.Errorf("with the root %s: %q, %v, %v", root, layer, spec.Layers, err)
		}
	}
}

// TestLayersOfWorkspaces: each workspace has layers of its own, and those of one can be removed.
func TestLayersOfWorkspaces(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, ".config")
	if err := os.Mkdir(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".x"), nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	layers := map[string]string{}
	cache := filepath.Join(home, "cache") // is made
	getenv := func(name string) string { return map[string]string{"XDG_CACHE_HOME": cache}[name] }
	for _, root := range []string{"/a", "/b"} {
		r := runClient{name: "x", env: clients.Env{Home: home, Getenv: getenv}, state: filepath.Join(home, "run", "x")}
		spec := builtin.CellSpec{}
		if err := r.files(&spec, []string{root}); err != nil || len(spec.Layers) != 4 || spec.Layers[cache] == "" {
			t.Fatal(spec.Layers, err)
		}
		layers[root] = spec.Layers[config]
	}
	if err := forgetLayers(home, []string{"/a"}); err != nil {
		t.Fatal(err)
	}
	for root, want := range map[string]bool{"/a": false, "/b": true} {
		if _, err := os.Stat(layers[root]); err == nil != want {
			t.Errorf("the layer of %s is there: %t, %v", root, !want, err)
		}
	}
}

// TestEntryAdded: the entry of this host comes to what the user has configured, in a copy.
func TestEntryAdded(t *testing.T) {
	for _, tt := range []struct{ program, variable, file, user string }{
		{program: "gemini", file: ".gemini/settings.json", user: `{"theme": "dark", "mcpServers": {"toolhost": {"command": "old"}}}`},
		{program: "opencode", variable: "OPENCODE_CONFIG_CONTENT", user: `{"theme": "dark"}`},
	} {
		home := t.TempDir()
		t.Setenv("HOME", home)
		t.Setenv("OPENCODE_CONFIG", "/of/the/user.json")
		if tt.variable != "" {
			t.Setenv(tt.variable, tt.user)
		}
		if tt.file != "" {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(home, tt.file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, tt.file), []byte(tt.user), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := newRunClient(tt.program, filepath.Join(home, "state"))
		if err != nil {
			t.Fatal(err)
		}
		spec := builtin.CellSpec{Env: []string{tt.variable + "=" + tt.user, "OTHER=1"}}
		if err := r.files(&spec, []string{filepath.Join(home, "project")}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.entry(&spec, home, "/cell/mcp.sock"); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(spec.Env, "\n")
		if tt.file != "" {
			copied, err := os.ReadFile(filepath.Join(spec.Layers[filepath.Join(home, ".gemini")], "settings.json"))
			if own, _ := os.ReadFile(filepath.Join(home, tt.file)); err != nil || string(own) != tt.user {
				t.Errorf("%s: the user's file holds %s, %v", tt.program, own, err)
			}
			got = string(copied)
		}
		if !strings.Contains(got, "dark") || strings.Count(got, "/cell/mcp.sock") != 1 ||
			strings.Contains(got, "old") || tt.variable != "" && strings.Count(got, tt.variable+"=") != 1 {
			t.Errorf("%s: %s", tt.program, got)
		}
	}
}
