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
	set := testRules(ws, strings.ReplaceAll(`deny Read(.env)
		deny Read(secrets/**)
		deny Read(/$TOP/out/**)
		deny Read(later)
		deny Read(/missing/file)
		deny Read(/missing/dir/)
		deny Read(/src/main.go/)
		deny Edit(src/*.go)
		allow Read(~/.ssh/config)`, "$TOP", top))
	p := policy(t, ws, set).For(Caller{Own: []string{filepath.Join(top, "state/results/mine")}})
	got := p.Commands().SandboxPaths()
	for _, tt := range []struct {
		what string
		list []string
		has  string
		hasN string
	}{
		{"Writable", got.Writable, "ws", "out"},
		{"Denied", got.Denied, "ws/.env ws/sub/.env ws/secrets ws/missing/file out ws/missing/dir", "ws/README.md ws/src ws/src/main.go"},
		{"ReadOnly", got.ReadOnly, "ws/src/main.go ws/.git/hooks ws/sub/.git/hooks", "ws/.git ws/.git/config ws/README.md ws/.bashrc ws/.claude ws/.claude/settings.json ws/.toolhost"},
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

// TestSandboxPathsScratch: a rule on all of the home directory leaves commands the host's own directory for their temporary
// files, and nothing else.
func TestSandboxPathsScratch(t *testing.T) {
	top, ws := workspace(t)
	tree(t, top, "home/.cache/host/a/mine/tmp/f", "home/.cache/host/a/other/tmp/f", "home/proj/f", "link -> home")
	tree(t, ws, "up -> ..")
	scratch := filepath.Join(top, "home/.cache/host/a/mine")
	for _, tt := range []struct{ rule, masked, denied string }{
		{"Read(~/**)", "home", "home/proj home/.cache/host/a/other"},
		{"Read(~)", "home", "home/proj"},
		{"Read(~/.cache)", "home/.cache", "home/.cache/host/a/other"},
		{"Read(//**/.cache/**)", "", ""},
		{"Read(/" + top + "/link/**)", "home", "home/proj"},
		{"Read(~/.cache/host/a/mine/tmp/f)", "", "home/.cache/host/a/mine/tmp/f"},
		{"Read(~/proj/**)", "", "home/proj"},
		{"Read(/up)", "", ""},
	} {
		p := policy(t, ws, testRules(ws, "allow Read(~/.ssh/config)\ndeny "+tt.rule), contained, func(c *Config) {
			c.Roots, c.Scratch = append(c.Roots, filepath.Join(top, "home/proj")), scratch
		})
		got := p.Commands().SandboxPaths()
		if slices.ContainsFunc(got.Denied, func(name string) bool { return withinAny(scratch, []string{name}) }) ||
			!slices.Contains(got.Writable, scratch) {
			t.Errorf("%s: the scratch directory is gone: denied %q, writable %q", tt.rule, got.Denied, got.Writable)
		}
		if slices.Contains(got.Masked, top) {
			t.Errorf("%s: a link has the roots masked", tt.rule)
		}
		if tt.masked != "" && !slices.Contains(got.Masked, filepath.Join(top, tt.masked)) {
			t.Errorf("%s: masked %q, want %s among them", tt.rule, got.Masked, tt.masked)
		}
		for name := range strings.FieldsSeq(tt.denied) {
			if !slices.Contains(got.Denied, filepath.Join(top, name)) {
				t.Errorf("%s: denied %q, want %s among them", tt.rule, got.Denied, name)
			}
		}
		if open := filepath.Join(top, "home/.ssh/config"); slices.Contains(got.Shown, open) != (tt.masked != "home") {
			t.Errorf("%s: shown %q", tt.rule, got.Shown)
		}
	}
}

// TestSandboxPathsGit: rules hold in a repository's own directory too, but for what git names after branches and commits, and
// where they are on writing only if they name it.
func TestSandboxPathsGit(t *testing.T) {
	_, ws := workspace(t)
	tree(t, ws, ".git/x.key", ".git/sub/y.key", ".git/refs/heads/main", ".git/refs/heads/z.key",
		".git/objects/ab/z.key", ".git/modules/m/refs/main", ".git/index.lock")
	for _, tt := range []struct{ rule, denied, readOnly string }{
		{"Read(*.key)", ".git/x.key .git/sub/y.key", ""},
		{"Read(main)", "", ""},
		{"Read(.git)", ".git", ""},
		{"Read(.git/**/z.key)", ".git/refs/heads/z.key .git/objects/ab/z.key", ""},
		{"Read(.git/refs)", ".git/refs", ""},
		{"Edit(.git)", "", ".git"},
		{"Edit(*.lock)", "", ""},
		{"Edit(.git/*.lock)", "", ".git/index.lock"},
		{"Edit(main)", "", ""},
		{"Edit(.git/refs/**)", "", ".git/refs .git/refs/heads/main .git/refs/heads/z.key"},
	} {
		got := policy(t, ws, testRules(ws, "deny "+tt.rule), contained).Commands().SandboxPaths()
		for _, list := range []struct {
			is   []string
			want string
		}{{got.Denied, tt.denied}, {got.ReadOnly, tt.readOnly}} {
			for _, name := range []string{"", "/x.key", "/sub/y.key", "/refs", "/refs/heads/main", "/refs/heads/z.key",
				"/objects/ab/z.key", "/modules/m/refs/main", "/index.lock"} {
				name = ".git" + name
				if is, want := slices.Contains(list.is,
					filepath.Join(ws, name)), slices.Contains(strings.Fields(list.want), name); is != want {
					t.Errorf("%s: %s is held: %v, want %v", tt.rule, name, is, want)
				}
			}
		}
	}
}

// Where every edit is denied the root itself is kept, so that nothing new appears in it.
func TestSandboxPathsFrozen(t *testing.T) {
	_, ws := workspace(t)
	for rule, want := range map[string]bool{
		"Edit": true, "Edit(*)": true, "Edit(**)": true, "Edit(./**)": true, "Edit(/**)": true, "Edit(//**)": true, "Write(**)": true, "MultiEdit": true, "MultiEdit(**)": true,
		"Edit(src/**)": false, "Edit(*.go)": false, "Write": false, "Read(src/**)": false,
	} {
		p := policy(t, ws, testRules(ws, "deny "+rule), contained)
		if got := slices.Contains(p.Commands().SandboxPaths().ReadOnly, ws); got != want {
			t.Errorf("%s: the root is kept: %v, want %v", rule, got, want)
		}
	}
}

// TestEveryEdit holds that a rule for Edit as a whole is on what a command says it writes.
func TestEveryEdit(t *testing.T) {
	_, ws := workspace(t)
	for action, want := range map[string]Action{"deny": Deny, "ask": Ask} {
		p := policy(t, ws, testRules(ws, action+" Edit"), contained)
		for text, want := range map[string]Action{
			"echo x > q": want, "sed -i s/a/b/ README.md": want, "cp README.md q": want, "mkdir q": want, "cd src && rm main.go": want,
			"go test ./...": Allow, "npm test": Allow, "pytest -k foo": Allow, "python3 -c 'print(1)'": Allow, "cat README.md": Allow, "echo x > /dev/null": Allow,
		} {
			if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: text, Dir: resolve(t, p, ".")}}}); v.Action != want {
				t.Errorf("%s Edit: %s: %v, want %v\n%s", action, text, v.Action, want, v.Error())
			}
		}
	}
	p := policy(t, ws, testRules(ws, "deny Edit(src/**)\ndeny Edit(test)"), contained)
	for text, want := range map[string]Action{
		"cd src && make -f Makefile all": Allow, "cd src && pytest -k foo": Allow, "npm test": Allow,
		"touch src/x": Deny, "cd src && touch x": Deny,
	} {
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: text, Dir: resolve(t, p, ".")}}}); v.Action != want {
			t.Errorf("%s: %v, want %v\n%s", text, v.Action, want, v.Error())
		}
	}
}

// What is not to be fetched from, commands do not reach either.
func TestNetworkDenied(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny WebFetch(domain:Evil.example.)\ndeny WebFetch(domain: *.bad.example)\nallow WebFetch(domain:good.example)\nask WebFetch(domain:asked.example)\ndeny WebFetch"))
	if got, want := p.Commands().Network(), []string{"evil.example", "*.bad.example"}; !slices.Equal(got.Denied,
		want) || len(got.Allowed) > 0 {
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
		set := testRules(ws, "")
		set.Sandbox.Network.PublishPorts, set.Sandbox.Network.AllowLocalBinding = tt.set, tt.binding
		if got := policy(t, ws, set).For(Caller{Remote: tt.remote}).Commands().Network().Publish; got != tt.want {
			t.Errorf("%+v: Publish = %v", tt, got)
		}
	}
}
