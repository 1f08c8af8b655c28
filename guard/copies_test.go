package guard

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestRulesOfCopies holds a worktree to what rules say of the work tree that it was made of.
func TestRulesOfCopies(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, repo := filepath.Join(dir, "home"), filepath.Join(dir, "home", "repo")
	tree := filepath.Join(dir, "state", "worktrees", "agent-1", "tree")
	other := filepath.Join(dir, "other")
	for _, name := range []string{filepath.Join(repo, "sub"), filepath.Join(tree, "sub"),
		filepath.Join(tree, "b"), other} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in := func(root string, rule string) settings.Entry {
		return settings.Entry{Text: rule, File: "x", Root: root}
	}
	slash := filepath.ToSlash
	for _, tt := range []struct {
		name        string
		deny, allow []settings.Entry
		mode        string
		file        string
		write       bool
		part        bool // the root is a part of the repository
		more        bool // the settings add a directory
		want        Action
	}{
		{name: "read in the tree", file: tree + "/a", want: Allow},
		{name: "write in the tree", file: tree + "/a", write: true, want: Allow},
		{name: "read the original", file: repo + "/a", want: Allow},
		{name: "write the original", file: repo + "/a", write: true, want: Deny},
		{name: "write the original in bypass", file: repo + "/a", write: true, mode: settings.ModeBypass, want: Deny},
		{name: "write the original by an allow rule", file: repo + "/a", write: true, allow: []settings.Entry{in(repo, "Edit(/**)")}, want: Deny},
		{name: "read the root, a part of the original", part: true, file: repo + "/sub/a", want: Allow},
		{name: "read the original outside of the root", part: true, file: repo + "/a", want: Ask},
		{name: "write the original outside of the root", part: true, file: repo + "/a", write: true, want: Deny},
		{name: "elsewhere", file: other + "/a", want: Ask},
		{name: "an additional directory", more: true, file: other + "/a", want: Allow},
		{name: "relative, in an additional directory", more: true, deny: []settings.Entry{in("", "Read(secret.txt)")}, file: other + "/secret.txt", want: Deny},
		{name: "write an additional directory", more: true, file: other + "/a", write: true, want: Deny},
		{name: "state", file: filepath.Dir(tree) + "/meta", want: Deny},
		{name: "relative", deny: []settings.Entry{in(repo, "Read(secret.txt)")}, file: tree + "/b/secret.txt", want: Deny},
		{name: "relative, in the original", deny: []settings.Entry{in(repo, "Read(secret.txt)")}, file: repo + "/b/secret.txt", want: Deny},
		{name: "anchored", deny: []settings.Entry{in(repo, "Read(/b/secret.txt)")}, file: tree + "/b/secret.txt", want: Deny},
		{name: "anchored, elsewhere", deny: []settings.Entry{in(repo, "Read(/b/secret.txt)")}, file: tree + "/secret.txt", want: Allow},
		{name: "anchored in the original", deny: []settings.Entry{in(repo, "Read(/b/*.txt)")}, file: repo + "/b/secret.txt", want: Deny},
		{name: "absolute", deny: []settings.Entry{in("", "Edit(/"+slash(repo)+"/b/**)")}, file: tree + "/b/x", write: true, want: Deny},
		{name: "absolute, wildcards before", deny: []settings.Entry{in("", "Edit(/"+slash(dir)+"/*/repo/b/*)")}, file: tree + "/b/x", write: true, want: Deny},
		{name: "absolute, any depth", deny: []settings.Entry{in("", "Edit(/"+slash(dir)+"/home/**/*.key)")}, file: tree + "/b/x.key", write: true, want: Deny},
		{name: "all of the original", deny: []settings.Entry{in("", "Edit(/"+slash(repo)+")")}, file: tree + "/b/x", write: true, want: Deny},
		{name: "all of the home", deny: []settings.Entry{in("", "Read(~/**)")}, file: tree + "/b/x", want: Deny},
		{name: "home", deny: []settings.Entry{in("", "Read(~/repo/b/*)")}, file: tree + "/b/x", want: Deny},
		{name: "flag", deny: []settings.Entry{in("", "Read(/b/x)")}, file: tree + "/b/x", want: Deny},
		{name: "another repository", deny: []settings.Entry{in("", "Read(/"+slash(other)+"/b/x)")}, file: tree + "/b/x", want: Allow},
		{name: "allowed by an anchored rule", mode: settings.ModeDefault, allow: []settings.Entry{in(repo, "Edit(/b/**)")}, file: tree + "/b/x", write: true, want: Allow},
		{name: "not allowed by it", mode: settings.ModeDefault, allow: []settings.Entry{in(repo, "Edit(/b/**)")}, file: tree + "/c", write: true, want: Ask},
		{name: "settings of the tree", file: tree + "/.claude/settings.json", write: true, want: Deny},
		{name: "settings of the original", file: repo + "/.claude/settings.json", write: true, want: Deny},
	} {
		set := &settings.Settings{Deny: tt.deny, Allow: tt.allow, DefaultMode: tt.mode}
		if tt.mode == "" {
			set.DefaultMode = settings.ModeAcceptEdits
		}
		if tt.more {
			set.AdditionalDirectories = []settings.Entry{in("", other)}
		}
		roots := []string{repo}
		if tt.part {
			roots = []string{filepath.Join(repo, "sub")}
		}
		p, err := New(Config{Roots: []string{tree}, Copy: tree, CopyOf: repo, Originals: roots, Home: home,
			StateDir: filepath.Join(dir, "state"), Settings: set})
		if err != nil {
			t.Fatal(err)
		}
		path, err := p.ResolveEntry(tt.file)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		effect, tool := Effect(Read{Path: path}), "Read"
		if tt.write {
			effect, tool = Write{Path: path}, "Edit"
		}
		if v := p.Judge(Intent{Tool: tool, Effects: []Effect{effect}}); v.Action != tt.want {
			t.Errorf("%s: %s: %v, expected %v: %s", tt.name, tt.file, v.Action, tt.want, v.Reason)
		}
	}
}
