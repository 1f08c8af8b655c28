package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/doctor"
)

// A hookedCall runs the hooks of one call: before it is planned, when it requires approval, and after it ran.
type hookedCall struct {
	asker  *execCall // who is asked about the hosts of hooks
	runner *hook.Runner
	set    *settings.Settings
	call   hook.Call
	before hook.Decision
	// effects are those of the planned call.
	effects []guard.Effect
	began   time.Time
}

// A hookset runs the hooks of the settings.
type hookset struct {
	runner          *hook.Runner
	policies        *policies
	tools           *toolset
	runtime         *builtin.Runtime
	log             *slog.Logger
	warnUncontained sync.Once // logs once that hooks run uncontained although they should not
	state           string    // directory
	classifying     sync.WaitGroup
	failed          sync.Map // hooks whose failure is noted for the doctor, by their command
}

// newHookset returns a hookset that runs the commands of hooks in the first root.
func newHookset(p *policies, state string) *hookset {
	s := &hookset{policies: p, tools: p.tools, runtime: p.runtime, log: p.log, state: state}
	s.runner = hook.New(hook.Config{Start: s.start, Outside: s.outside, Dir: p.cfg.Roots[0], Match: s.concerns,
		Failed: s.noteFailed, Log: p.log})
	return s
}

// close ends the hooks that are not waited for, and waits for classifiers that a person was faster than.
func (s *hookset) close() {
	s.runner.Close()
	s.classifying.Wait()
}

// askerKey is the key of the [execCall] in the context of hooks.
type askerKey struct{}

// start starts the process of a hook. The hosts that a contained one connects to are judged like those of commands.
func (s *hookset) start(ctx context.Context, spec hook.Spec) (hook.Process, error) {
	if !spec.Contained {
		return builtin.StartHook(spec)
	}
	policy := s.policies.at(s.policies.settings.Current(), builtin.HookPrincipal)
	makeOutputs(policy.Commands().HookOutputs())
	execs := builtin.Execs{Policy: func() *guard.Policy {
		return s.policies.at(s.policies.settings.Reload(),
			builtin.HookPrincipal)
	}}
	if asker, ok := ctx.Value(askerKey{}).(*execCall); ok {
		execs.Ask, execs.Known, execs.Tell, execs.Hosts = asker.ask, asker.isAlwaysAllowed, asker.audit,
			asker.env.Policy.Commands().Network().Asks
	}
	return s.runtime.StartContained(policy, spec, execs)
}

// makeOutputs creates files outside of the workspace that hooks write: a sandbox can open only files that exist.
func makeOutputs(files []string) {
	for _, name := range files {
		if f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			f.Close()
		}
	}
}

// outside reports whether the command of a hook runs outside of the sandbox: because the user chose that, or because no
// sandbox works, which is logged once. Commands have the rights of the user there as well.
func (s *hookset) outside(k settings.Hook) (bool, error) {
	set := s.policies.settings.Current()
	commands := s.policies.at(set, LocalPrincipal).Commands() // the hooks are the same for all principals
	if k.Uncontained {
		return true, commands.MayRunHook(k)
	}
	held := commands.Containment()
	switch {
	case held.Writes:
		return false, nil
	case set.Sandbox.FailIfUnavailable:
		return false, fmt.Errorf("it must run in a sandbox, and none works here: %s", held.Why)
	}
	s.warnUncontained.Do(func() {
		s.log.Warn("hooks run with the rights of the user, because no sandbox works here", "hook", k.Command,
			"sandbox", held.Why)
	})
	return true, nil
}

// noteFailed notes the first failure of a contained hook for the doctor.
func (s *hookset) noteFailed(k settings.Hook, failure error) {
	if _, noted := s.failed.LoadOrStore(k.Command, true); noted || k.Uncontained || k.Command == "" || s.state == "" {
		return
	}
	if outside, err := s.outside(k); outside || err != nil {
		return
	}
	if err := doctor.NoteHook(s.state, k, failure); err != nil {
		s.log.Warn("the failure of a hook is not noted for toolhost doctor", "error", err)
	}
}

// concerns reports whether the permission rule in the "if" of a hook applies to a call. If that cannot be decided
// the hook runs.
func (s *hookset) concerns(rule string, c hook.Call) bool {
	asked := &settings.Settings{Ask: []settings.Entry{{Text: rule}}, DefaultMode: settings.ModeBypass}
	cfg := s.policies.guardConfig(asked, func() guard.Containment { return guard.Containment{Writes: true, Denies: true} })
	cfg.ExecGate = nil // a hook cannot wait until programs start
	policy, err := guard.New(cfg)
	if err != nil || len(policy.Warnings()) > 0 {
		return true
	}
	tool := s.tools.resolve(c.Tool)
	if tool.err != nil {
		return true
	}
	call, err := tool.def.Bind(c.Input)
	if err != nil {
		return true
	}
	dir := &builtin.WorkDir{}
	dir.Set(c.Cwd)
	plan, err := call.Plan(context.Background(), &builtin.Env{Policy: policy, Dir: dir})
	if err != nil {
		return true
	}
	return slices.ContainsFunc(policy.Judge(plan.Intent).Parts, func(p guard.Part) bool { return p.Rule == rule })
}

