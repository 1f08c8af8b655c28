package settings

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDefaults(t *testing.T) {
	s := Load(newPlace(t).cfg)
	yes := s.Sandbox.Enabled && s.Sandbox.AutoAllowBashIfSandboxed && s.Sandbox.AllowUnsandboxedCommands &&
		s.Gate.SiblingAbort && s.Trusted
	no := s.Sandbox.FailIfUnavailable || s.Sandbox.Network.AllowLocalBinding || s.Write.Fsync || s.DisableBypass
	if !yes || no || s.Sandbox.Network.PublishPorts != nil {
		t.Errorf("switches: %+v", s)
	}
	if s.DefaultMode != ModeAcceptEdits || s.DefaultModeFrom != (Entry{}) || s.Sandbox.OnUnavailable != OnFailureAsk {
		t.Errorf("choices: %+v", s)
	}
	if s.Gate.Parallel != 10 || !reflect.DeepEqual(s.Bash, bashSettings{ForegroundWindow: 50 * time.Second, DefaultTimeout: 2 * time.Minute, MaxTimeout: 10 * time.Minute, ExecGate: auto, MaxTasks: 256}) {
		t.Errorf("amounts: %+v %+v", s.Gate, s.Bash)
	}
	if len(s.Warnings)+len(s.Broken)+len(s.Untrusted) != 0 {
		t.Errorf("nothing written, yet %v %v %v", s.Warnings, s.Broken, s.Untrusted)
	}
}

// inOrder lists the sources as they take precedence.
func inOrder() []string {
	return []string{ownManaged, dropInB, dropInA, managedFile, "second.json", "first.json",
		ownLocal, localFile, ownProject, projectFile, ownUser, userFile}
}

func TestScalarPrecedence(t *testing.T) {
	for i, highest := range inOrder() {
		p := newPlace(t)
		p.cfg.Files = []string{p.path("first.json"), p.path("second.json")}
		p.cfg.TrustWorkspace = true
		for _, f := range p.cfg.Files {
			p.write(filepath.Base(f), "{}")
		}
		for n, name := range inOrder()[i:] {
			p.write(name, fmt.Sprintf(`{"gate": {"parallel": %d}}`, 100+n))
		}
		if got := Load(p.cfg).Gate.Parallel; got != 100 {
			t.Errorf("highest is %s: got the value of source %d below it", highest, got-100)
		}
	}
}

func TestListsJoinInOrder(t *testing.T) {
	p := newPlace(t)
	p.cfg.Files = []string{p.path("first.json"), p.path("second.json")}
	p.cfg.Deny, p.cfg.Allow = []string{"Flag"}, []string{"FlagAllow"}
	for i, name := range inOrder() {
		p.write(name, fmt.Sprintf("{\"permissions\": {\n\"deny\": [\"%d\", \"twice\"]}}", i))
	}
	s := Load(p.cfg)
	want := "0,twice,1,twice,2,twice,3,twice,Flag,4,twice,5,twice,6,twice,7,twice,8,twice,9,twice,10,twice,11,twice"
	if got := texts(s.Deny); got != want {
		t.Errorf("deny\n got %s\nwant %s", got, want)
	}
	if got := texts(s.Allow); got != "FlagAllow" {
		t.Errorf("allow %s", got)
	}
	kinds := map[string]Kind{"0": Managed, "3": Managed, "4": commandLine, "Flag": commandLine, "7": Local,
		"9": Project, "11": User}
	for _, e := range s.Deny {
		if want, ok := kinds[e.Text]; ok && e.Kind != want {
			t.Errorf("%s is %v, want %v", e.Text, e.Kind, want)
		}
		if e.Text == "Flag" && e.Where() != "--deny" || e.Text == "9" && e.Where() != p.path(projectFile)+":2" {
			t.Errorf("%s stands at %s", e.Text, e.Where())
		}
	}
}

