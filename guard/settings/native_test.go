package settings

import (
	"fmt"
	"strings"
	"testing"
)

func deny(rules ...string) string {
	return fmt.Sprintf(`{"permissions": {"deny": ["%s"]}}`, strings.Join(rules, `","`))
}

func native(names ...string) string {
	return fmt.Sprintf(`{"rules": {"native": ["%s"]}}`, strings.Join(names, `","`))
}

// TestNative: which denies hold for our tools, and which concern the client's tools alone.
func TestNative(t *testing.T) {
	type files map[string]string
	for _, tt := range []struct {
		name          string
		files         files
		held, clients string
	}{
		{"no setting", files{userFile: deny("Bash")}, "Bash", ""},
		{"user settings", files{userFile: deny("Bash", "Read"), ownUser: native("Bash")}, "Read", "Bash"},
		{"one file holds both", files{userFile: `{"permissions": {"deny": ["Bash"]}, "rules": {"native": ["Bash"]}}`}, "", "Bash"},
		{"files of a project", files{projectFile: deny("Bash"), localFile: deny("Edit"), ownUser: native("Bash", "Edit")}, "", "Edit,Bash"},
		{"a specifier", files{userFile: deny("Bash(rm:*)", "Bash(*)", "Read(.env)"), ownUser: native("Bash", "Read")}, "Bash(rm:*),Bash(*),Read(.env)", ""},
		{"the tool of a server", files{userFile: deny("mcp__toolhost__Bash", "mcp__toolhost"), ownUser: native("Bash")}, "mcp__toolhost__Bash,mcp__toolhost", ""},
		{"wildcards", files{userFile: deny("*", "B*"), ownUser: native("Bash")}, "*,B*", ""},
		{"blanks", files{userFile: deny(" Bash "), ownUser: native("Bash")}, "", " Bash "},
		{"another case", files{userFile: deny("bash"), ownUser: native("Bash")}, "bash", ""},
		{"several in one entry", files{userFile: deny("Bash,Read"), ownUser: native("Bash", "Read")}, "Bash,Read", ""},
		{"our own files", files{ownUser: `{"permissions": {"deny": ["Bash"]}, "rules": {"native": ["Bash"]}}`, ownProject: deny("Edit"), ownManaged: deny("Read")}, "Read,Edit,Bash", ""},
		{"managed deny, managed setting", files{managedFile: deny("Bash"), dropInA: deny("Read"), userFile: deny("Edit"), ownManaged: native("Bash", "Read", "Edit")}, "", "Read,Bash,Edit"},
		{"managed deny, managed setting of the client", files{managedFile: deny("Bash"), dropInB: native("Bash")}, "", "Bash"},

		// Attacks: nothing of these lifts a deny.
		{"managed deny, user setting", files{managedFile: deny("Bash"), userFile: deny("Bash"), ownUser: native("Bash")}, "Bash", "Bash"},
		{"set by a project", files{userFile: deny("Bash"), projectFile: native("Bash")}, "Bash", ""},
		{"set by our file of a project", files{userFile: deny("Bash"), ownProject: native("Bash")}, "Bash", ""},
		{"set by local files", files{userFile: deny("Bash"), localFile: native("Bash"), ownLocal: native("Bash")}, "Bash", ""},
		{"set by a root inside a root", files{userFile: deny("Bash"), "work/sub/.claude/settings.json": native("Bash"), "work/sub/.toolhost/toolhost.json": native("Bash")}, "Bash", ""},
		{"another spelling of the key", files{userFile: deny("Bash"), ownUser: `{"Rules": {"native": ["Bash"]}}`}, "Bash", ""},
		{"no list", files{userFile: deny("Bash"), ownUser: `{"rules": {"native": "Bash"}}`}, "Bash", ""},
		{"names that are none", files{userFile: deny("*", "Bash", "mcp__x"), ownUser: native("*", "mcp__x", "Bash(*)", "")}, "*,Bash,mcp__x", ""},
	} {
		p := newPlace(t)
		p.cfg.Roots = append(p.cfg.Roots, p.path("work/sub"))
		p.cfg.TrustWorkspace = true
		for name, text := range tt.files {
			p.write(name, text)
		}
		s := Load(p.cfg)
		if got := texts(s.Deny); got != tt.held {
			t.Errorf("%s: %q holds, want %q", tt.name, got, tt.held)
		}
		if got := texts(s.NativeDeny); got != tt.clients {
			t.Errorf("%s: %q is the client's, want %q", tt.name, got, tt.clients)
		}
		if len(s.Broken) > 0 || len(s.Untrusted) > 0 {
			t.Errorf("%s: broken %v, untrusted %v", tt.name, s.Broken, s.Untrusted)
		}
	}
}

// TestNativeOfTheCommandLine: files that are named for one run count as the user's.
func TestNativeOfTheCommandLine(t *testing.T) {
	p := newPlace(t)
	p.cfg.Files, p.cfg.Deny = []string{p.path("given.json")}, []string{"Edit"}
	p.write("given.json", `{"permissions": {"deny": ["Read"]}, "rules": {"native": ["Bash", "Read", "Edit"]}}`)
	p.write(userFile, deny("Bash"))
	if s := Load(p.cfg); texts(s.Deny) != "Edit,Read" || texts(s.NativeDeny) != "Bash" {
		t.Errorf("%q holds, %q is the client's", texts(s.Deny), texts(s.NativeDeny))
	}
}

// TestNativeWarnings: what is left out is said.
func TestNativeWarnings(t *testing.T) {
	p := newPlace(t)
	p.write(projectFile, native("Bash"))
	p.write(ownUser, native("mcp__x"))
	all := fmt.Sprint(Load(p.cfg).Warnings)
	for _, want := range []string{"rules.native counts from user and managed settings only",
		`"mcp__x" is not the name of a client's own tool`} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing says %q: %s", want, all)
		}
	}
}

// TestRunningNative: a running host follows rules.native in both directions.
func TestRunningNative(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, deny("Bash"))
	p.write(projectFile, deny("Edit"))
	r := p.start()
	for _, tt := range []struct{ file, text, held string }{
		{ownUser, native("Bash"), "Edit"},
		{projectFile, native("Edit"), "Edit"},
		{ownUser, native("Bash", "Edit"), ""},
		{ownUser, "{}", "Edit,Bash"},
	} {
		p.write(tt.file, tt.text)
		if got := texts(r.next().Deny); got != tt.held {
			t.Errorf("%s is %s: %q holds, want %q", tt.file, tt.text, got, tt.held)
		}
	}
}
