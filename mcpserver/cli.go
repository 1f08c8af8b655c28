package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/doctor"
)

// What the command line asks of a host. The history is in history.go.

// AdmitNamed takes the place of a call from the command line. Calls of the same name share what was read,
// also from one process to the next; without a name the call is on its own.
func (h *Host) AdmitNamed(name string) *Admission {
	if name == "" {
		return h.Admit(Local(), nil, "", true)
	}
	s := h.scopes.Named(LocalPrincipal, name)
	return h.admitTo(s, auth.All)
}

// Check says what the rules make of a call. It plans the call and runs nothing. The error is one of the
// call itself: an unknown tool, or arguments that cannot be bound.
func (h *Host) Check(ctx context.Context, principal, tool string, args json.RawMessage) (guard.Verdict, error) {
	def, err := h.lookUp(tool)
	if err != nil {
		return guard.Verdict{}, err
	}
	call, err := def.Bind(args)
	if err != nil {
		return guard.Verdict{}, err
	}
	a := h.Admit(auth.Identity{Principal: principal, Rights: auth.All}, nil, "", true)
	defer a.Leave()
	policy := h.policy(principal)
	plan, err := call.Plan(ctx, h.env(a, policy, Request{Tool: tool}))
	if err != nil {
		return guard.Verdict{}, err
	}
	return policy.Judge(plan.Intent), nil
}

// Holds says how a rule is held here, see [guard.Policy.Holds].
func (h *Host) Holds(action, rule string) string { return h.policy(LocalPrincipal).Holds(action, rule) }

// Examine says how this host is: its roots, rules, sandbox, shell, state and tools.
func (h *Host) Examine(ctx context.Context) []doctor.Finding {
	var tools []string
	for _, d := range h.Tools(Local()) {
		tools = append(tools, d.Name)
	}
	_, noShell := h.lookUp(builtin.Bash.Name)
	policy := h.policy(LocalPrincipal)
	return doctor.Examine(ctx, &doctor.Subject{
		Roots: h.cfg.Roots, Settings: h.settings, Policy: policy, Missing: h.sharedDenies(policy), Principal: LocalPrincipal, Box: h.box,
		Warm: func() { h.Warm(LocalPrincipal) }, Tools: tools, Commands: noShell == nil, StateDir: h.cfg.StateDir, Unkept: h.stateDirErr,
		Audit: h.audit, AuditMaxSize: h.cfg.AuditMaxSize, AuditKeep: h.cfg.AuditKeep,
	})
}

// Explain writes a verdict for a person: what was decided, by which rule, and for each part of the call.
func Explain(v guard.Verdict) string {
	var b strings.Builder
	fmt.Fprintln(&b, v.Action)
	for _, line := range []struct{ name, value string }{
		{"rule", v.Rule}, {"source", v.Source}, {"reason", v.Reason}, {"next", v.Remedy}, {"held", v.Held},
	} {
		if line.value != "" {
			fmt.Fprintf(&b, "%-7s %s\n", line.name, line.value)
		}
	}
	for _, p := range v.Parts {
		fmt.Fprintf(&b, "- %s: %s", p.What, p.Action)
		if p.Rule != "" {
			fmt.Fprintf(&b, " by %s", p.Rule)
		}
		if p.Source != "" {
			fmt.Fprintf(&b, " (%s)", p.Source)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// ToolsJSON is the list of tools as clients get it.
func ToolsJSON(defs []*builtin.Def) ([]byte, error) {
	tools := []mcp.Tool{}
	for _, d := range defs {
		tool, err := toMCP(d)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return json.MarshalIndent(map[string]any{"tools": tools}, "", "  ")
}