func TestEntryRoots(t *testing.T) {
	p := newPlace(t)
	p.cfg.Roots = append(p.cfg.Roots, p.path("other"))
	p.cfg.Files, p.cfg.Deny = []string{p.path("given/f.json")}, []string{"flag"}
	for name, rule := range map[string]string{managedFile: "managed", "given/f.json": "given", projectFile: "work",
		"other/.claude/settings.local.json": "other", userFile: "user", ownUser: "own"} {
		p.write(name, `{"permissions": {"deny": ["`+rule+`"]}}`)
	}
	want := map[string]string{"managed": "", "flag": "", "given": p.path("given"), "work": p.path("work"),
		"other": p.path("other"), "user": p.path("home/.claude"), "own": p.path("home/.config/toolhost")}
	got := map[string]string{}
	for _, e := range Load(p.cfg).Deny {
		got[e.Text] = e.Root
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestManagedOnly(t *testing.T) {
	const hook = `"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}`
	p := newPlace(t)
	p.cfg.Allow = []string{"Flag"}
	p.write(managedFile, `{"allowManagedPermissionRulesOnly": true, "allowManagedHooksOnly": true, "permissions": {"allow": ["M"]}, `+hook+`,
		"sandbox": {"network": {"allowManagedDomainsOnly": true, "allowedDomains": ["m.example"]}}}`)
	p.write(userFile, `{"allowManagedPermissionRulesOnly": false, "permissions": {"allow": ["U"], "deny": ["UD"], "ask": ["UA"]}, `+hook+`,
		"sandbox": {"network": {"allowedDomains": ["u.example"], "deniedDomains": ["d.example"]}}}`)
	s := Load(p.cfg)
	if got := texts(s.Allow) + " " + texts(s.Ask) + " " + texts(s.Deny); got != "M UA UD" {
		t.Errorf("rules %q", got)
	}
	if got := s.Hooks[PreToolUse]; len(got) != 1 || got[0].Source.Kind != Managed {
		t.Errorf("hooks %+v", got)
	}
	if got := texts(s.Sandbox.Network.AllowedDomains) + " " +
		texts(s.Sandbox.Network.DeniedDomains); got != "m.example d.example" {
		t.Errorf("domains %q", got)
	}
	for _, want := range []string{"permissions.allow is left out", "counts in managed settings only"} {
		if !strings.Contains(warnings(s), want) {
			t.Errorf("no warning %q in\n%s", want, warnings(s))
		}
	}
}

func TestDisableBypass(t *testing.T) {
	for _, name := range allSources {
		for _, text := range []string{`{"permissions": {"disableBypassPermissionsMode": "disable"}}`,
			`{"disableBypassPermissionsMode": "disable"}`} {
			p := newPlace(t)
			p.cfg.Files = []string{p.path("given.json")}
			p.write("given.json", `{"permissions": {"defaultMode": "bypassPermissions"}}`)
			p.write(name, text)
			if s := Load(p.cfg); !s.DisableBypass || s.DefaultMode != ModeDefault {
				t.Errorf("%s in %s: %v, mode %s", text, name, s.DisableBypass, s.DefaultMode)
			}
		}
	}
}

// TestHookFlags: who may have the failure of a hook pass, or a hook run outside of the sandbox.
func TestHookFlags(t *testing.T) {
	hook := func(onFailure string) string {
		if onFailure != "" {
			onFailure = `, "onFailure": "` + onFailure + `"`
		}
		return `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "contained": false}]}]` +
			onFailure + `}}`
	}
	for _, tt := range []struct {
		name, managed, user, project string
		strict, outside              string // of which sources
	}{
		{"by default", hook(""), hook(""), hook(""), "managed", "managed user"},
		{"the user refuses", hook(""), hook("refuse"), hook(""), "managed project user", "managed user"},
		{"the user means to refuse", hook(""), hook("deny"), hook(""), "managed project user", "managed user"},
		{"the user allows", hook(""), hook("allow"), hook(""), "managed", "managed user"},
		{"the administrator allows", hook("allow"), hook(""), hook(""), "", "managed user"},
		{"the user is stricter", hook("allow"), hook("refuse"), hook(""), "", "managed user"},
		{"the project refuses", hook(""), hook(""), hook("refuse"), "managed project user", "managed user"},
		{"the project allows", hook(""), hook("refuse"), hook("allow"), "managed project user", "managed user"},
	} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		p.write(managedFile, tt.managed)
		p.write(userFile, tt.user)
		p.write(projectFile, tt.project)
		var strict, outside []string
		s := Load(p.cfg)
		for _, group := range s.Hooks[PreToolUse] {
			if group.Hooks[0].Strict {
				strict = append(strict, group.Source.Kind.String())
			}
			if group.Hooks[0].Uncontained {
				outside = append(outside, group.Source.Kind.String())
			}
		}
		if strings.Join(strict, " ") != tt.strict || strings.Join(outside, " ") != tt.outside {
			t.Errorf("%s: strict %q, outside %q; want %q, %q", tt.name, strict, outside, tt.strict, tt.outside)
		}
		if !strings.Contains(warnings(s), "the hook runs contained") {
			t.Errorf("%s: no warning: %s", tt.name, warnings(s))
		}
	}
}

func TestDisableAllHooks(t *testing.T) {
	const hook = `"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}`
	for _, tt := range []struct {
		name, managed, user string
		trust               bool
		project             string
		want                int
	}{
		{"by nobody", "{" + hook + "}", "{" + hook + "}", false, "{}", 2},
		{"by the user", "{" + hook + "}", `{"disableAllHooks": true, ` + hook + "}", false, "{}", 1},
		{"by the administrator", `{"disableAllHooks": true, ` + hook + "}", "{" + hook + "}", false, "{}", 0},
		{"by a stranger's project", "{" + hook + "}", "{" + hook + "}", false, `{"disableAllHooks": true}`, 2},
		{"by a trusted project", "{" + hook + "}", "{" + hook + "}", true, `{"disableAllHooks": true}`, 1},
	} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = tt.trust
		p.write(managedFile, tt.managed)
		p.write(userFile, tt.user)
		p.write(projectFile, tt.project)
		if got := len(Load(p.cfg).Hooks[PreToolUse]); got != tt.want {
			t.Errorf("%s: %d hooks, want %d", tt.name, got, tt.want)
		}
	}
}

