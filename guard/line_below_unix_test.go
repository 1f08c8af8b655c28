//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"testing"

	"toolhost/guard/settings"
)

// TestAskedBelow holds that commands are asked for which come by themselves to files that a
// rule asks for, and that no others are.
func TestAskedBelow(t *testing.T) {
	_, ws := workspace(t)
	for _, name := range []string{"keys/a.key", "keys/deep/b.key", "src/deep/x.go", "closed/c.key"} {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := policy(t, ws, rules(ws, "ask Read(*.key)\ndeny Read(closed/**)"), contained)
	judge := func(p *Policy, want Action, text string) {
		t.Helper()
		if v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: text, Dir: resolve(t, p, ".")}}); v.Action != want {
			t.Errorf("%s: %v, want %v\n%s", text, v.Action, want, v.Error())
		}
	}
	for want, commands := range map[Action][]string{
		Ask: {
			"grep -rn x .", "grep -R x", "cd keys && grep -r x .", "grep -r x keys", "grep -r --include='*.k*' x .", "rg x", "rg x keys", "tar cf x.tar .", "tar -czf x.tgz keys",
			"cp -r keys y", "cp -a . ../y", "cp -r * y", "mv keys y", "ln -s keys y; cat y/a.key", "rsync -a . y", "scp -r . h:", "zip -r x.zip .", "diff -r keys src", "diff -r keys src | head",
			"find . -type f | xargs cat", "find . -type f -exec cat {} +", "find keys -name '*.key' -print0 | xargs -0 base64", "git ls-files | xargs cat", "bash -c 'grep -r x .'", "d=keys; grep -r x $d",
			`cat "$PWD/keys/a.key"`, "cd keys && cat ${PWD}/a.key", "python3 -c 'print(open(\"keys/a.key\").read())'", "node <<< 'read(`keys/a.key`)'",
			"find . -mtime 1 -exec cat {} +", "printf 'keys/a.key' | xargs cat",
		},
		Allow: {
			"grep -rn x src", "grep -rn --include='*.go' x .", "grep -rn --exclude='*.key' x .", "grep -rn --exclude-dir=keys x .", "grep x README.md", "rg -t go x", "rg x src", "rg --files",
			"tar cf x.tar --exclude=keys .", "tar cf x.tar src", "tar xf x.tar", "cp -r src y", "cp README.md y", "mv src y", "find . -name '*.go' | xargs wc -l", "find . -name '*.go' -exec cat {} +",
			"find . -type f | wc -l", "find . -exec ls {} +", "find . -name '*.o' | xargs rm -f", "ls -R", "git ls-files", "git add -A", "make", "npm test", "grep -r x closed",
		},
	} {
		for _, text := range commands {
			judge(p, want, text)
		}
	}
	// What nothing contains comes to what is denied in the same way.
	set := rules(ws, "mode bypassPermissions\ndeny Read(*.key)")
	set.Sandbox.OnUnavailable = settings.OnFailureAllow
	tree(t, ws, "alias/plain = keys/a.key", "self/dir -> .", "self/b.key")
	open := policy(t, ws, set, uncontained)
	for want, commands := range map[Action][]string{
		Deny:  {"grep -r x .", "grep -r x alias", "tar c alias", "grep -r x self/dir", "tar cf x.tar keys", "find . -exec cat {} +", `cat "$PWD/keys/a.key"`, "python3 -c 'print(open(\"keys/a.key\").read())'", "awk 'BEGIN{getline l < \"keys/a.key\"; print l}'"},
		Allow: {"grep -r x src", "make", "python3 -c 'print(1)'", "git commit -m 'see keys/a.key'", "ls keys"},
	} {
		for _, text := range commands {
			judge(open, want, text)
		}
	}
}
