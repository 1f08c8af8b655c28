package mcpserver

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// TestCallerRoot holds callers with roots of their own apart: by tools, by commands, and by what they are told and asked.
func TestCallerRoot(t *testing.T) {
	t.Parallel()
	if err := sandbox.ExecGateWorks(sandbox.Namespaces); err != nil {
		t.Skip(err)
	}
	person := &owner{answer: Answer{Decision: AllowOnce}}
	o := openOffice(t, func(c *Config) { c.Asker, c.With = person, []string{"EnterWorktree"} })
	token := func(name string) string {
		t.Helper()
		dir := filepath.Join(o.root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "note"), []byte("note of "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		bearer, _, err := auth.AddToken(o.tokens, name, auth.All, 0, dir)
		if err != nil {
			t.Fatal(err)
		}
		return bearer
	}
	alice, bob := token("alice"), token("bob")
	call := func(bearer, tool, args string) string {
		t.Helper()
		_, body := callAs(tool, args).as(bearer, nil).do(t, o.url)
		return body
	}
	secret := filepath.Join(o.root, "bob", "note")
	if err := os.Symlink(secret, filepath.Join(o.root, "alice", "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ why, bearer, tool, args, says string }{
		{"her own file", alice, "Read", `{"file_path":"note"}`, "note of alice"},
		{"his own file", bob, "Read", `{"file_path":"note"}`, "note of bob"},
		{"her own, by a command", alice, "Bash", `{"command":"cat note; echo more >> note; cat note; pwd"}`, `more\n` + filepath.Join(o.root, "alice")},
		{"a search", alice, "Grep", `{"pattern":"note of","output_mode":"content"}`, "note of alice"},
		{"his file", alice, "Read", fmt.Sprintf(`{"file_path":%q}`, secret), "belongs to other callers"},
		{"his file by a link", alice, "Read", `{"file_path":"link"}`, "belongs to other callers"},
		{"his file by ..", alice, "Read", `{"file_path":"../bob/note"}`, "belongs to other callers"},
		{"his directory", alice, "Grep", fmt.Sprintf(`{"pattern":"x","path":%q}`, filepath.Join(o.root, "bob")), "belongs to other callers"},
		{"writing his file", alice, "Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, filepath.Join(o.root, "bob", "new")), "belongs to other callers"},
		{"a file of the host's root", alice, "Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(o.root, "a.txt")), "belongs to other callers"},
		{"his file by a command", alice, "Bash", `{"command":"cat ../bob/note || ls .. || echo closed"}`, ""},
		{"his file by a program", alice, "Bash", `{"command":"python3 -c 'print(open(\"../bo\"+\"b/note\").read())' || echo closed"}`, "closed"},
		{"writing by a program", alice, "Bash", `{"command":"python3 -c 'open(\"../bo\"+\"b/new\",\"w\")' || echo closed"}`, "closed"},
		{"a copy of everything", alice, "EnterWorktree", `{}`, "files of other callers may be in it"},
		{"out of the sandbox", alice, "Bash", fmt.Sprintf(`{"command":"cat %s","dangerouslyDisableSandbox":true}`, secret), ""},
	} {
		body := call(tt.bearer, tt.tool, tt.args)
		if !strings.Contains(body, tt.says) || tt.bearer == alice && strings.Contains(body, "note of bob") {
			t.Errorf("%s: %s", tt.why, body)
		}
		if strings.Contains(body, "Commands can read it") {
			t.Errorf("%s: commands cannot read it: %s", tt.why, body)
		}
	}
	if _, err := os.Stat(filepath.Join(o.root, "bob", "new")); err == nil {
		t.Error("a file was written in another caller's root")
	}
	if text, err := os.ReadFile(filepath.Join(o.root, "alice", "note")); err != nil ||
		string(text) != "note of alice\nmore\n" {
		t.Errorf("her own file holds %q, %v", text, err)
	}
	if len(person.asked) != 0 {
		t.Errorf("the operator was asked %d times about calls of others", len(person.asked))
	}
	for name, root := range map[string]string{"outside": t.TempDir(), "gone": filepath.Join(o.root, "none")} {
		bearer, _, err := auth.AddToken(o.tokens, name, auth.All, 0, root)
		if err != nil {
			t.Fatal(err)
		}
		if resp, body := callAs("Read", `{"file_path":"a.txt"}`).as(bearer, nil).do(t,
			o.url); resp.StatusCode != http.StatusForbidden {
			t.Errorf("a token with the root %s: %d %s", name, resp.StatusCode, body)
		}
	}
	// A token with the name of a revoked one has its own root.
	if err := auth.RevokeToken(o.tokens, "alice"); err != nil {
		t.Fatal(err)
	}
	again, _, err := auth.AddToken(o.tokens, "alice", auth.All, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if body := call(again, "Read", `{"file_path":"a.txt"}`); !strings.Contains(body, "alpha") {
		t.Errorf("a token without a root: %s", body)
	}
}