// everything is a project file that loosens and tightens in all ways.
const everything = `{
	"permissions": {"allow": ["Bash"], "ask": ["A"], "deny": ["D"], "additionalDirectories": ["/"], "defaultMode": "bypassPermissions"},
	"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "evil"}]}], "onFailure": "allow"},
	"env": {"LD_PRELOAD": "evil.so"},
	"disableAllHooks": true,
	"sandbox": {"enabled": false, "autoAllowBashIfSandboxed": true, "excludedCommands": ["sh"], "onUnavailable": "allow", "seatbelt": true,
		"filesystem": {"allowWrite": ["/"], "denyWrite": ["DW"], "denyRead": ["DR"], "allowRead": ["/"]},
		"network": {"allowedDomains": ["*"], "deniedDomains": ["DD"], "allowPrivate": true, "allowLocalBinding": true, "allowUnixSockets": ["/s"], "allowAllUnixSockets": true, "publishPorts": true}},
	"bash": {"maxTimeout": "100h"}, "gate": {"parallel": 64, "siblingAbort": false}}`

// TestSeatbelt: the user and the administrator have commands of macOS contained.
func TestSeatbelt(t *testing.T) {
	for _, where := range []func(Config) string{Config.UserFile, Config.ManagedFile} {
		p := newPlace(t)
		p.write(strings.TrimPrefix(where(p.cfg), p.dir), `{"sandbox": {"seatbelt": true}}`)
		if s := Load(p.cfg); !s.Sandbox.Seatbelt || len(s.Warnings) > 0 {
			t.Errorf("%s: %v, %v", where(p.cfg), s.Sandbox.Seatbelt, s.Warnings)
		}
	}
}

