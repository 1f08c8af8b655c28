package settings

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestAppend(t *testing.T) {
	p := newPlace(t)
	root := p.cfg.Roots[0]
	for _, rule := range []string{"Bash(make *)", "Read(a \"b\")", "Bash(make *)"} {
		if err := Append(p.cfg, root, ListAllow, rule); err != nil {
			t.Fatal(err)
		}
	}
	s := Load(p.cfg)
	if got := texts(s.Allow); got != `Bash(make *),Read(a "b")` || s.Allow[0].Kind != User || s.Allow[0].Root != root ||
		len(s.Warnings) != 0 {
		t.Errorf("got %+v, warnings %v", s.Allow, s.Warnings)
	}
	file := p.cfg.answersFile(root)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, text := range []string{
		"// mine\n{\"permissions\": {\"allow\": [\"old\", /* why */], \"deny\": [\"d\"],}, // end\n}",
		"{\"permissions\": {\"deny\": [\"d\"], \"allow\": null}, \"note\": [1]} // mine end why",
		"\ufeff{\"permissions\": {\"deny\": [\"d\"]}} /* mine end why */",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Append(p.cfg, root, ListAllow, "new"); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		after, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := Load(p.cfg)
		if got := texts(s.Allow) + " " + texts(s.Deny); !strings.HasSuffix(got, "new d") || len(s.Broken) != 0 {
			t.Errorf("rules %q after\n%s", got, after)
		}
		for _, keep := range []string{"mine", "why", "end"} {
			if !strings.Contains(string(after), keep) {
				t.Errorf("%q is lost:\n%s", keep, after)
			}
		}
	}
}

func TestAppendErrors(t *testing.T) {
	p := newPlace(t)
	root := p.cfg.Roots[0]
	for _, rule := range []string{"", " ", "a\nb", "a\x00"} {
		if Append(p.cfg, root, ListAllow, rule) == nil {
			t.Errorf("%q was taken", rule)
		}
	}
	if Append(Config{}, root, ListAllow, "a") == nil {
		t.Error("without a directory")
	}
	if err := Append(p.cfg, root, ListAllow, "a"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"{", "[]", `{"permissions": 3}`, `{"permissions": {"allow": "x"}}`} {
		file := p.cfg.answersFile(root)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if Append(p.cfg, root, ListAllow, "a") == nil {
			t.Errorf("%s was changed", text)
		}
		if after, err := os.ReadFile(file); string(after) != text {
			t.Errorf("%s became %s (%v)", text, after, err)
		}
	}
}

// Several hosts remember answers at once.
func TestAppendAtOnce(t *testing.T) {
	p := newPlace(t)
	var g errgroup.Group
	for i := range 20 {
		g.Go(func() error { return Append(p.cfg, p.cfg.Roots[0], ListAllow, fmt.Sprintf("Bash(%d)", i)) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := len(Load(p.cfg).Allow); got != 20 {
		t.Errorf("%d of 20 rules are left", got)
	}
	if left, _ := os.ReadDir(p.path("home/.config/toolhost/workspaces")); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// Each list takes entries, and gives back the one that is named; the rest of the file stays.
func TestAppendAndRemove(t *testing.T) {
	p := newPlace(t)
	root := p.cfg.Roots[0]
	lists := map[string]func(*Settings) []Entry{
		"permissions.allow":              func(s *Settings) []Entry { return s.Allow },
		"permissions.ask":                func(s *Settings) []Entry { return s.Ask },
		"permissions.deny":               func(s *Settings) []Entry { return s.Deny },
		"sandbox.network.allowedDomains": func(s *Settings) []Entry { return s.Sandbox.Network.AllowedDomains },
		ListPrograms:                     func(s *Settings) []Entry { return s.Sandbox.Network.Programs },
	}
	entry := func(list, text string) string {
		if list == ListPrograms {
			return ProgramHost("python3.13", text)
		}
		return text
	}
	for list := range lists {
		for _, text := range []string{"a", "b", "a", "c"} {
			if err := Append(p.cfg, root, list, entry(list, text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for list, of := range lists {
		s := Load(p.cfg)
		if got := texts(of(s)); strings.ReplaceAll(got, "python3.13: ", "") != "a,b,c" {
			t.Fatalf("%s: %s", list, got)
		}
		b := of(s)[1]
		if err := Remove(b, list); err != nil {
			t.Fatal(err)
		}
		if got := texts(of(Load(p.cfg))); strings.ReplaceAll(got, "python3.13: ", "") != "a,c" {
			t.Errorf("%s after the removal: %s", list, got)
		}
		if Remove(b, list) == nil {
			t.Errorf("%s: what is gone was removed", list)
		}
	}
	file := p.cfg.UserFile()
	commented := "{\n  // mine\n  \"permissions\": {\"deny\": [\"\", 7, \"x\", /* why */ \"y\"]}, // end\n}\n"
	if err := os.WriteFile(file, []byte(commented), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range Load(p.cfg).Deny {
		if e.Text == "x" {
			if err := Remove(e, "permissions.deny"); err != nil {
				t.Fatal(err)
			}
		}
	}
	after, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(after), `"x"`) || !strings.Contains(string(after), "// mine") ||
		!strings.Contains(string(after), `"y"`) {
		t.Errorf("%v\n%s", err, after)
	}
	for _, e := range []Entry{{Kind: Managed}, {Kind: commandLine}, {Kind: Project}, {Kind: User, Client: true}} {
		if Remove(e, "permissions.deny") == nil {
			t.Errorf("removed from %v", e.Kind)
		}
	}
}

// TestAppendMask: a mask takes the place of the one of the same credential, and one that is wrong can be told before.
func TestAppendMask(t *testing.T) {
	const list = "sandbox.credentials.envVars"
	p := newPlace(t)
	root := p.cfg.Roots[0]
	file := p.cfg.answersFile(root)
	if err := Append(p.cfg, root, ListAllow, "x"); err != nil { // makes the directory
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"sandbox": {"credentials": {"envVars": [
		{"name": "K", "mode": "mask", "injectHosts": ["*"]}, {"name": "L", "mode": "deny"}, {"name": "K", "mode": "mask"}, // mine
	]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	add := func(name, host string) string {
		return fmt.Sprintf(`{"name": %q, "mode": "mask", "injectHosts": [%q]}`, name, host)
	}
	for _, host := range []string{"a.example", "b.example", "b.example"} {
		for _, name := range []string{"K", "L"} {
			if err := Append(p.cfg, root, list, add(name, host)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := Load(p.cfg).Sandbox.Credentials.EnvVars
	text, err := os.ReadFile(file)
	if err != nil || len(all) != 3 || strings.Count(string(text), "b.example") != 2 ||
		strings.Contains(string(text), "a.example") || !strings.Contains(string(text), `"deny"`) {
		t.Errorf("%+v, %v\n%s", all, err, text)
	}
	for _, e := range all {
		if e.Object != "" && e.Text == "K" {
			if err := Remove(e, list); err != nil {
				t.Error(err)
			}
		}
	}
	if got := texts(Load(p.cfg).Sandbox.Credentials.EnvVars); got != "L,L" {
		t.Errorf("after the removal: %s", got)
	}
	for object, want := range map[string]bool{add("K", "a.example"): true, add("K", "*"): false, add("A B", "a.example"): false,
		add("A_*", "a.example"): false, add("", "a.example"): false, "{": false} {
		if err := CheckMask(list, object); (err == nil) != want {
			t.Errorf("%s: %v", object, err)
		}
	}
}
