//go:build unix

package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestControl asks of files that the host obeys or writes, by their own names and by the links and directories that lead to them.
func TestControl(t *testing.T) {
	top, ws := workspace(t)
	tree(t, top, "ws/dot/user.json", "ws/dot/other.txt", "home/.claude/settings.json -> "+ws+"/middle",
		"ws/middle -> dot/user.json", "ws/hardsettings = ws/dot/user.json",
		"ws/v1/conf/f.json", "ws/v1/plain.txt", "ws/now -> v1", "given.json -> ws/now/conf/f.json", "ws/logs/audit.jsonl", "ws/logs/audit.jsonl.7", "ws/logs/audit.jsonl.x", "ws/logs/f",
		"ws/hardlog = ws/logs/audit.jsonl", "later.json -> ws/new/later.json")
	set := testRules(ws, "mode bypassPermissions")
	set.Sandbox.OnUnavailable = settings.OnFailureAllow // else commands are refused where files of the host's own lie in the root
	p := policy(t, ws, set, uncontained, func(c *Config) {
		c.RuleFiles = []string{filepath.Join(top, "home/.claude/settings.json"), filepath.Join(top, "given.json"),
			filepath.Join(top, "later.json")}
		c.OwnFiles = []string{filepath.Join(ws, "logs/audit.jsonl")}
	})
	for _, tt := range []struct {
		tool, name string
		want       Action
	}{
		{"Write", "dot/user.json", Deny}, {"Write", "middle", Deny}, {"Write", "hardsettings", Deny}, {"Write", "dot/other.txt", Allow}, {"Read", "dot/user.json", Allow},
		{"Write", "DOT/../dot/User.json", Deny}, {"Write", "now/conf/f.json", Deny}, {"Write", "v1/conf/f.json", Deny}, {"Write", "now/plain.txt", Allow},
		{"Write", "new/later.json", Deny}, {"Write", "new/other.json", Allow}, {"Write", ".claude/settings.local.json", Deny},
		{"Read", "logs/audit.jsonl", Deny}, {"Write", "logs/audit.jsonl", Deny}, {"Read", "logs/audit.jsonl.7", Deny}, {"Write", "logs/audit.jsonl.12", Deny},
		{"Read", "hardlog", Deny}, {"Write", "hardlog", Deny}, {"Read", "logs/audit.jsonl.x", Allow}, {"Write", "logs/f", Allow},
	} {
		path, err := p.Resolve(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		in := Intent{Tool: tt.tool, Effects: []Effect{Read{Path: path}}}
		if tt.tool == "Write" {
			in = Intent{Tool: tt.tool, Effects: []Effect{Write{Path: path}}}
		}
		if v := p.Judge(in); v.Action != tt.want {
			t.Errorf("%s %s: %v, want %v: %s", tt.tool, tt.name, v.Action, tt.want, v.Reason)
		}
	}
	for command, want := range map[string]Action{
		"rm middle": Deny, "mv now x": Deny, "mv dot x": Deny, "mv -t x dot": Deny, "rm -rf v1": Deny, "ln -sfn src now": Deny, "mv -T src now": Deny,
		"cd v1; mv conf x": Deny, "mv ./dot/../now/ x": Deny, "rm dot/user.json": Deny, "cp README.md now/conf/f.json": Deny, "cp -r dot x": Allow, "mv README.md dot": Allow, "mv README.md now/": Allow,
		"cp README.md now": Allow, "ln -s README.md now/": Allow, "ln -s dot/user.json x": Allow, "mkdir -p dot/new": Allow, "touch dot/new": Allow, "rm dot/other.txt": Allow, "mv src x": Allow,
	} {
		root, err := p.Resolve(".")
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: command, Dir: root}}}); (v.Action == Deny) != (want == Deny) {
			t.Errorf("%s: %v, want %v: %s", command, v.Action, want, v.Reason)
		}
	}
	for name, planted := range map[string]bool{"now/conf/f.json": true, "v1/conf/f.json": false, "middle": true,
		"../given.json": true, "none/at/all": false} {
		if err := p.PlantedLink(filepath.Join(ws, name)); (err != nil) != planted {
			t.Errorf("PlantedLink(%s) = %v", name, err)
		}
	}
	tree(t, top, "rootlink -> ws")
	linked := policy(t, filepath.Join(top, "rootlink"), set)
	if err := linked.PlantedLink(filepath.Join(top, "rootlink", "logs/audit.jsonl")); err != nil ||
		!linked.Exposed(filepath.Join(top, "rootlink", "logs/audit.jsonl")) {
		t.Errorf("a root that is itself a link: %v", err)
	}
	if hidden := p.Hidden(filepath.Join(ws, "logs/audit.jsonl"), false); !hidden ||
		p.Hidden(filepath.Join(ws, "logs/f"), false) || !p.Hidden(filepath.Join(ws, "logs/audit.jsonl.7"), false) {
		t.Error("searches see the log, or not what is beside it")
	}
	before := p.Commands().ControlPaths()
	if err := os.Remove(filepath.Join(ws, "now")); err != nil {
		t.Fatal(err)
	}
	tree(t, top, "ws/now -> src")
	later := p.Commands().ControlPaths()
	if later.Equal(before) || !slices.Contains(later.Ends, filepath.Join(ws, "src/conf/f.json")) {
		t.Errorf("a link leads elsewhere: %+v, and then %+v", before, later)
	}
	tree(t, top, "ws/again = ws/dot/user.json")
	if p.Commands().ControlPaths().Equal(later) {
		t.Error("a file has got another name, and nothing has changed")
	}
}

func BenchmarkControl(b *testing.B) {
	_, ws := workspace(b)
	p := policy(b, ws, testRules(ws, "allow Edit"))
	for b.Loop() {
		p.data.control()
	}
}

// TestPlantedLinks has links that commands and a person have put at names of settings. What commands have put where no
// link was is settled when they end, and so is what it leads to: a sandbox that starts meanwhile must not protect them.
// Of a link in the place of a person's, it protects what it leads to.
func TestPlantedLinks(t *testing.T) {
	top, ws := workspace(t)
	for _, name := range []string{".claude", ".toolhost"} {
		if err := os.RemoveAll(filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree(t, top, "ws/.claude -> dir", "ws/dir/settings.json", "ws/.mcp.json -> x.json", "ws/x.json",
		"ws/.envrc -> env", "ws/env", "ws/.toolhost -> elsewhere", "ws/elsewhere/toolhost.json")
	p := policy(t, ws, testRules(ws, ""), contained, func(c *Config) {
		c.Planted = func(path string, link fs.FileInfo) (planted, replaces bool) {
			if link.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("asked about %s, which is no link", path)
			}
			base := filepath.Base(path)
			return base != ".envrc", base == ".toolhost"
		}
	})
	paths := p.Commands().SandboxPaths()
	all := slices.Concat(paths.ReadOnly, paths.Control.Ends, paths.Control.Steps)
	for name, want := range map[string]bool{".claude": false, "dir": false, "dir/settings.json": false,
		".mcp.json": false, "x.json": false, ".envrc": true, ".toolhost": false, "elsewhere/toolhost.json": true} {
		if got := slices.Contains(all, filepath.Join(ws, name)); got != want {
			t.Errorf("%s is protected: %t, want %t", name, got, want)
		}
	}
}