func TestUntrustedProject(t *testing.T) {
	p := newPlace(t)
	p.write(projectFile, everything)
	s := Load(p.cfg)
	if got := texts(s.Ask) + texts(s.Deny) + texts(s.Sandbox.Filesystem.DenyRead) + texts(s.Sandbox.Filesystem.DenyWrite) + texts(s.Sandbox.Network.DeniedDomains); got != "ADDRDWDD" {
		t.Errorf("what tightens: %s", got)
	}
	n := s.Sandbox.Network
	if len(s.Allow)+len(s.AdditionalDirectories)+len(s.Hooks)+len(s.Env)+len(s.Sandbox.ExcludedCommands)+
		len(s.Sandbox.Filesystem.AllowRead)+len(s.Sandbox.Filesystem.AllowWrite)+len(n.AllowedDomains)+len(n.AllowUnixSockets) != 0 ||
		n.AllowLocalBinding || n.AllowAllUnixSockets || n.PublishPorts != nil || !s.Sandbox.Enabled ||
		s.DefaultMode != ModeAcceptEdits ||
		s.Sandbox.Seatbelt || s.Sandbox.OnUnavailable != OnFailureAsk || s.Bash.MaxTimeout != 10*time.Minute ||
		!s.Gate.SiblingAbort {
		t.Errorf("something loosened: %+v", s)
	}
	if s.Trusted || len(s.Untrusted) != 19 {
		t.Errorf("trusted %v, left out %d:\n%v", s.Trusted, len(s.Untrusted), s.Untrusted)
	}

	p.cfg.TrustWorkspace = true
	s = Load(p.cfg)
	if !s.Trusted || texts(s.Allow) != "Bash" || s.Env["LD_PRELOAD"] == "" || s.Sandbox.Enabled ||
		s.DefaultMode != ModeBypass {
		t.Errorf("trusted, yet %+v", s)
	}
	if s.Sandbox.OnUnavailable != OnFailureAsk || s.Sandbox.Seatbelt {
		t.Error("a trusted project set what only the user may set")
	}
}

