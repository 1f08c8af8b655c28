package mcpserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
)

// A planner calls tools in conversations of a host whose owner answers.
type planner struct {
	*testing.T
	h *Host
	o *owner

	made int // files
}

func openPlanner(t *testing.T, files map[string]string, change ...func(*Config)) (*planner, string) {
	p := &planner{T: t, o: &owner{}}
	h, root := openHost(t, files, append([]func(*Config){func(c *Config) {
		c.Asker, c.TrustWorkspace, c.With = p.o, true, []string{"EnterPlanMode", "ExitPlanMode", "Read"}
	}}, change...)...)
	p.h = h
	return p, root
}

// call calls a tool in a conversation, and asks the owner if need be.
func (p *planner) call(thread, tool, args string) (text string, isError bool) {
	p.Helper()
	meta := map[string]any{}
	if thread != "" {
		meta["threadId"] = thread
	}
	a := p.h.Admit(Local(), meta, "", true)
	req := Request{Tool: tool, Args: []byte(args), Client: builtin.Client{CanAsk: p.h.approvals.operatorPresent()}}
	reply := p.h.Call(p.Context(), a, req)
	for reply.Question != nil {
		req.Answer = p.h.approvals.askOperator(p.Context(), a, req, reply.Question)
		reply = p.h.Call(p.Context(), p.h.readmit(a), req)
	}
	return reply.Text, reply.IsError
}

// writes reports whether a conversation may write.
func (p *planner) writes(thread string) bool {
	p.made++
	text, isError := p.call(thread, "Write", fmt.Sprintf(`{"file_path":"made%d.txt","content":"x"}`, p.made))
	if isError && !strings.Contains(text, "Plan mode") {
		p.Errorf("the write failed: %s", text)
	}
	return !isError
}

func TestPlanMode(t *testing.T) {
	p, _ := openPlanner(t, nil)
	if !p.writes("one") {
		t.Fatal("a write is refused before plan mode")
	}
	if text, isError := p.call("one", "enter_plan_mode", `{}`); isError {
		t.Fatal(text)
	}
	if p.writes("one") || !p.writes("two") {
		t.Error("plan mode does not hold, or holds in another conversation")
	}
	p.o.answer = Answer{Decision: DenyIt, Reason: "use the other file"}
	if text, isError := p.call("one", "ExitPlanMode", `{"plan":"1. look\n2. write"}`); !isError ||
		!strings.Contains(text, "use the other file") {
		t.Errorf("a plan that was declined: %s", text)
	}
	if q := p.o.asked[0]; !strings.Contains(q.Message, "1. look") || !strings.Contains(q.Message, "2. write") ||
		len(q.Always) > 0 {
		t.Errorf("the person is shown:\n%s", q.Message)
	}
	for _, answer := range []Answer{{}, {Decision: AlwaysAllow}, {Decision: "yes"}} {
		p.o.answer = answer
		if text, isError := p.call("one", "ExitPlanMode", `{"plan":"p"}`); !isError || p.writes("one") {
			t.Errorf("the answer %q ended plan mode: %s", answer.Decision, text)
		}
	}
	p.o.answer = Answer{Decision: AllowOnce}
	if text, isError := p.call("one", "ExitPlanMode", `{"plan":"p"}`); isError || !p.writes("one") {
		t.Errorf("the plan was approved: %s", text)
	}
	for args, want := range map[string]string{`{"plan":"p"}`: "not in plan mode"} {
		if text, _ := p.call("one", "ExitPlanMode", args); !strings.Contains(text, want) {
			t.Errorf("%s: %s", args, text)
		}
	}
}

// TestPlanModeIsNotLoosened tries what could end the mode without a person.
func TestPlanModeIsNotLoosened(t *testing.T) {
	t.Parallel()
	p, _ := openPlanner(t, map[string]string{".claude/settings.json": `{"permissions":{"defaultMode":"bypassPermissions","allow":["ExitPlanMode","Write","Edit","Bash"]},
		"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}'"}]}]}}`})
	p.call("one", "EnterPlanMode", `{}`)
	p.o.answer = Answer{Decision: DenyIt}
	for _, call := range [][2]string{
		{"ExitPlanMode", `{"plan":"p"}`}, {"ExitPlanMode", `{"plan":""}`}, {"EnterPlanMode", `{}`}, {"exit_plan_mode", `{"plan":"p"}`},
		{"Bash", `{"command":"toolhost mode default x"}`}, {"Bash", `{"command":"echo x > made.txt"}`},
		{"Write", `{"file_path":"` + filepath.ToSlash(p.h.modes.file) + `","content":"[]"}`},
	} {
		if p.call("one", call[0], call[1]); p.writes("one") {
			t.Errorf("%s %s ended plan mode", call[0], call[1])
		}
	}
	p.o.absent = true
	if text, isError := p.call("one", "ExitPlanMode", `{"plan":"p"}`); !isError || p.writes("one") {
		t.Errorf("no one was asked: %s", text)
	}
	if text, isError := p.call("two", "EnterPlanMode", `{}`); !isError ||
		!strings.Contains(text, "no person can be asked") {
		t.Errorf("plan mode that no one can end: %s", text)
	}
}

