//go:build unix

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// testRules makes settings of rules written as "deny Read(x)", one on each line of
// one source whose root is dir. "mode plan" sets the mode.
func testRules(dir, text string) *settings.Settings {
	s := &settings.Settings{DefaultMode: settings.ModeAcceptEdits, Sandbox: settings.Sandbox{
		Enabled: true, AutoAllowBashIfSandboxed: true, AllowUnsandboxedCommands: true,
		OnUnavailable: settings.OnFailureDeny,
	}}
	for i, line := range strings.Split(text, "\n") {
		kind, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		e := settings.Entry{Text: what, Kind: settings.Project, File: "settings.json", Line: i + 1, Root: dir}
		switch kind {
		case "deny":
			s.Deny = append(s.Deny, e)
		case "ask":
			s.Ask = append(s.Ask, e)
		case "allow":
			s.Allow = append(s.Allow, e)
		case "dir":
			s.AdditionalDirectories = append(s.AdditionalDirectories, e)
		case "mode":
			s.DefaultMode = what
		case "":
		default:
			panic("unknown line " + line)
		}
	}
	return s
}

// workspace is what the tables below are judged in: top/ws is the root, top/more
// an additional directory when a table says so, top/home the home directory.
func workspace(t testing.TB) (top, ws string) {
	t.Helper()
	top = realTemp(t)
	ws = filepath.Join(top, "ws")
	tree(t, top, "home/.ssh/id_rsa", "out/store", "ws/src/main.go", "ws/.env", "ws/README.md", "ws/secrets/key",
		"ws/secrets/public/ok", "ws/environment.md",
		"ws/.git/config", "ws/.git/hooks/pre-commit", "ws/.claude/settings.json", "ws/.bashrc", "ws/sub/.env", "ws/other -> src/main.go",
		"ws/envlink -> .env", "ws/hard = ws/.env", "ws/secretdir -> secrets", "ws/outlink -> "+top+"/out/f", "ws/outdir -> "+top+"/out",
		"ws/sshlink -> "+top+"/home/.ssh/id_rsa", "ws/sshhard = home/.ssh/id_rsa", "ws/store = out/store", "ws/two = ws/README.md", "ws/gone -> "+top+"/out/new",
		"ws-evil/f", "out/f", "more/f", "home/.ssh/config", "home/notes", "state/results/mine/r1", "state/results/other/r2", "state/token")
	return top, ws
}