// before runs the PreToolUse hooks. The returned call may have another input, bound again. An error refuses the call.
func (s *hookset) before(ctx context.Context, c execCall) (*hookedCall, *builtin.Call, error) {
	policy, tool, call := c.env.Policy, c.req.tool.def, c.call
	set := s.policies.settings.Current()
	if len(set.Hooks) == 0 {
		return nil, call, nil
	}
	input, err := call.Input()
	if err != nil {
		return nil, nil, err
	}
	hc := &hookedCall{asker: &c, runner: s.runner, set: set, began: time.Now(),
		call: s.hookCall(c.admission, policy, tool.Name, input)}
	hc.before = s.runner.Pre(hc.asking(ctx), set.Hooks[settings.PreToolUse], hc.call)
	if hc.before.Action == hook.Deny {
		return nil, nil, hookVerdict(guard.Verdict{}, guard.Deny, hc.before)
	}
	if hc.before.UpdatedInput == nil {
		return hc, call, nil
	}
	if call, err = tool.Bind(hc.before.UpdatedInput); err != nil {
		return nil, nil, fmt.Errorf("a hook (%s) changed the input of this call, and the new one cannot be used. %w",
			hc.before.From, err)
	}
	hc.call.Input = hookInput(policy, tool.Name, hc.before.UpdatedInput)
	return hc, call, nil
}

// asking returns the context of a hook: its hosts are asked about in the name of the call.
func (c *hookedCall) asking(ctx context.Context) context.Context {
	return context.WithValue(ctx, askerKey{}, c.asker)
}

// hookCall describes a call to hooks.
func (s *hookset) hookCall(a *Admission, policy *guard.Policy, tool string, input json.RawMessage) hook.Call {
	cwd := cmp.Or(a.scope.Dir.Get(), policy.Roots()[0])
	return hook.Call{SessionID: a.scope.Label, Cwd: cwd, Mode: policy.Mode(), Tool: tool, ToolUseID: "toolu_" +
		rand.Text(), Input: hookInput(policy, tool, input)}
}

// hookRule is the rule name in verdicts and records for decisions of a hook.
const hookRule = "hook"

func hookVerdict(v guard.Verdict, action guard.Action, d hook.Decision) guard.Verdict {
	v.Action, v.Rule, v.Source, v.Reason = action, hookRule, d.From, d.Reason
	if v.Reason == "" {
		v.Reason = fmt.Sprintf("A hook decided: %s.", action)
	}
	if action == guard.Deny {
		v.Remedy = "Do what the hook asks for, or tell the user."
	}
	return v
}

// judged lets hooks change a verdict. They can make it stricter, or answer in place of the person unless the verdict is
// final. A nil call has no hooks.
func (c *hookedCall) judged(ctx context.Context, in guard.Intent, v guard.Verdict, rec *audit.Record) guard.Verdict {
	after := c.decided(ctx, in, v)
	if v.Action == guard.Ask && after.Action != guard.Ask {
		what := audit.PhaseApproved
		if after.Action == guard.Deny {
			what = audit.PhaseRefused
		}
		rec.Did(what, byHook, after.Source)
	}
	return after
}

func (c *hookedCall) decided(ctx context.Context, in guard.Intent, v guard.Verdict) guard.Verdict {
	if c == nil {
		return v
	}
	c.effects = in.Effects
	switch {
	case c.before.Action == hook.Ask && v.Action == guard.Allow:
		v = hookVerdict(v, guard.Ask, c.before)
		v.Final = true
	case c.before.Action == hook.Allow && v.Action == guard.Ask && !v.Final:
		v = hookVerdict(v, guard.Allow, c.before)
	}
	if v.Action != guard.Ask || v.Final {
		return v
	}
	if c.before.Void != "" {
		v.Reason += voidReason(c.before.Void)
	}
	switch d := c.runner.Request(c.asking(ctx), c.set.Hooks[settings.PermissionRequest], c.call, v.Reason); d.Action {
	case hook.Allow:
		if d.UpdatedInput != nil {
			return allowedOtherwise(v, d)
		}
		return hookVerdict(v, guard.Allow, d)
	case hook.Deny:
		return hookVerdict(v, guard.Deny, d)
	default:
		if d.Void != "" {
			v.Reason += voidReason(d.Void)
		}
	}
	return v
}

