package settings

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTrust(t *testing.T) {
	p := newPlace(t)
	root := p.cfg.Roots[0]
	allows := func() string { s := Load(p.cfg); return fmt.Sprintf("%s %v", texts(s.Allow), s.Trusted) }
	check := func(when, want string) {
		t.Helper()
		if got := allows(); got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	p.write(projectFile, rules("a,b", "x"))
	p.write(localFile, rules("c", ""))
	check("at first", " false")
	if err := trustNow(p.cfg, root+"/."); err != nil {
		t.Fatal(err)
	}
	check("trusted", "c,a,b true")
	p.write(projectFile, "// reformatted\n"+rules("b,a", "x,y"))
	check("same content in another order, more denied", "c,b,a true")
	p.write(projectFile, `{"permissions": {"allow": ["a", "b"]}, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "evil"}]}]}}`)
	check("a pull brought a hook", " false")
	review, err := Inspect(p.cfg, root)
	if err != nil || len(review.Entries) != 4 {
		t.Fatalf("review %+v, %v", review, err)
	}
	p.write(projectFile, rules("a,b,worse", ""))
	if err := review.Trust(); err != nil {
		t.Fatal(err)
	}
	check("changed between looking and trusting", " false")

	if err := trustNow(p.cfg, root); err != nil {
		t.Fatal(err)
	}
	list, err := ListTrusted(p.cfg)
	if err != nil || len(list) != 1 || list[0].Root != root || list[0].Since.IsZero() {
		t.Errorf("list %+v, %v", list, err)
	}
	check("trusted anew", "c,a,b,worse true")
	if err := Revoke(p.cfg, root); err != nil {
		t.Fatal(err)
	}
	check("revoked", " false")
	if err := Revoke(p.cfg, root); err == nil {
		t.Error("revoked twice")
	}
	if entries, err := os.ReadDir(p.cfg.StateDir); err != nil || len(entries) != 2 {
		t.Errorf("left in the state directory: %v, %v", entries, err)
	}
}

// The order of entries matters where one carves out of another.
// TestTrustBindsEveryFieldOfAHook: what changes what a hook does ends the trust in it.
// TestTrustDigest: the command line trusts the content with a digest, and no other, also while the host runs.
func TestTrustDigest(t *testing.T) {
	p := newPlace(t)
	p.write(projectFile, rules("a,b", "x"))
	review, err := Inspect(p.cfg, p.cfg.Roots[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		digest, allow, want string
	}{
		{review.Digest, "a,b", "a,b"},
		{review.Digest[:7], "b,a", "b,a"},
		{review.Digest[:7], "a,b,c", ""},
		{"0000000", "a,b", ""},
		{"", "a,b", ""},
	} {
		p.cfg.TrustDigest = c.digest
		p.write(projectFile, rules(c.allow, "x"))
		if s := Load(p.cfg); fmt.Sprint(texts(s.Allow)) != c.want || texts(s.Deny) != "x" {
			t.Errorf("%.7q, %s: allow %v, deny %v", c.digest, c.allow, texts(s.Allow), texts(s.Deny))
		}
	}
	p.cfg.TrustDigest = review.Digest
	p.write(projectFile, rules("a,b", ""))
	r := newReloader(p.cfg)
	if s := r.read(); texts(s.Allow) != "a,b" {
		t.Errorf("at the start: %v", texts(s.Allow))
	}
	p.write(projectFile, rules("a,b,c", ""))
	if s := r.read(); texts(s.Allow) != "" {
		t.Errorf("other content: %v", texts(s.Allow))
	}
}

func TestTrustBindsEveryFieldOfAHook(t *testing.T) {
	p := newPlace(t)
	write := func(more string) {
		p.write(projectFile, `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "guard"`+
			more+`}]}]}}`)
	}
	for _, more := range []string{`, "args": []`, `, "args": ["x"]`, `, "shell": "powershell"`, `, "async": true`, `, "timeout": 1`, `, "if": "Bash"`,
		`, "url": "http://x"`, `, "headers": {"A": "b"}`, `, "allowedEnvVars": ["T"]`} {
		write("")
		if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
			t.Fatal(err)
		}
		if s := Load(p.cfg); len(s.Hooks) != 1 {
			t.Fatal("the trusted hook does not run")
		}
		write(more)
		if s := Load(p.cfg); len(s.Hooks) != 0 {
			t.Errorf("with%s it runs untrusted", more)
		}
	}
}

func TestTrustBindsCarveOuts(t *testing.T) {
	for _, after := range []string{"Edit(!s),Edit(*)", "Edit(*)"} {
		p := newPlace(t)
		p.write(projectFile, rules("Edit(*),Edit(!s)", ""))
		if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
			t.Fatal(err)
		}
		if s := Load(p.cfg); !s.Trusted || len(s.Allow) != 2 {
			t.Errorf("trusted, yet %v", s.Untrusted)
		}
		p.write(projectFile, rules(after, ""))
		if s := Load(p.cfg); s.Trusted || len(s.Allow) != 0 || len(s.Untrusted) != 1 {
			t.Errorf("%s: allow %s, left out %v", after, texts(s.Allow), s.Untrusted)
		}
	}
}