func TestUntrustedTightens(t *testing.T) {
	for _, tt := range []struct{ name, user, project, want string }{
		{"stricter mode", `{}`, `{"permissions": {"defaultMode": "plan"}}`, ModePlan},
		{"another stricter mode", `{"permissions": {"defaultMode": "bypassPermissions"}}`, `{"permissions": {"defaultMode": "default"}}`, ModeDefault},
		{"laxer mode", `{"permissions": {"defaultMode": "plan"}}`, `{"permissions": {"defaultMode": "default"}}`, ModePlan},
		{"stricter than a forbidden mode", `{"permissions": {"defaultMode": "bypassPermissions", "disableBypassPermissionsMode": "disable"}}`,
			`{"permissions": {"defaultMode": "acceptEdits"}}`, ModeDefault},
		{"neither looser than auto", `{"permissions": {"defaultMode": "auto"}}`, `{"permissions": {"defaultMode": "acceptEdits"}}`, ModeDefault},
		{"misspelt mode asks", `{}`, `{"permissions": {"defaultMode": "plam"}}`, ModeDefault},
		{"misspelt mode of the user asks", `{"permissions": {"defaultMode": "plam"}}`, `{}`, ModeDefault},
	} {
		p := newPlace(t)
		p.write(userFile, tt.user)
		p.write(projectFile, tt.project)
		if got := Load(p.cfg).DefaultMode; got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// checkNotLooser fails when a list of allowances grew, one of refusals shrank,
// or a switch moved towards the lax side.
func checkNotLooser(t *rapid.T, before, after *Settings, words *keySet) {
	for i := range words.keys {
		k := &words.keys[i]
		if k.form != formList {
			continue
		}
		was, is := *k.list(before), *k.list(after)
		for _, e := range was {
			if k.tightens && !slices.ContainsFunc(is, func(o Entry) bool { return o.Text == e.Text }) {
				t.Fatalf("%s lost %s", k.name, e.Text)
			}
		}
		if !k.tightens && len(is) > len(was) {
			t.Fatalf("%s grew from %s to %s", k.name, texts(was), texts(is))
		}
	}
	scalars := func(s *Settings) map[string]string {
		b := func(v bool) string { return fmt.Sprint(v) }
		return map[string]string{keyMode: s.DefaultMode, "sandbox.enabled": b(s.Sandbox.Enabled),
			"sandbox.failIfUnavailable": b(s.Sandbox.FailIfUnavailable), "sandbox.autoAllowBashIfSandboxed": b(s.Sandbox.AutoAllowBashIfSandboxed),
			"sandbox.allowUnsandboxedCommands": b(s.Sandbox.AllowUnsandboxedCommands), "sandbox.onUnavailable": s.Sandbox.OnUnavailable,
			"sandbox.network.allowPrivate":      b(s.Sandbox.Network.AllowPrivate),
			"sandbox.network.allowLocalBinding": b(s.Sandbox.Network.AllowLocalBinding), "sandbox.network.allowAllUnixSockets": b(s.Sandbox.Network.AllowAllUnixSockets)}
	}
	now := scalars(after)
	for name, was := range scalars(before) {
		if k := words.byName[name]; k.rank(now[name]) > k.rank(was) {
			t.Fatalf("%s went from %s to %s", name, was, now[name])
		}
	}
	if before.DisableBypass && !after.DisableBypass || len(after.Hooks[PreToolUse]) != len(before.Hooks[PreToolUse]) ||
		len(after.Env) > len(before.Env) {
		t.Fatalf("bypass, hooks or env changed: %+v", after)
	}
}

// drawFile draws the text of a settings file.
func drawFile(t *rapid.T, label string, words *keySet) string {
	var parts []string
	for i := range words.keys {
		k := &words.keys[i]
		if k.from == onlyManaged || rapid.IntRange(0, 2).Draw(t, label+k.name) == 0 {
			continue
		}
		value := ""
		switch k.form {
		case formList:
			value = `"` + rapid.SampledFrom([]string{"a", "b", "c", "Read(!d)"}).Draw(t, "entry") + `"`
			if k.member != "" {
				value = fmt.Sprintf(`{"%s": %s, "mode": "deny"}`, k.member, value)
			}
			if k.objects {
				value = fmt.Sprintf(`{"provider": %s}`, value)
			}
			value = "[" + value + "]"
		case formSwitch:
			value = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "switch")
		case formChoice:
			value = `"` + rapid.SampledFrom(append(slices.Clone(k.order), "nonsense")).Draw(t, "choice") + `"`
		case formText, formRunner:
			value = `"toolbox"`
		case formNumber:
			value = "3"
		case formDuration:
			value = `"3s"`
		}
		parts = append(parts, nested(k.name, value))
	}
	return "{" + strings.Join(parts, ",\n") + "}"
}

// nested writes a dotted key as objects; repeated groups are joined by the reader.
func nested(name, value string) string {
	head, rest, more := strings.Cut(name, ".")
	if !more {
		return fmt.Sprintf("%q: %s", head, value)
	}
	return fmt.Sprintf("%q: {%s}", head, nested(rest, value))
}

func TestAddedProjectFileNeverLoosens(t *testing.T) {
	words := newKeySet()
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlace(t)
		files := slices.Clone(allSources)
		added := rapid.SampledFrom(projectFiles).Draw(rt, "added")
		for _, name := range files {
			if name != added && rapid.Bool().Draw(rt, name) {
				p.write(name, drawFile(rt, name, words))
			}
		}
		before := Load(p.cfg)
		p.write(added, drawFile(rt, added, words))
		checkNotLooser(rt, before, Load(p.cfg), words)

		// And what a running server takes over is never looser either.
		w := newReloader(p.cfg)
		w.cfg.TrustWorkspace = true
		running := w.read()
		w.now = func() time.Time { return time.Now().Add(time.Hour) }
		p.write(added, drawFile(rt, "again", words))
		if next := w.read(); next != nil {
			checkNotLooserHeld(rt, running, next, words)
		}
	})
}