// voidReason says that the answer of a hook does not count.
func voidReason(from string) string {
	return fmt.Sprintf(` (The hook at %s allows it, which counts only of a hook with "contained": false in the user `+
		`settings.)`, from)
}

// allowedOtherwise returns the verdict on a call that a PermissionRequest hook allows only with another input. That
// input has not been planned and judged, so the client must repeat the call with it.
func allowedOtherwise(v guard.Verdict, d hook.Decision) guard.Verdict {
	const shown = 10_000
	v = hookVerdict(v, guard.Deny, d)
	v.Reason = "A hook allows this call with another input only."
	if len(d.UpdatedInput) <= shown {
		v.Remedy = "Repeat the call with exactly these arguments: " + string(d.UpdatedInput)
	}
	return v
}

// denied runs the PermissionDenied hooks after a refusal.
func (c *hookedCall) denied(ctx context.Context, v guard.Verdict) {
	if c != nil {
		c.runner.Denied(c.asking(ctx), c.set.Hooks[settings.PermissionDenied], c.call, v.Error())
	}
}

// after runs the hooks that follow a call, and adds their output to its result.
func (c *hookedCall) after(ctx context.Context, r builtin.Result) builtin.Result {
	if c == nil {
		return r
	}
	ctx = c.asking(context.WithoutCancel(ctx)) // the call has run, so its hooks run even if it was cancelled
	var said hook.After
	if r.IsError {
		said = c.runner.Failure(ctx, c.set.Hooks[settings.PostToolUseFailure], c.call, r.Text, time.Since(c.began))
	} else {
		response, err := hookResponse(c.call.Input, c.effects, r)
		if err != nil {
			return r
		}
		said = c.runner.Post(ctx, c.set.Hooks[settings.PostToolUse], c.call, response, time.Since(c.began))
	}
	if said.Output != nil {
		r.Text, r.Images = outputText(said.Output), nil
	}
	var notes []string
	if said.Block {
		notes = append(notes, fmt.Sprintf("A hook (%s) objects: %s", said.From, said.Reason))
	}
	notes = append(append(notes, c.before.Context...), said.Context...)
	if len(notes) > 0 {
		r.Text = strings.TrimRight(r.Text, "\n") + "\n\n[" + strings.Join(notes, "\n") + "]\n"
	}
	if r.Passed != nil && (said.Output != nil || said.Block) {
		r.Passed = r.Text
	}
	return r
}

// outputText returns the output that a hook gave in place of the tool's output: a text or any other JSON.
func outputText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// pathFields are the tool arguments that name a file or a directory.
var pathFields = []string{"file_path", "notebook_path", "path"}

// hookInput returns the input of a call for hooks, with absolute paths as Claude Code gives them. Otherwise a
// relative name, "~/x" or "a/../b", or one that only looks the same, would evade a hook that compares
// tool_input.file_path. A path that cannot be resolved is left unchanged, because the call will fail to plan.
func hookInput(policy *guard.Policy, tool string, input json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return input
	}
	changed := false
	for _, field := range pathFields {
		var name string
		if json.Unmarshal(fields[field], &name) != nil || name == "" {
			continue
		}
		path, err := builtin.Meant(policy, tool, name, string(fields["old_string"]) == `""`)
		if err != nil {
			continue
		}
		fields[field], _ = json.Marshal(wholePath(policy, name, path)) // a string always encodes
		changed = true
	}
	if !changed {
		return input
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return whole
}

// wholePath returns the absolute path of name without "..". It is as given, unless a symbolic link precedes a "..", so
// that cleaning the text would lead elsewhere.
func wholePath(policy *guard.Policy, name string, path guard.Path) string {
	if !strings.Contains(name, "..") {
		return path.String()
	}
	if plain, err := policy.Resolve(path.String()); err != nil || plain.Real() != path.Real() {
		return path.Real()
	}
	return path.String()
}

// hookResponse returns the result for PostToolUse hooks: the text and the structure that clients get, and fields under
// the names of Claude Code, which hooks written for it read.
func hookResponse(input json.RawMessage, effects []guard.Effect, r builtin.Result) (json.RawMessage, error) {
	response := map[string]any{"text": r.Text, "structured": r.Structured, "success": true}
	var named struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	if json.Unmarshal(input, &named) == nil && named.File+named.Notebook != "" {
		response["filePath"] = named.File + named.Notebook
	}
	for _, e := range effects {
		if e, ok := e.(interface {
			HookResponse(text string) map[string]any
		}); ok {
			maps.Copy(response, e.HookResponse(r.Text))
		}
	}
	return json.Marshal(response)
}