// TestPlanModeOfSettings is not one that a call ends, and is what the mode is again.
func TestPlanModeOfSettings(t *testing.T) {
	p, _ := openPlanner(t, map[string]string{".claude/settings.json": `{"permissions":{"defaultMode":"plan"}}`})
	p.o.answer = Answer{Decision: AllowOnce}
	if text, _ := p.call("one", "ExitPlanMode", `{"plan":"p"}`); !strings.Contains(text, "mode of the settings") ||
		p.writes("one") {
		t.Errorf("the mode of the settings: %s", text)
	}
	p.call("one", "EnterPlanMode", `{}`)
	if text, isError := p.call("one", "ExitPlanMode", `{"plan":"p"}`); isError || p.writes("one") {
		t.Errorf("after plan mode in plan mode: %s", text)
	}
}

// TestPlanModeIsKept over a restart in exact scopes, and is set and ended by a person.
func TestPlanModeIsKept(t *testing.T) {
	var cfg Config
	p, _ := openPlanner(t, nil, func(c *Config) { cfg = *c })
	p.call("one", "EnterPlanMode", `{}`)
	p.call("", "EnterPlanMode", `{}`)
	if p.writes("one") || p.writes("") {
		t.Fatal("plan mode does not hold")
	}
	again := &planner{T: t, o: p.o}
	var err error
	if again.h, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.h.Close() })
	again.made = 1000
	if again.writes("one") || !again.writes("") {
		t.Error("after a restart the mode of an exact scope is lost, or that of a process is not")
	}
	label := p.h.Admit(Local(), map[string]any{"threadId": "one"}, "", true)
	defer label.Leave()
	for _, planning := range []bool{false, true, false} {
		if err := Modes(again.h).Set(label.scope.Label, planning); err != nil {
			t.Fatal(err)
		}
		label.Leave()
		if p.writes("one") == planning || Modes(again.h).Planning(LocalPrincipal, label.scope.Label) != planning {
			t.Errorf("a person set plan mode %v, and it is not so", planning)
		}
	}
	for _, name := range []string{"", "../x", "a:b:c", "threadId:xyz", "x\ny"} {
		if err := Modes(again.h).Set(name, true); err == nil {
			t.Errorf("%q is taken for a scope", name)
		}
	}
	if err := os.WriteFile(p.h.modes.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, isError := p.call("one", "Read", `{"file_path":"made.txt"}`); !isError ||
		!strings.Contains(text, "modes.json") {
		t.Errorf("with a damaged file of modes: %s", text)
	}
}

func TestToolsOnDemand(t *testing.T) {
	all := []string{"EnterPlanMode", "ExitPlanMode"}
	p, _ := openPlanner(t, nil)
	plain, _ := openHost(t, nil)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	for _, name := range all {
		if !slices.Contains(names(p.h.Tools(Local())), name) || slices.Contains(names(plain.Tools(Local())), name) {
			t.Errorf("%s is served unasked, or not when it is asked for", name)
		}
		if text := plain.Call(t.Context(), plain.AdmitNamed(""),
			Request{Tool: name, Args: []byte(`{}`)}).Text; !strings.Contains(text, "no such tool") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for with, want := range map[string]string{"ExitPlanMod": "did you mean ExitPlanMode?",
		"zzzzzzzz": "there is no tool"} {
		if _, err := Open(Config{Roots: []string{t.TempDir()}, StateDir: t.TempDir(),
			With: []string{with}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--with %s: %v", with, err)
		}
	}
	if _, err := Open(Config{Roots: []string{t.TempDir()}, StateDir: t.TempDir(), With: all,
		SessionArgument: true}); err == nil {
		t.Error("plan mode is served where a model chooses its conversation")
	}
	for text, want := range map[string]string{`["EnterPlanMode","Read"]`: "",
		`["EnterPlanMod"]`: "did you mean EnterPlanMode?"} {
		writeFile(t, filepath.Join(home, "toolhost", "toolhost.json"), `{"tools":{"with":`+text+`}}`)
		h, err := Open(Config{Roots: []string{t.TempDir()}, StateDir: t.TempDir()})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("tools.with %s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(h.Tools(Local())); n != len(plain.Tools(Local()))+1 {
			t.Errorf("tools.with %s serves %d tools", text, n)
		}
		h.Close()
	}
}

// TestModeOfUnknownScope: a name that no conversation can have is refused, or a person would take the mode for set.
func TestModeOfUnknownScope(t *testing.T) {
	p, _ := openPlanner(t, nil)
	for name, ok := range map[string]bool{"threadId:0f1e2d3c4b5a": true, "command line:0f1e2d3c4b5a": true,
		"principal": true, "nosuch": false, "threadId": false, "threadId:0f1e": false, "": false} {
		if err := Modes(p.h).Set(name, true); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