func TestJudgeFiles(t *testing.T) {
	tests := []struct {
		why   string
		rules string
		call  string // tool and path below ws, "$TOP" for what is above it
		want  Action
		rule  string
	}{
		// Without rules (guard.md, Modes and Boundary).
		{"reading inside", "", "Read README.md", Allow, RuleBoundary},
		{"editing inside", "", "Edit src/main.go", Allow, "mode acceptEdits"},
		{"creating inside", "", "Write new/file", Allow, "mode acceptEdits"},
		{"editing in default mode", "mode default", "Edit src/main.go", Ask, "mode default"},
		{"editing in plan mode", "mode plan\nallow Edit", "Edit src/main.go", Deny, "mode plan"},
		{"reading in plan mode", "mode plan", "Read src/main.go", Allow, RuleBoundary},
		{"editing in dontAsk mode", "mode dontAsk", "Edit src/main.go", Deny, "mode dontAsk"},
		{"editing in dontAsk mode by rule", "mode dontAsk\nallow Edit(src/**)", "Edit src/main.go", Allow, "Edit(src/**)"},
		{"reading in dontAsk mode", "mode dontAsk", "Grep src", Allow, RuleBoundary},
		{"outside in bypass mode", "mode bypassPermissions", "Edit $TOP/out/f", Allow, "mode bypassPermissions"},
		{"deny in bypass mode", "mode bypassPermissions\ndeny Edit(src/**)", "Edit src/main.go", Deny, "Edit(src/**)"},
		{"protected path in bypass mode", "mode bypassPermissions", "Write .git/config", Ask, RuleProtected},
		{"unknown mode", "mode yolo", "Edit src/main.go", Ask, "mode default"},
		{"tool allowed by name in default mode", "mode default\nallow Edit", "Write src/main.go", Allow, "Edit"},

		// Boundary.
		{"outside", "", "Read $TOP/out/f", Ask, RuleBoundary},
		{"outside, twin of the root's name", "", "Read $TOP/ws-evil/f", Ask, RuleBoundary},
		{"outside by ..", "", "Read ../out/f", Ask, RuleBoundary},
		{"outside in dontAsk mode", "mode dontAsk", "Read $TOP/out/f", Deny, RuleBoundary},
		{"outside by a symlink", "", "Read outlink", Ask, RuleBoundary},
		{"outside by a symlinked parent", "", "Write outdir/new", Ask, RuleBoundary},
		{"outside by a dangling symlink", "", "Write gone", Ask, RuleBoundary},
		{"outside by /proc/self/root", "", "Read /proc/self/root$TOP/out/f", Ask, RuleBoundary},
		{"outside, allowed by a rule", "allow Read(/$TOP/out/**)", "Read $TOP/out/f", Allow, "Read(/$TOP/out/**)"},
		{"outside, allowed directory searched", "allow Read(/$TOP/out/**)", "Grep $TOP/out", Allow, "Read(/$TOP/out/**)"},
		{"outside, only the tool allowed", "allow Read", "Read $TOP/out/f", Ask, RuleBoundary},
		{"allow needs the link's target too", "allow Read(outlink)", "Read outlink", Ask, RuleBoundary},
		{"allow needs the link's target too, by its whole name", "allow Read(/$TOP/ws/outlink)", "Read outlink", Ask, RuleBoundary},
		{"allow of a link to a directory", "allow Read(/outdir/**)", "Read outdir/f", Ask, RuleBoundary},
		{"allow of what a link leads to", "allow Read(/$TOP/out/**)\nallow Read(/outdir/**)", "Read outdir/f", Allow, "Read(/$TOP/out/**)"},
		{"allow needs the link's name too", "mode default\nallow Edit(src/**)", "Edit other", Ask, "mode default"},
		{"additional directory", "dir $TOP/more", "Edit $TOP/more/f", Allow, "mode acceptEdits"},
		{"additional directory by a link in the workspace", "dir outdir", "Read outdir/f", Ask, RuleBoundary},
		{"additional directory, relative", "dir ../more", "Read $TOP/more/f", Allow, RuleBoundary},

		// Deny (guard.md, Read and Edit).
		{"deny", "deny Read(.env)", "Read .env", Deny, "Read(.env)"},
		{"deny at depth", "deny Read(.env)", "Read sub/.env", Deny, "Read(.env)"},
		{"deny ./p as Claude Code reads it", "deny Read(./.env)", "Read sub/.env", Deny, "Read(./.env)"},
		{"deny, benign twin", "deny Read(.env)", "Read environment.md", Allow, RuleBoundary},
		{"deny absolute", "deny Read(/$TOP/ws/.env)", "Read .env", Deny, ""},
		{"deny home", "deny Read(~/notes)", "Read ~/notes", Deny, "Read(~/notes)"},
		{"deny all of home", "deny Read(~)", "Read ~/notes", Deny, "Read(~)"},
		{"deny source root", "deny Read(/.env)", "Read .env", Deny, "Read(/.env)"},
		{"deny source root only", "deny Read(/.env)", "Read sub/.env", Allow, RuleBoundary},
		{"deny of a directory's content is for any depth", "deny Read(secrets/**)", "Read sub/secrets/key", Deny, "Read(secrets/**)"},
		{"the same for ./", "deny Edit(./secrets/**)", "Write sub/secrets/key", Deny, "Edit(./secrets/**)"},
		{"the same for an ask", "ask Read(secrets/**)", "Read sub/secrets/key", Ask, "Read(secrets/**)"},
		{"the same with braces", "deny Read({x,secrets}/**)", "Read sub/secrets/key", Deny, ""},
		{"not for two directories", "deny Read(sub/secrets/**)", "Read x/sub/secrets/key", Allow, RuleBoundary},
		{"not for one at the root of the settings", "deny Read(/secrets/**)", "Read sub/secrets/key", Allow, RuleBoundary},
		{"not for an allow", "mode default\nallow Edit(src/**)", "Write sub/src/x", Ask, ""},
		{"a tool name with a wildcard", "deny *Edit", "Edit src/main.go", Deny, "*Edit"},
		{"a tool name with a wildcard, another tool", "deny Re*", "Write src/main.go", Deny, "Re*"},
		{"a tool name with a wildcard and a file", "deny Rea*(.env)", "Read .env", Deny, "Rea*(.env)"},
		{"a misspelt tool name", "deny Raed(.env)", "Read .env", Deny, "Raed(.env)"},
		{"a misspelt tool name takes no whole tool", "deny Raed", "Read .env", Allow, RuleBoundary},
		{"a former tool name", "deny View", "Read README.md", Deny, "View"},
		{"a former tool name and a file", "deny View(.env)", "Read .env", Deny, "View(.env)"},
		{"a former tool name as clients show it", "deny mcp__toolhost__View(.env)", "Read .env", Deny, ""},
		{"a former tool name of edits", "deny MultiEdit", "Edit src/main.go", Deny, "MultiEdit"},
		{"a former tool name of edits takes the tools that Edit does", "deny MultiEdit", "Write src/main.go", Deny, "MultiEdit"},
		{"a former tool name of edits leaves reads", "deny MultiEdit", "Read src/main.go", Allow, RuleBoundary},
		{"a former tool name of edits and a file", "deny MultiEdit(src/**)", "Edit src/main.go", Deny, "MultiEdit(src/**)"},
		{"a former tool name of edits and another file", "deny MultiEdit(src/**)", "Edit README.md", Allow, "mode acceptEdits"},
		{"a former tool name in another case", "deny multiedit", "Edit src/main.go", Deny, "multiedit"},
		{"a former tool name with a wildcard", "deny Multi*", "Edit src/main.go", Deny, "Multi*"},
		{"a former tool name to ask for", "ask View", "Read README.md", Ask, "View"},
		{"a former tool name of the whole writes", "deny Replace", "Edit README.md", Allow, "mode acceptEdits"},
		{"a former tool name gives no right", "mode default\nallow MultiEdit", "Edit README.md", Ask, ""},
		{"a former tool name and a pattern that is none", `deny View([z-a]\)`, `Read [z-a]\`, Deny, ""},
		{"deny above", "deny Read(../out/**)", "Read $TOP/out/f", Deny, "Read(../out/**)"},
		{"deny by a path with ..", "deny Read(src/../secrets/**)", "Read secrets/key", Deny, ""},
		{"deny in an additional directory", "dir ../more\ndeny Read(f)", "Read $TOP/more/f", Deny, "Read(f)"},
		{"deny blocks Grep", "deny Read(secrets/)", "Grep secrets", Deny, "Read(secrets/)"},
		{"deny blocks Glob", "deny Read(secrets/)", "Glob secrets/public", Deny, "Read(secrets/)"},
		{"Read deny blocks Edit", "deny Read(.env)", "Edit .env", Deny, "Read(.env)"},
		{"Read deny blocks Write", "deny Read(.env)", "Write .env", Deny, "Read(.env)"},
		{"Read deny blocks NotebookEdit", "deny Read(*.ipynb)", "NotebookEdit n.ipynb", Deny, "Read(*.ipynb)"},
		{"Edit deny lets Read pass", "deny Edit(.env)", "Read .env", Allow, RuleBoundary},
		{"Edit deny blocks Write", "deny Edit(new)", "Write new", Deny, "Edit(new)"},
		{"Write deny counts for Edit", "deny Write(src/**)", "Edit src/main.go", Deny, "Write(src/**)"},
		{"deny goes before allow", "allow Read(.env)\ndeny Read(*)", "Read .env", Deny, "Read(*)"},
		{"deny goes before ask", "ask Read(.env)\ndeny Read(.env)", "Read .env", Deny, "Read(.env)"},
		{"ask goes before allow", "allow Read(.env)\nask Read(.env)", "Read .env", Ask, "Read(.env)"},
		{"ask in bypass mode", "mode bypassPermissions\nask Edit(src/**)", "Edit src/main.go", Ask, "Edit(src/**)"},
		{"deny by the link's name", "deny Read(envlink)", "Read envlink", Deny, "Read(envlink)"},
		{"deny by the link's target", "deny Read(.env)", "Read envlink", Deny, "Read(.env)"},
		{"deny by a parent link's target", "deny Read(secrets/**)", "Read secretdir/key", Deny, "Read(secrets/**)"},
		{"deny of a link's name holds for its target", "deny Read(/secretdir/**)", "Read secrets/key", Deny, "Read(/secretdir/**)"},
		{"deny by a hard link", "deny Read(.env)", "Read hard", Deny, "Read(.env)"},
		{"edit deny by a hard link", "deny Edit(.env)", "Edit hard", Deny, "Edit(.env)"},
		{"edit deny, reading a hard link", "deny Edit(.env)", "Read hard", Allow, RuleBoundary},
		{"deny by ..", "deny Read(.env)", "Read src/../.env", Deny, "Read(.env)"},
		{"deny with a trailing slash", "deny Read(.env)", "Read .env/", Deny, "Read(.env)"},
		{"deny with doubled slashes", "deny Read(secrets/key)", "Read secrets//./key", Deny, "Read(secrets/key)"},
		{"deny by /proc/self/root", "deny Read(.env)", "Read /proc/self/root$TOP/ws/.env", Deny, "Read(.env)"},
		{"deny of a missing file", "deny Read(later/**)", "Write later/x", Deny, "Read(later/**)"},
		{"deny composed, file decomposed", "deny Read(caf\u00e9)", "Read cafe\u0301", Deny, ""},
		{"carve-out", "deny Read(secrets/*)\ndeny Read(!secrets/public)", "Read secrets/public/ok", Allow, RuleBoundary},
		{"carve-out, the rest", "deny Read(secrets/*)\ndeny Read(!secrets/public)", "Read secrets/key", Deny, "Read(secrets/*)"},
		{"carve-out below an excluded directory", "deny Read(secrets/)\ndeny Read(!secrets/public/ok)", "Read secrets/public/ok", Deny, "Read(secrets/)"},
		{"unusable pattern guards its literal path", "deny Read(a[b)", "Read a[b", Deny, "Read(a[b)"},
		{"rule that is not closed guards its literal path", "deny Read(.env", "Read .env", Deny, "Read(.env"},
		{"a bad entry leaves the others in force", "deny nonsense (\ndeny Read(.env)", "Read .env", Deny, "Read(.env)"},
		{"unusable allow allows nothing", "mode default\nallow Edit(a[b)", "Edit a[b", Ask, "mode default"},
		{"allow ./p is the one at the root", "mode default\nallow Edit(./x)", "Edit sub/x", Ask, "mode default"},
		{"allow p at any depth", "mode default\nallow Edit(x)", "Edit sub/x", Allow, "Edit(x)"},
		{"allow Write does not speak for Edit", "mode default\nallow Write(x)", "Edit x", Ask, "mode default"},
		{"allow Write", "mode default\nallow Write(x)", "Write x", Allow, "Write(x)"},
		{"a deny of Grep is one of Read", "deny Grep(src)", "Read src/main.go", Deny, "Grep(src)"},
		{"a deny in the wrong case", "deny read(.env)", "Read .env", Deny, "read(.env)"},
		{"an allow in the wrong case", "mode default\nallow edit(x)", "Edit x", Ask, "mode default"},
		{"allow Grep does not speak for Read", "allow Grep(/$TOP/out/**)", "Read $TOP/out/f", Ask, RuleBoundary},

		// Tool names and parameters (guard.md, Further forms and Others).
		{"tool denied", "deny Edit", "Write src/main.go", Deny, "Edit"},
		{"tool denied with (*)", "deny Read(*)", "Grep src", Deny, "Read(*)"},
		{"every tool denied", "deny *", "Read README.md", Deny, "*"},
		{"every tool asked", "ask *", "Read README.md", Ask, "*"},
		{"every tool allowed is a bad entry", "mode default\nallow *", "Edit src/main.go", Ask, "mode default"},
		{"our tool by its MCP name", "deny mcp__toolhost__Read", "Read README.md", Deny, "mcp__toolhost__Read"},
		{"our server", "deny mcp__toolhost", "Read README.md", Deny, "mcp__toolhost"},
		{"MCP tool without a rule", "", "mcp__git__push", Ask, "mode acceptEdits"},
		{"MCP tool in plan mode", "mode plan\nallow mcp__git", "mcp__git__push", Deny, "mode plan"},
		{"MCP server allowed", "allow mcp__git", "mcp__git__push", Allow, "mcp__git"},
		{"MCP server allowed with *", "allow mcp__git__*", "mcp__git__push", Allow, "mcp__git__*"},
		{"MCP tool denied", "allow mcp__git\ndeny mcp__git__push", "mcp__git__push", Deny, "mcp__git__push"},
		{"MCP tools denied by prefix", "allow mcp__git\ndeny mcp__git__pu*", "mcp__git__push", Deny, "mcp__git__pu*"},
		{"MCP server, twin of its name", "deny mcp__git", "mcp__github__push", Ask, "mode acceptEdits"},
		{"parameter", "deny Grep(no_ignore:true)", "Grep src no_ignore=true", Deny, "Grep(no_ignore:true)"},
		{"parameter, other value", "deny Grep(no_ignore:true)", "Grep src no_ignore=false", Allow, RuleBoundary},
		{"parameter, omitted", "deny Grep(no_ignore:*)", "Grep src", Allow, RuleBoundary},
		{"parameter, any value", "ask Grep(no_ignore:*)", "Grep src no_ignore=false", Ask, "Grep(no_ignore:*)"},
		{"parameter of every tool", "deny *(no_ignore:true)", "Grep src no_ignore=true", Deny, "*(no_ignore:true)"},

		// Built-in guards.
		{"settings file", "allow Edit\nallow Edit(**)", "Edit .claude/settings.json", Deny, ruleSettingsFile},
		{"absent settings file", "", "Write sub/.claude/settings.local.json", Deny, ruleSettingsFile},
		{"absent settings file, other case", "", "Write .CLAUDE/Settings.json", Deny, ruleSettingsFile},
		{"our settings file", "mode bypassPermissions", "Write .toolhost/toolhost.json", Deny, ruleSettingsFile},
		{"managed settings", "mode bypassPermissions", "Write /etc/claude-code/managed-settings.json", Deny, ruleSettingsFile},
		{"user settings", "mode bypassPermissions", "Write ~/.claude/settings.json", Deny, ruleSettingsFile},
		{"reading a settings file", "", "Read .claude/settings.json", Allow, RuleBoundary},
		{"protected, no rule approves", "allow Edit(.bashrc)", "Edit .bashrc", Ask, RuleProtected},
		{"protected at depth", "", "Write a/b/.vscode/tasks.json", Ask, RuleProtected},
		{"protected, other case", "", "Write .Git/hooks/x", Ask, RuleProtected},
		{"protected, reading", "", "Read .git/config", Allow, RuleBoundary},
		{"protected in dontAsk mode", "mode dontAsk\nallow Edit(**)", "Write .envrc", Deny, RuleProtected},
		{"home secret", "", "Read ~/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret searched", "", "Grep ~/.ssh", Deny, ruleSecret},
		{"home secret by a link", "", "Read sshlink", Deny, ruleSecret},
		{"home secret by a hard link", "", "Read sshhard", Deny, ruleSecret},
		{"home secret in bypass mode", "mode bypassPermissions", "Read ~/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret, the tool allowed", "allow Read", "Read ~/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret opened", "allow Read(~/.ssh/config)", "Read ~/.ssh/config", Allow, "Read(~/.ssh/config)"},
		{"home secret next to an open one", "allow Read(~/.ssh/config)", "Read ~/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret opened for reading only", "allow Read(~/.ssh/config)", "Write ~/.ssh/config", Deny, ruleSecret},
		{"our state", "allow Read(/$TOP/state/**)", "Read $TOP/state/token", Deny, ruleState},
		{"own results", "", "Read $TOP/state/results/mine/r1", Allow, ruleState},
		{"own results, writing", "mode bypassPermissions", "Write $TOP/state/results/mine/r1", Deny, ruleState},
		{"results of others", "", "Read $TOP/state/results/other/r2", Deny, ruleState},
		{"results of others by ..", "", "Read $TOP/state/results/mine/../other/r2", Deny, ruleState},
		{"two names inside", "", "Edit two", Allow, "mode acceptEdits"},
		{"names outside", "", "Edit store", Ask, ruleHardLink},
		{"names outside, reading", "", "Read store", Allow, RuleBoundary},
	}
	top, _ := workspace(t)
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			v := judgeCall(t, top, strings.ReplaceAll(tt.rules, "$TOP", top), strings.ReplaceAll(tt.call, "$TOP", top))
			if want := strings.ReplaceAll(tt.rule, "$TOP", top); v.Action != tt.want || want != "" && v.Rule != want {
				t.Errorf("%q under %q: %v by %q, want %v by %q\n%s", tt.call, tt.rules, v.Action, v.Rule, tt.want,
					want, v.Error())
			}
		})
	}
}

// judgeCall judges "Tool path parameter=value".
func judgeCall(t *testing.T, top, ruleText, call string) Verdict {
	t.Helper()
	ws := filepath.Join(top, "ws")
	p := policy(t, ws, testRules(ws, ruleText)).For(Caller{Own: []string{filepath.Join(top, "state/results/mine")}})
	words := strings.Fields(call)
	in := Intent{Tool: words[0], Args: map[string]any{}}
	if strings.HasPrefix(in.Tool, "mcp__") {
		in.Effects = []Effect{CallTool{}}
	}
	for _, w := range words[1:] {
		if name, value, ok := strings.Cut(w, "="); ok {
			in.Args[name] = value
			continue
		}
		path := resolve(t, p, w)
		switch in.Tool {
		case "Edit", "Write", "NotebookEdit":
			in.Effects = append(in.Effects, Write{Path: path})
		case "Read":
			in.Effects = append(in.Effects, Read{Path: path})
		default:
			in.Effects = append(in.Effects, Search{Path: path})
		}
	}
	return p.Judge(in)
}

// TestIntentsWithoutFiles: what touches neither files nor commands is judged in
// each mode, and an intent that names nothing is refused in all of them.
func TestIntentsWithoutFiles(t *testing.T) {
	_, ws := workspace(t)
	modes := []string{"default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"}
	tests := []struct {
		why   string
		rules string
		in    Intent
		want  [5]Action // in the modes above
	}{
		{"no effect", "", Intent{Tool: "Idle"}, [5]Action{}},
		{"no effect, allowed by name", "allow TaskStop", Intent{Tool: "TaskStop"}, [5]Action{}},
		{"no effect, asked by name", "ask TaskStop", Intent{Tool: "TaskStop"}, [5]Action{}},
		{"reading a task", "", Intent{Tool: "TaskOutput", Effects: []Effect{ReadTask{}}}, [5]Action{Allow, Allow, Allow, Allow, Allow}},
		{"reading a task, denied", "deny TaskOutput", Intent{Tool: "TaskOutput", Effects: []Effect{ReadTask{}}}, [5]Action{}},
		{"stopping a task", "", Intent{Tool: "TaskStop", Effects: []Effect{StopTask{}}}, [5]Action{Allow, Allow, Allow, Allow, Allow}},
		{"stopping a task, asked", "ask TaskStop", Intent{Tool: "TaskStop", Effects: []Effect{StopTask{}}}, [5]Action{Ask, Ask, Ask, Deny, Ask}},
		{"an extension", "", Intent{Tool: "extra", Effects: []Effect{CallTool{}}}, [5]Action{Ask, Ask, Deny, Deny, Allow}},
		{"an extension, allowed", "allow extra", Intent{Tool: "extra", Effects: []Effect{CallTool{}}}, [5]Action{Allow, Allow, Deny, Allow, Allow}},
	}
	for _, tt := range tests {
		for i, mode := range modes {
			if v := policy(t, ws, testRules(ws, "mode "+mode+"\n"+tt.rules)).Judge(tt.in); v.Action != tt.want[i] ||
				v.Error() == "" {
				t.Errorf("%s in mode %s: %v, want %v: %s", tt.why, mode, v.Action, tt.want[i], v.Error())
			}
		}
	}
}

func TestVerdictsTell(t *testing.T) {
	top, _ := workspace(t)
	v := judgeCall(t, top, "ask Bash\ndeny Read(.env)", "Read envlink")
	if v.Source != "settings.json:2" || !strings.Contains(v.Error(), "settings.json:2") ||
		!strings.Contains(v.Error(), "Read(.env)") {
		t.Errorf("the verdict does not say where its rule stands: %s", v.Error())
	}
	if strings.Contains(v.Reason, "/.env") {
		t.Errorf("the reason names the link's target: %s", v.Reason)
	}
	if strings.Contains(v.Error(), "\n") || v.Remedy == "" || len(v.Parts) != 1 {
		t.Errorf("verdict = %+v", v)
	}
	var zero Verdict
	if zero.Action != Deny || zero.Error() == "" {
		t.Error("the zero Verdict does not refuse")
	}
	ws := filepath.Join(top, "ws")
	if v := policy(t, ws, nil).Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: Path{}}}}); v.Action != Deny {
		t.Errorf("an unresolved path: %v", v)
	}
}

func TestBrokenSettingsRefuseEverything(t *testing.T) {
	_, ws := workspace(t)
	set := testRules(ws, "mode bypassPermissions\nallow Bash")
	set.Broken = []error{errors.New("settings file /x/settings.json:3:7: unexpected }")}
	p := policy(t, ws, set)
	for _, in := range []Intent{{Tool: "Read", Effects: []Effect{Read{Path: resolve(t, p, "README.md")}}},
		{Tool: "Bash", Effects: []Effect{Exec{Text: "true", Dir: resolve(t, p, ".")}}}, {Tool: "TaskOutput"}} {
		if v := p.Judge(in); v.Action != Deny || !strings.Contains(v.Error(), "/x/settings.json:3:7") {
			t.Errorf("%s: %s", in.Tool, v.Error())
		}
	}
	if ok, v := p.ToolEnabled("Read"); ok || !strings.Contains(v.Error(), "settings.json:3:7") {
		t.Errorf("ToolEnabled = %v, %s", ok, v.Error())
	}
}

func TestToolEnabled(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Bash\ndeny Edit\ndeny mcp__x__*\ndeny Read(.env)"))
	for name, want := range map[string]bool{"Bash": false, "Edit": false, "Write": false, "Read": true, "Grep": true,
		"mcp__x__y": false, "mcp__z__y": true} {
		if got, v := p.ToolEnabled(name); got != want || got != (v.Action == Allow) {
			t.Errorf("ToolEnabled(%s) = %v, %v; want %v", name, got, v, want)
		}
	}
}

func TestNewRefusesRoots(t *testing.T) {
	top, ws := workspace(t)
	home := filepath.Join(top, "home")
	tests := []struct {
		roots    []string
		explicit bool
		ok       bool
	}{
		{nil, false, false},
		{[]string{ws}, false, true},
		{[]string{"/"}, false, false},
		{[]string{"/"}, true, true},
		{[]string{home}, false, false},
		{[]string{home + "/."}, false, false},
		{[]string{home}, true, true},
		{[]string{"relative"}, true, false},
		{[]string{ws + "/none"}, true, false},
		{[]string{ws + "/README.md"}, true, false},
	}
	for _, tt := range tests {
		_, err := New(Config{Roots: tt.roots, ExplicitRoots: tt.explicit, Home: home})
		if (err == nil) != tt.ok {
			t.Errorf("New(%q, explicit %v): %v", tt.roots, tt.explicit, err)
		}
	}
}

func TestHidden(t *testing.T) {
	top, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read(.env)\ndeny Read(secrets/*)\ndeny Read(!secrets/public)\nallow Read(~/.ssh/config)"))
	p = p.For(Caller{Own: []string{top + "/state/results/mine"}})
	tests := []struct {
		path string
		dir  bool
		want bool
	}{
		{"ws/src/main.go", false, false}, {"ws/.env", false, true}, {"ws/sub/.env", false, true}, {"ws/hard", false, true}, {"ws/two", false, false},
		{"ws/secrets", true, false}, {"ws/secrets/key", false, true}, {"ws/secrets/public", true, false}, {"ws/secrets/public/ok", false, false},
		{"home/.ssh", true, true}, {"home/.ssh/id_rsa", false, true}, {"home/.ssh/config", false, false}, {"ws/sshhard", false, true},
		{"state", true, true}, {"state/token", false, true}, {"state/results/mine/r1", false, false}, {"state/results/other/r2", false, true},
	}
	for range 2 { // the second time from what is remembered
		for _, tt := range tests {
			hidden, _ := p.Hiding()
			for _, hides := range []func(string, bool) bool{p.Hidden, hidden} {
				if got := hides(filepath.Join(top, tt.path), tt.dir); got != tt.want {
					t.Errorf("Hidden(%s) = %v, want %v", tt.path, got, tt.want)
				}
			}
		}
	}
	tagOf := func(p *Policy) string { _, tag := p.Hiding(); return tag }
	tag := tagOf(p)
	if again := tagOf(p); again != tag {
		t.Error("the tag of Hiding is not stable")
	}
	other := policy(t, ws, testRules(ws, "deny Read(x)"))
	if tagOf(other) == tag || tagOf(p.For(Caller{})) == tag {
		t.Error("the tag of Hiding does not tell policies or callers apart")
	}
	if tagOf(policy(t, ws, testRules(ws, "deny Read(x)\nallow Bash(touch *)"))) != tagOf(other) {
		t.Error("the tag of Hiding depends on the commands that are allowed")
	}
	if !policy(t, ws, testRules(ws, "deny Read")).Hidden(ws+"/src/main.go", false) {
		t.Error("with Read denied a file is not hidden")
	}
}

func TestWarnings(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read([)\ndeny Bash(\nallow *\nallow Read()\nallow Bash(a && b *)\nallow Wri*\ndeny Raed(x)\nallow mcp__*\ndeny WebFetch(domain:x.*)\n"+
		"deny mcp__x__*\nallow WebFetch(domain:x)\nallow Bash(npm:*)\ndeny Task\ndeny *Edit\nallow mcp__x__get_*\nask Monitor"))
	want := []string{":1:", ":2:", ":3:", ":4:", ":5:", ":6:", ":7:", ":8:", ":9:"}
	got := p.Warnings()
	if len(got) != len(want) {
		t.Fatalf("warnings:\n%s", strings.Join(got, "\n"))
	}
	all := strings.Join(got, "\n")
	for _, w := range want {
		if !strings.Contains(all, "settings.json"+w) {
			t.Errorf("no warning for line %s in\n%s", w, all)
		}
	}
}

// Patterns that people write as elsewhere, and what becomes of them in a deny.
func TestDoubtfulPatterns(t *testing.T) {
	top, ws := workspace(t)
	for _, tt := range []struct{ rule, denied, warning string }{
		{"Read(*.{pem,key})", "a.key", ""},
		{"Read({.env,conf/{a,b}.txt})", "conf/b.txt", ""},
		{"Read({" + strings.Repeat("x,", 500) + ".env})", ".env", ""},
		{"Read({.env,b}" + strings.Repeat("{c,}", 10) + ")", "", "write several rules"},
		{"Read(src//main.go)", "src/main.go", ""},
		{"Read(~/../ws/.env)", ".env", ""},
		{`Read(".env")`, ".env", "quotes"},
		{"Read($HOME/x)", "../home/x", "variables"},
		{"Read(.env:*)", ".env", "is for commands"}, {"Edit(src:*)", "", "src/** for all"}, {"Read(src:*)", "src/main.go", "both are guarded"},
		{"Read(file:///$WS/.env)", "", "addresses"},
		{"Read(/$WS/.env)", ".env", "both are guarded"},
		{"Read(.)", ".env", ""}, {"Read(./)", ".env", ""}, {"Read(/)", ".env", ""}, {"Read(//)", ".env", ""}, {"Read(..)", ".env", ""}, {"Read(../)", "../x", ""},
		{"Read(src/[slug]/page.tsx)", "src/[slug]/page.tsx", ""},
		{"Read([ab].txt)", "b.txt", ""},
		{"Read()", ".env", "taken for Read"},
		{"Read(.env", "src/.env", "taken for Read(.env)"},
		{"Read($PWD/.env)", "", "variables"},
		{"Read(file:///etc/x)", "", "addresses"},
		{"Read(/etc/passwd)", "", "write //etc/passwd"},
		{"Edit(/src/**)", "", ""},
	} {
		tt.rule = strings.ReplaceAll(tt.rule, "/$WS", ws)
		p := policy(t, ws, testRules(ws, "deny "+tt.rule))
		if got := strings.Join(p.Warnings(), "\n"); (got == "") != (tt.warning == "") ||
			!strings.Contains(got, tt.warning) {
			t.Errorf("%s: warnings %q, want %q", tt.rule, got, tt.warning)
		}
		if tt.denied == "" {
			continue
		}
		path, err := p.Resolve(filepath.Join(top, "ws", tt.denied))
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: path}}}); v.Action != Deny {
			t.Errorf("%s does not deny %s", tt.rule, tt.denied)
		}
	}
	if p := policy(t, ws, testRules(ws, "mode default\nallow Edit(*.{go,md})")); p.data.allow.File("Edit", writing, ws+
		"/a.go", ws+"/a.go", false) != nil {
		t.Error("braces in an allow are more than it says")
	}
}

func TestCaseInsensitive(t *testing.T) {
	_, ws := workspace(t)
	at := pathname.Place{Given: ws, Real: ws}
	c := &rules.Compiler{Home: at, Roots: []pathname.Place{at}, Bounds: []pathname.Place{at}}
	k := &policyData{bounds: c.Bounds, home: c.Home, criticalRoots: pathname.PlacesOf(pathname.Folded, c.Bounds...)}
	k.resolveMasks(c, Config{Home: ws}, pathname.Folded)
	for _, name := range []string{".SSH/id_rsa", ".ssh", ".AWS/x", ".\u017fsh/id_rsa"} {
		if !k.secrets.Hold(filepath.Join(ws, name)) {
			t.Errorf("%q is no home secret where case does not count", name)
		}
	}
	if !k.isCritical(strings.ToUpper(ws)) {
		t.Error("the root by another case is not critical")
	}
	if pathname.IgnoresCase(ws) {
		if _, err := os.Lstat(filepath.Join(ws, "readme.MD")); err != nil {
			t.Error("IgnoresCase says true, but the file is not found by another case")
		}
	}
}

// TestRootBehindLink: the same rules hold by both names of a root.
func TestRootBehindLink(t *testing.T) {
	top, ws := workspace(t)
	tree(t, top, "link -> ws")
	link := filepath.Join(top, "link")
	set := testRules(link, "deny Read(secrets/**)\ndeny Read(/.env)\ndeny Read(/"+link+
		"/README.md)\nallow Edit(src/**)\nmode default")
	p := policy(t, link, set)
	tests := []struct {
		tool, path string
		want       Action
	}{
		{"Read", "secrets/key", Deny}, {"Read", ".env", Deny}, {"Read", "README.md", Deny}, {"Read", "environment.md", Allow},
		{"Edit", "src/main.go", Allow}, {"Edit", "src/new.go", Allow}, {"Edit", "environment.md", Ask}, {"Edit", ".claude/settings.json", Deny},
	}
	for _, tt := range tests {
		for _, root := range []string{link, ws} {
			path := resolve(t, p, filepath.Join(root, tt.path))
			in := Intent{Tool: tt.tool, Effects: []Effect{Read{Path: path}}}
			if tt.tool == "Edit" {
				in = Intent{Tool: tt.tool, Effects: []Effect{Write{Path: path}}}
			}
			if v := p.Judge(in); v.Action != tt.want {
				t.Errorf("%s %s: %v, want %v: %s", tt.tool, path, v.Action, tt.want, v.Error())
			}
		}
	}
	if !p.Hidden(filepath.Join(ws, "secrets/key"), false) || !p.Hidden(filepath.Join(ws, ".env"), false) {
		t.Error("denied files are not hidden by their real names")
	}
}
