package console

import (
	"net/http"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// The page of agents: those that the tool Agent has started, and the worktrees with the changes of agents that have
// ended.
type agentPages struct{ *website }

// An agentsBody is the page of agents.
type agentsBody struct {
	Running []mcpserver.RunningAgent
	Runner  string // the setting; "" if agents cannot be started
	Kept    []keptTree
}

// A keptTree is a worktree in which an agent left changes.
type keptTree struct {
	Branch, Source, Tree string
	Kept                 time.Time
}

// maxKept is how many worktrees the page shows.
const maxKept = 100

func (s agentPages) show(w http.ResponseWriter, v pageRequest) {
	b := agentsBody{Running: s.operator.Agents(), Runner: s.operator.Settings().Agent.Runner.Where()}
	room := builtin.Worktrees(s.operator.StateDir())
	for _, m := range room.List() {
		if !historyPages(s).inRoots(m.Source) || len(b.Kept) == maxKept {
			continue
		}
		k := keptTree{Branch: m.Branch, Source: m.Source, Tree: room.Tree(m), Kept: m.Kept}
		if k.Branch == "" {
			k.Branch = m.Name
		}
		b.Kept = append(b.Kept, k)
	}
	s.write(w, v, http.StatusOK, layout{Page: "agents", Title: "Agents", Body: b})
}

func (b agentsBody) show(layout) g.Node {
	return g.Group{
		h.H1(g.Text("Agents")),
		meta(g.Text("Clients that call this host are "), h.A(h.Href("/"), g.Text("sessions")),
			g.Text(". Here are the agents that they start with the tool Agent.")),
		h.H2(g.Text("Running")),
		h.Ol(h.Class("list"), b.running()),
		h.H2(g.Text("Left in worktrees")),
		h.Ol(h.Class("list"), b.kept()),
	}
}

func (b agentsBody) running() g.Node {
	switch {
	case len(b.Running) > 0:
		return g.Map(b.Running, func(a mcpserver.RunningAgent) g.Node {
			place := " in the workspace"
			if a.Worktree != "" {
				place = " in the worktree " + a.Worktree
			}
			return h.Li(h.Class("item"), h.Span(h.Class("state on"), g.Text("running")), g.Text(" "),
				h.Strong(text(a.Type)), after(" ", a.ID),
				meta(text("for "+a.Caller+place), g.If(a.ReadOnly, g.Text(" · writes nothing"))))
		})
	case b.Runner == "":
		return nothing("agents", "No agent runs, and none can be started: set agent.runner, such as \"claude\", in your "+
			"settings.")
	}
	return nothing("agents", "No agent runs. One appears here when a client uses the tool Agent.")
}

func (b agentsBody) kept() g.Node {
	if len(b.Kept) == 0 {
		return nothing("kept", "Nothing. An agent that works in a worktree of its own leaves its changes here, on a branch, "+
			"for 30 days.")
	}
	return g.Map(b.Kept, func(k keptTree) g.Node {
		return h.Li(h.Class("item"), code(k.Branch),
			meta(g.Text("ended at "), timestamp(k.Kept), after(" · of ", k.Source), after(" · in ", k.Tree)))
	})
}
