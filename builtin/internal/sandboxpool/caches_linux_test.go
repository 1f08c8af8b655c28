package sandboxpool

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/statedir"
)

// TestCacheVariables: a tool that finds its cache needs no variable. Another one is led to a directory of the
// sandbox's own, or to the host's cache without which builds would fail.
func TestCacheVariables(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range caches {
		if name, _, _ := strings.Cut(row.variable, "="); name != "" {
			t.Setenv(name, "")
		}
	}
	t.Setenv("GOPATH", "")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	policy, err := guard.New(guard.Config{Roots: []string{t.TempDir()}, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		make    string // a file below the home directory
		text    string
		env     string
		overlay []string // below the home directory
		entry   string   // of what is returned
		not     string   // that begins no entry
	}{
		{name: "fresh", entry: "GOMODCACHE=SCRATCH/cache/go-mod", not: "GOCACHE="},
		{name: "all in the first", entry: "XDG_CACHE_HOME=SCRATCH/cache", not: "PIP_CACHE_DIR="},
		{name: "overlay", overlay: []string{".cache", ".cargo"}, entry: "GRADLE_USER_HOME=SCRATCH/cache/gradle", not: "CARGO_HOME="},
		{name: "overlay of the first", overlay: []string{".cache"}, entry: "npm_config_cache=SCRATCH/cache/npm", not: "XDG_CACHE_HOME="},
		{name: "filled", make: ".cargo/registry/x", entry: "XDG_CACHE_HOME=SCRATCH/cache", not: "CARGO_HOME="},
		{name: "not filled", make: ".gradle/x", entry: "GRADLE_USER_HOME=SCRATCH/cache/gradle"},
		{name: "filled below the first", make: ".cache/huggingface/hub/x", entry: "HF_HOME=HOME/.cache/huggingface"},
		{name: "set by a person", env: "PIP_CACHE_DIR=HOME/elsewhere", entry: "PIP_CACHE_DIR=SCRATCH/cache/pip"},
		{name: "set by a person, overlay", env: "PIP_CACHE_DIR=HOME/elsewhere", overlay: []string{"elsewhere"}, not: "PIP_CACHE_DIR="},
		{name: "options are kept", env: "MAVEN_OPTS=-Xmx1g", entry: "MAVEN_OPTS=-Dmaven.repo.local=SCRATCH/cache/maven -Xmx1g"},
		{name: "go env", make: ".config/go/env", text: "GOPATH=HOME/gopath:/x\n", overlay: []string{"gopath/pkg/mod"}, not: "GOMODCACHE="},
		{name: "GOPATH", env: "GOPATH=HOME/p", overlay: []string{"go/pkg/mod"}, entry: "GOMODCACHE=SCRATCH/cache/go-mod"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scratch := t.TempDir()
			fill := strings.NewReplacer("HOME/", home+"/", "SCRATCH", scratch).Replace
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				t.Setenv(name, fill(value))
			}
			if tt.make != "" {
				path := filepath.Join(home, tt.make)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(fill(tt.text)), 0o600); err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(filepath.Join(home, strings.Split(tt.make, "/")[0]))
			}
			var overlaid []string
			for _, dir := range tt.overlay {
				overlaid = append(overlaid, filepath.Join(home, dir))
			}
			got, err := newCaches(policy).variables(scratch, overlaid)
			if err != nil {
				t.Fatal(err)
			}
			if tt.entry != "" && !slices.Contains(got, fill(tt.entry)) {
				t.Errorf("%q is not in %q", fill(tt.entry), got)
			}
			if tt.not != "" && slices.ContainsFunc(got, func(entry string) bool { return strings.HasPrefix(entry, tt.not) }) {
				t.Errorf("%s is in %q", tt.not, got)
			}
		})
	}
}

// TestOverlaysTidied: layers that were not used for long, or are too large together, are removed, but none in use.
func TestOverlaysTidied(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	log := slog.New(slog.DiscardHandler)
	cs := New(log, baseline.Open("", log), dir)
	for name, age := range map[string]time.Duration{"new-0": 0, "less-0": time.Minute, "old-0": 2 * overlayAge,
		"used-0": 2 * overlayAge} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(path, "x", "upper", "shut"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "x", "upper", "big"), make([]byte, 700), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(path, "x", "upper", "shut"), 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := statedir.TryOwn(filepath.Join(dir, "used-0"+lockSuffix))
	if err != nil {
		t.Fatal(err)
	}
	defer mark.Close()
	cs.tidyOverlays(now, 1000)
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			left = append(left, e.Name())
		}
	}
	if !slices.Equal(left, []string{"new-0", "used-0"}) {
		t.Errorf("left are %q", left)
	}
}