func TestTrustOfOneRootOnly(t *testing.T) {
	p := newPlace(t)
	p.cfg.Roots = append(p.cfg.Roots, p.path("other"))
	p.write(projectFile, rules("a", ""))
	p.write("other/.claude/settings.json", rules("a,b", ""))
	if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
		t.Fatal(err)
	}
	if s := Load(p.cfg); texts(s.Allow) != "a" || len(s.Untrusted) != 2 || s.Trusted {
		t.Errorf("allow %s, untrusted %v", texts(s.Allow), s.Untrusted)
	}
}

func TestTrustWhileRunning(t *testing.T) {
	p := newPlace(t)
	root := p.cfg.Roots[0]
	p.write(projectFile, rules("a,b", ""))
	if err := trustNow(p.cfg, root); err != nil {
		t.Fatal(err)
	}
	r := p.start()
	p.write(projectFile, rules("b,c", ""))
	if s := r.next(); texts(s.Allow) != "b" {
		t.Errorf("of trusted content what still stands counts; got %s", texts(s.Allow))
	}
	if err := Revoke(p.cfg, root); err != nil {
		t.Fatal(err)
	}
	if s := r.next(); texts(s.Allow) != "" {
		t.Errorf("revoked, yet %s", texts(s.Allow))
	}
}

func TestTrustErrors(t *testing.T) {
	p := newPlace(t)
	root := p.cfg.Roots[0]
	for _, tt := range []struct {
		name, want string
		do         func() error
	}{
		{"no such directory", "no such file", func() error { return trustNow(p.cfg, p.path("none")) }},
		{"a file", "is not a directory", func() error { p.write("f", ""); return trustNow(p.cfg, p.path("f")) }},
		{"no state directory", "no state directory", func() error { return trustNow(Config{}, root) }},
		{"broken file", ":1:2:", func() error { p.write(projectFile, "{"); return trustNow(p.cfg, root) }},
		{"damaged store", "is damaged", func() error {
			p.write(projectFile, "{}")
			p.write("state/trust.json", "{")
			return trustNow(p.cfg, root)
		}},
		{"store of anybody", "can be written by other users", func() error {
			p.write("state/trust.json", "{}")
			if err := os.Chmod(p.path("state/trust.json"), 0o666); err != nil {
				return err
			}
			return trustNow(p.cfg, root)
		}},
	} {
		if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	p.write(projectFile, rules("a", ""))
	if s := Load(p.cfg); texts(s.Allow) != "" || !strings.Contains(warnings(s), "no workspace is trusted by it") {
		t.Errorf("a store that is not believed: allow %s\n%s", texts(s.Allow), warnings(s))
	}
}

// trustNow is what a person does who inspects a workspace and agrees.
func trustNow(cfg Config, root string) error {
	review, err := Inspect(cfg, root)
	if err != nil {
		return err
	}
	return review.Trust()
}
