//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSandboxPaths(t *testing.T) {
	top, ws := workspace(t)
	if err := os.MkdirAll(filepath.Join(ws, "sub/.git/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	set := rules(ws, strings.ReplaceAll(`deny Read(.env)
		deny Read(secrets/**)
		deny Read(/$TOP/out/**)
		deny Read(later)
		deny Read(/missing/file)
		deny Edit(src/*.go)
		allow Read(~/.ssh/config)`, "$TOP", top))
	p := policy(t, ws, set).For(Caller{Own: []string{filepath.Join(top, "state/results/mine")}})
	got := p.SandboxPaths()
	for _, tt := range []struct {
		what string
		list []string
		has  string
		hasN string
	}{
		{"Writable", got.Writable, "ws", "out"},
		{"Denied", got.Denied, "ws/.env ws/sub/.env ws/secrets ws/missing/file out", "ws/README.md ws/src"},
		{"ReadOnly", got.ReadOnly, "ws/src/main.go ws/.bashrc ws/.claude ws/.claude/settings.json ws/.toolhost ws/.git/hooks ws/sub/.git/hooks", "ws/.git ws/.git/config ws/README.md"},
		{"Masked", got.Masked, "home/.ssh state", "home"},
		{"Shown", got.Shown, "home/.ssh/config state/results/mine", "home/.ssh/id_rsa"},
	} {
		for want := range strings.FieldsSeq(tt.has) {
			if !slices.Contains(tt.list, filepath.Join(top, want)) {
				t.Errorf("%s lacks %s: %q", tt.what, want, tt.list)
			}
		}
		for not := range strings.FieldsSeq(tt.hasN) {
			if slices.Contains(tt.list, filepath.Join(top, not)) {
				t.Errorf("%s holds %s: %q", tt.what, not, tt.list)
			}
		}
	}
}

// Where every edit is denied the root itself is kept, so that nothing new appears in it.
func TestSandboxPathsFrozen(t *testing.T) {
	_, ws := workspace(t)
	for rule, want := range map[string]bool{
		"Edit": true, "Edit(*)": true, "Edit(**)": true, "Edit(./**)": true, "Edit(/**)": true, "Edit(//**)": true, "Write(**)": true, "MultiEdit(**)": true,
		"Edit(src/**)": false, "Edit(*.go)": false, "Write": false, "Read(src/**)": false,
	} {
		p := policy(t, ws, rules(ws, "deny "+rule), contained)
		if got := slices.Contains(p.SandboxPaths().ReadOnly, ws); got != want {
			t.Errorf("%s: the root is kept: %v, want %v", rule, got, want)
		}
	}
}

// TestEveryEdit holds that a rule for Edit as a whole is on what a command says it writes.
func TestEveryEdit(t *testing.T) {
	_, ws := workspace(t)
	for action, want := range map[string]Action{"deny": Deny, "ask": Ask} {
		p := policy(t, ws, rules(ws, action+" Edit"), contained)
		for text, want := range map[string]Action{
			"echo x > q": want, "sed -i s/a/b/ README.md": want, "cp README.md q": want, "mkdir q": want, "cd src && rm main.go": want, "git diff --output=q": want,
			"go test ./...": Allow, "npm test": Allow, "pytest -k foo": Allow, "python3 -c 'print(1)'": Allow, "cat README.md": Allow, "echo x > /dev/null": Allow,
		} {
			if v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: text, Dir: resolve(t, p, ".")}}); v.Action != want {
				t.Errorf("%s Edit: %s: %v, want %v\n%s", action, text, v.Action, want, v.Error())
			}
		}
	}
	p := policy(t, ws, rules(ws, "deny Edit(src/**)\ndeny Edit(test)"), contained)
	for text, want := range map[string]Action{
		"cd src && make -f Makefile all": Allow, "cd src && pytest -k foo": Allow, "npm test": Allow,
		"touch src/x": Deny, "cd src && touch x": Deny, "openssl rand -out test 8": Deny,
	} {
		if v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: text, Dir: resolve(t, p, ".")}}); v.Action != want {
			t.Errorf("%s: %v, want %v\n%s", text, v.Action, want, v.Error())
		}
	}
}

// What is not to be fetched from, commands do not reach either.
func TestNetworkDenied(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, rules(ws, "deny WebFetch(domain:Evil.example.)\ndeny WebFetch(domain: *.bad.example)\nallow WebFetch(domain:good.example)\nask WebFetch(domain:asked.example)\ndeny WebFetch"))
	if got, want := p.Network(), []string{"evil.example", "*.bad.example"}; !slices.Equal(got.Denied, want) || len(got.Allowed) > 0 {
		t.Errorf("got %+v, want %q denied", got, want)
	}
}

// Ports are published for who sits at the machine, unless the settings say otherwise.
func TestNetworkPublish(t *testing.T) {
	_, ws := workspace(t)
	yes, no := true, false
	for _, tt := range []struct {
		set                   *bool
		remote, binding, want bool
	}{
		{want: true},
		{remote: true},
		{remote: true, binding: true, want: true},
		{remote: true, set: &yes, want: true},
		{set: &no, binding: true},
	} {
		set := rules(ws, "")
		set.Sandbox.Network.PublishPorts, set.Sandbox.Network.AllowLocalBinding = tt.set, tt.binding
		if got := policy(t, ws, set).For(Caller{Remote: tt.remote}).Network().Publish; got != tt.want {
			t.Errorf("%+v: Publish = %v", tt, got)
		}
	}
}
