package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// replaceable are the clients whose own tools settings switch off.
func replaceable() (some []Client) {
	for _, c := range All() {
		if c.Replaces != nil {
			some = append(some, c)
		}
	}
	return some
}

// TestReplaceGolden compares what becomes of files that are not there, for each client, with what was looked at by a person.
func TestReplaceGolden(t *testing.T) {
	var got txtar.Archive
	for _, c := range replaceable() {
		r := scratch(t, c)
		reports, err := c.Replace(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, report := range reports {
			raw, err := os.ReadFile(report.File)
			if err != nil {
				t.Fatal(err)
			}
			got.Files = append(got.Files, txtar.File{Name: c.Name + " " + filepath.ToSlash(strings.TrimPrefix(report.File, r.Env.Home)), Data: raw})
		}
	}
	file := filepath.Join("testdata", "golden", "replace.txtar")
	if *update {
		write(t, file, string(txtar.Format(&got)), 0o644)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
		t.Errorf("%s (-want +got); go test -update writes it anew:\n%s", file, diff)
	}
}

// TestRestoreAfterOthers takes back what was added, and nothing else, from a file that was changed since.
func TestRestoreAfterOthers(t *testing.T) {
	c := known("claude-code")
	r := scratch(t, c)
	file := filepath.Join(r.Env.Home, ".claude", "settings.json")
	write(t, file, `{"permissions": {"deny": ["Read", "WebFetch"], "allow": ["Glob"]}}`, 0o600)
	if _, err := c.Replace(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(raw), `"deny": ["Read", "WebFetch", "Bash"`) {
		t.Fatalf("%s, %v", raw, err)
	}
	write(t, file, strings.Replace(string(raw), `"WebFetch"`, `"Task", "WebFetch"`, 1), 0o600)
	native := filepath.Join(r.Env.Home, ".config", "toolhost", "toolhost.json")
	write(t, native, `{"rules": {"native": ["Bash"]}, "permissions": {"deny": ["Read(x)"]}} // mine`, 0o600)
	reports, err := c.Restore(t.Context(), r)
	if err != nil || len(reports) != 2 {
		t.Fatalf("%v, %v", reports, err)
	}
	for name, want := range map[string]string{
		file:   `{"permissions": {"deny": ["Read", "Task", "WebFetch"], "allow": ["Glob"]}}`,
		native: `{"rules": {}, "permissions": {"deny": ["Read(x)"]}} // mine`,
	} {
		if raw, err := os.ReadFile(name); err != nil || string(raw) != want {
			t.Errorf("%s holds %s, %v; want %s", name, raw, err, want)
		}
	}
	if reports, err := c.Restore(t.Context(), r); err != nil || len(reports) != 0 {
		t.Errorf("the second time: %v, %v", reports, err)
	}
}

// TestReplaceRefuses files that cannot be edited safely, and leaves them.
func TestReplaceRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"permissions": `:                       "line 1",
		`{"permissions": []}`:                    "not an object",
		`{"permissions": {"deny": "Bash"}}`:      "not a list of texts",
		`{"permissions": {"deny": ["x", 1]}}`:    "not a list of texts",
		`{"permissions": {}, "permissions": {}}`: "a second time",
	} {
		c := known("claude-code")
		r := scratch(t, c)
		file := filepath.Join(r.Env.Home, ".claude", "settings.json")
		write(t, file, body, 0o600)
		_, err := c.Replace(t.Context(), r)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
		if raw, err := os.ReadFile(file); err != nil || string(raw) != body {
			t.Errorf("%s became %s, %v", body, raw, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestChosen copies which tools the user has switched off, and nothing else of the files, to another home, for each client.
func TestChosen(t *testing.T) {
	for _, c := range replaceable() {
		r, other := scratch(t, c), scratch(t, c)
		if _, err := c.Replace(t.Context(), r); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		own, err := c.chosen(r.Env)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		copied := c
		copied.Replaces = own
		if _, err := copied.Replace(t.Context(), other); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, p := range c.Replaces {
			from, _ := p.in(c, r.Env)
			to, _ := p.in(c, other.Env)
			want, _ := os.ReadFile(from) // an empty text is seen below
			if got, err := os.ReadFile(to); err != nil || len(want) == 0 || string(got) != string(want) {
				t.Errorf("%s: %s holds %s, %v, not %s", c.Name, to, got, err, want)
			}
		}
	}
	c := known("claude-code")
	r := scratch(t, c)
	file := filepath.Join(r.Env.Home, ".claude", "settings.json")
	write(t, file, `{"hooks": {}, "env": {"X": "y"}, "permissions": {"deny": ["Bash"], "allow": ["Read"]}}`, 0o600)
	own, err := c.chosen(r.Env)
	if err != nil || len(own) != 1 || len(own[0].Set) != 1 || own[0].Set[0].key != "permissions.deny" {
		t.Errorf("%v, %v", own, err)
	}
	write(t, file, `{`, 0o600)
	if _, err := c.chosen(r.Env); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a broken file: %v", err)
	}
}
