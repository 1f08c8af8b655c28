package mcpserver

import (
	"context"
	"sync"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
)

// serverPrincipal is the prefix of the principals under whose rules other servers run. Each principal has its own
// directory for temporary files.
const serverPrincipal = "\x00mcp\x00"

// servers implements what the gateway requires of its host.
type servers struct{ *Host }

// open opens the gateway and serves the tools of the other servers.
func (h servers) open(state string) *gateway.Gateway {
	if all, _ := h.configured(); state == "" && len(all) > 0 {
		h.log.Warn("what was accepted of other servers cannot be read: what they offer now is accepted until this host ends")
	}
	return gateway.Open(gateway.Config{
		Servers: h.configured, Dir: below(state, "servers"), Start: h.start, MayRun: h.mayRun, Changed: h.changed,
		Roots: h.cfg.Roots, Version: h.cfg.Version, Log: h.log,
		Web: func() guard.Web { return h.policies.of("").Web() },
	})
}

// reload reads the configuration again when the settings have changed.
func (h servers) reload() {
	if h.gateway != nil {
		h.gateway.Reload()
	}
}

// configured returns the configured other servers, and the problems of the configuration.
func (h servers) configured() ([]*gateway.Entry, []string) {
	return h.under(h.policies.settings.Current()).Load()
}

// under returns where servers are configured, under these settings.
func (h servers) under(set *settings.Settings) gateway.Sources {
	return gateway.Sources{Files: h.cfg.MCPConfig, Settings: set, Roots: h.cfg.Roots, Home: h.policies.where.Home,
		Managed: settings.ManagedDirs()}
}

// commands returns the command lines of servers that run outside of the sandbox.
func (h servers) commands(set *settings.Settings) []guard.HostCommand {
	entries, _ := h.under(set).Load() // the gateway reports the problems
	return gateway.HostCommands(entries, h.cfg.Roots)
}

// mayRun returns an error if a command line of the host names a file that a person has not agreed to.
func (h servers) mayRun(c guard.HostCommand) error {
	return h.policies.of(LocalPrincipal).Commands().MayRun(c)
}

// start starts the process of a server for a caller, under the current rules. Hosts that its entry does not name are
// put to the operator.
func (h servers) start(ctx context.Context, server, principal string,
	spec builtin.ServerSpec) (*builtin.ServerProcess, error) {
	life := context.WithoutCancel(ctx)
	asker := sync.OnceValue(func() *execCall { // at the first question
		a := h.Admit(auth.Identity{Principal: principal, Rights: auth.All}, nil, "", true)
		a.Leave()
		return &execCall{host: h.Host, ctx: life, admission: a, req: Request{Tool: "server: " + server},
			server: &serverCall{server, spec.Workspace, spec.AllowHost}}
	})
	spec.Execs = builtin.Execs{
		Hosts: h.policies.of(principal).Commands().Network().Asks,
		Ask: func(ctx context.Context, q builtin.ExecQuestion) builtin.ExecAnswer {
			if asker().admission.err != nil {
				return builtin.ExecAnswer{} // there is no room for another conversation
			}
			return asker().ask(ctx, q)
		},
		Tell: func(e builtin.ExecEvent) { asker().audit(e) },
	}
	return builtin.StartServer(ctx, h.runtime, h.policies.of(serverPrincipal+server+"\x00"+principal), spec)
}

// changed serves the tools that the gateway now knows.
func (h servers) changed(g *gateway.Gateway, configured bool) {
	set := foreignSet{Tools: g.Tools(), Configured: configured}
	set.Prompts, set.Resources = g.Digests()
	for _, p := range g.Consults(LocalPrincipal).Prompts() {
		set.PromptNames = append(set.PromptNames, p.Name)
	}
	for _, s := range g.Servers() {
		server := foreignServer{Name: s.Name, Purpose: s.Purpose}
		switch s.State {
		case gateway.StateConfigured, gateway.StateRunning:
			server.Unknown = s.Since.IsZero() && s.Reason == ""
		case gateway.StateKnown:
		default:
			server.Down = s.State + ": " + s.Reason
		}
		set.Servers = append(set.Servers, server)
	}
	if err := h.setForeign(set); err != nil {
		h.log.Error("tools of other servers are left out", "error", err)
	}
	h.children.forgetRules()
}

// A ServerStatus is the status of another server, and a ServerChange a definition of it that is withheld.
type (
	ServerStatus = gateway.Status
	ServerChange = gateway.Change
)

// Gateway returns the other servers of the host.
func (o Operator) Gateway() *gateway.Gateway { return o.h.gateway }