// checkNotLooserHeld is checkNotLooser, but hooks and env may shrink, and a list
// whose carve-outs changed loses them.
func checkNotLooserHeld(t *rapid.T, before, after *Settings, words *keySet) {
	was := *before
	for i := range words.keys {
		if k := &words.keys[i]; k.form == formList {
			*k.list(&was) = slices.DeleteFunc(slices.Clone(*k.list(before)), carvesOut)
		}
	}
	now := *after
	now.Hooks, now.Env = was.Hooks, was.Env
	for i := range words.keys {
		if k := &words.keys[i]; k.form == formList {
			*k.list(&now) = slices.DeleteFunc(slices.Clone(*k.list(after)), carvesOut)
		}
	}
	checkNotLooser(t, &was, &now, words)
}

// TestMasks: a mask counts from a person's settings only, for hosts that are allowed. All else denies.
func TestMasks(t *testing.T) {
	entry := func(rest string) string {
		return `{"sandbox": {"credentials": {"envVars": [{"name": "T", ` + rest + `}]}}}`
	}
	good := entry(`"mode": "mask", "injectHosts": ["api.example"]`)
	for _, c := range []struct {
		file, text string
		mask       string // its hosts; "": none
		warning    string
	}{
		{userFile, good, "[api.example]", ""},
		{managedFile, good, "[api.example]", ""},
		{userFile, entry(`"mode": "mask", "injectHosts": ["a.sub.example", "*.b.sub.example", "api.example:8443"]`), "[a.sub.example *.b.sub.example api.example:8443]", ""},
		{projectFile, good, "", "counts from user and managed settings only"},
		{localFile, good, "", "counts from user and managed settings only"},
		{userFile, entry(`"mode": "mask"`), "", `no "injectHosts"`},
		{userFile, entry(`"mode": "mask", "injectHosts": []`), "", `no "injectHosts"`},
		{userFile, entry(`"mode": "mask", "injectHosts": ["*"]`), "", "any host"},
		{userFile, entry(`"mode": "mask", "injectHosts": ["*.com"]`), "", "hosts of anybody"},
		{userFile, entry(`"mode": "mask", "injectHosts": ["*.GitHub.io:443"]`), "", "hosts of anybody"},
		{userFile, entry(`"mode": "mask", "injectHosts": ["*.sub.example"]`), "[*.sub.example]", ""},
		{userFile, entry(`"mode": "mask", "injectHosts": "api.example"`), "", "another type"},
		{userFile, entry(`"mode": "mask", "injectHosts": ["other.example"]`), "", "toolhost allow-host other.example"},
		{userFile, entry(`"mode": "mask", "injectHosts": ["*.example"]`), "", "not in sandbox.network.allowedDomains"},
		{userFile, entry(`"mode": "mask", "injectHosts": ["api.example"], "file": "f", "command": "c"`), "", "both"},
		{userFile, entry(`"mode": "deny"`), "", ""},
	} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		p.write(c.file, c.text)
		p.write("given/f.json", `{"sandbox": {"network": {"allowedDomains": ["api.example", "*.sub.example"]}}}`)
		p.cfg.Files = append(p.cfg.Files, p.path("given/f.json"))
		s := Load(p.cfg)
		got := ""
		for _, m := range s.Sandbox.Credentials.MaskedVars {
			got += fmt.Sprint(m.InjectHosts)
		}
		if got != c.mask || texts(s.Sandbox.Credentials.EnvVars) != "T" || !strings.Contains(warnings(s), c.warning) ||
			c.warning == "" && warnings(s) != "" {
			t.Errorf("%s %s: masks %q of %q\n%s", c.file, c.text, got, texts(s.Sandbox.Credentials.EnvVars),
				warnings(s))
		}
	}
	// A workspace cannot widen a mask, and can deny.
	for text, want := range map[string]int{good: 1, entry(`"mode": "mask", "injectHosts": ["evil.example"]`): 1,
		entry(`"mode": "deny"`): 0} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		p.write(userFile, `{"sandbox": {"network": {"allowedDomains": ["api.example", "evil.example"]}, "credentials": {"envVars": [{"name": "T", "mode": "mask", "injectHosts": ["api.example"]}]}}}`)
		p.write(projectFile, text)
		if got := Load(p.cfg).Sandbox.Credentials.MaskedVars; len(got) != want || want == 1 &&
			got[0].InjectHosts[0] != "api.example" {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
