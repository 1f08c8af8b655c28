package console

import (
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/mcpserver"
)

// The start page. Its lists can also be requested separately by its script, which replaces the elements of a list
// whose data-v has changed.

func (b liveBody) show(layout) g.Node {
	title := g.Node(h.H1(h.Class("unseen"), g.Text("Live")))
	if b.Query.Session != "" {
		title = g.Group{h.P(h.Class("crumb"), h.A(h.Href("/"), g.Text("Live")), g.Text(" / session")),
			h.H1(text(b.Sessions[0].Client))}
	}
	scope := h.Data("query", b.Query.values())
	return g.Group{
		title,
		h.NoScript(h.P(h.Class("note"), g.Text("Without JavaScript this page does not follow the host: load it anew to see "+
			"what has changed."))),
		section("questions", g.Text("Waiting for you"), "questions", b.warning(), b.questions()),
		section("sessions", g.Text("Sessions"), "list", nil, b.sessions(), scope),
		section("tasks", g.Text("Background tasks"), "list", nil, b.tasks()),
		section("calls", g.Group{g.Text("Calls "), h.Small(g.Textf("of the last %d, newest first", MaxCalls))}, "list",
			b.filter(), b.calls(), scope),
	}
}

// section returns a section with a list that is updated.
func section(part string, title g.Node, class string, before, list g.Node, attributes ...g.Node) g.Node {
	id := "h-" + part
	return h.Section(h.Aria("labelledby", id), h.H2(h.ID(id), title), before,
		h.Ol(h.Class(class), h.Data("part", part), g.Group(attributes), list))
}

// filter returns the form that selects the calls to show. The script applies it while a person types.
func (b liveBody) filter() g.Node {
	return h.Form(h.Method("get"), h.Action("/"), h.Class("search filter"), h.ID("filter"), h.Role("search"),
		h.Aria("label", "Filter the calls"), plainForm(),
		h.Div(h.Class("pair"),
			h.Div(h.Class("wide"), h.Label(h.For("text"), g.Text("Filter")),
				h.Input(h.Type("search"), keepInput("text", b.Query.Text),
					h.Placeholder("path, command, rule or error"))),
			queryChoices(b.Query, tools(b.Tools, b.Query.Tool), b.All),
			h.NoScript(button("", "Filter")),
		),
	)
}

// queryChoices returns the fields of a query that have a fixed set of values.
func queryChoices(q query, tools g.Node, sessions []agentSession) g.Node {
	anything := h.Option(h.Value(""), g.Text("any"))
	verdicts := []string{"allow", verdictApproved, "ask", "deny"}
	return g.Group{
		choice("tool", "Tool", anything, tools),
		choice("verdict", "Verdict", anything, g.Map(verdicts, func(v string) g.Node { return option(v, q.Verdict) })),
		choice("session", "Session", anything, g.Map(sessions, func(s agentSession) g.Node {
			return h.Option(h.Value(s.Key), g.If(s.Key == q.Session, h.Selected()),
				text(fmt.Sprintf("%s · %d calls", s.Client, s.Calls)))
		})),
	}
}

func (b liveBody) warning() g.Node {
	if b.Closed == "" {
		return nil
	}
	return h.P(h.Class("note warn"), h.Strong(g.Text("Nothing can be approved on this page:")), text(" "+b.Closed),
		g.Text(". Calls that a rule asks about are refused, and the refusal names the rule."))
}

// part returns one of the lists, or nil if there is none with this name.
func (b liveBody) part(name string) g.Node {
	switch name {
	case "questions":
		return b.questions()
	case "sessions":
		return b.sessions()
	case "tasks":
		return b.tasks()
	case "calls":
		return b.calls()
	}
	return nil
}

// nothing returns the element that an empty list has.
func nothing(list, said string) g.Node {
	return h.Li(h.Class("empty"), h.ID(list+"-none"), h.Data("v", "0"), g.Text(said))
}

// maxAgentsShown is how many sessions the start page shows; the filter lists all.
const maxAgentsShown = 8

func (b liveBody) sessions() g.Node {
	if len(b.Sessions) == 0 {
		return nothing("sessions", "No session yet. A client appears here with its first call.")
	}
	return g.Map(b.Sessions[:min(len(b.Sessions), maxAgentsShown)], b.session)
}

func (b liveBody) session(s agentSession) g.Node {
	return h.Li(h.ID("session-"+s.Key), h.Data("v", fmt.Sprint(s.Version, b.Planning[s.Key])), h.Class("item session"),
		h.P(h.A(h.Class("what"), h.Href(address("sessions", s.Key)), h.Strong(text(s.Client))),
			h.Span(h.Class("meta"), text(" "+s.Principal+", "+s.Scope)),
			g.If(b.Planning[s.Key], g.Group{g.Text(" "), h.Span(h.Class("state waiting"), g.Text("plan mode"))})),
		meta(counted(s.Calls, "call", ""), counted(s.Refused, "refused", "bad"), counted(s.Failed, "failed", "bad"),
			counted(s.Approved, "approved", "good"),
			g.Text(" · "), changed(s.Lines), g.Text("last "), timestamp(s.Last)),
		g.If(b.Query.Session != "", b.statistics(s)),
		g.If(b.Query.Session != "", b.modeSwitch(s)),
	)
}

// modeSwitch returns the form that starts or ends plan mode in the conversation.
func (b liveBody) modeSwitch(s agentSession) g.Node {
	mode, label := "plan", "Switch plan mode on"
	if b.Planning[s.Key] {
		mode, label = "default", "Switch plan mode off"
	}
	return post(address("sessions", s.Key, "mode"), b.Token, plainForm(), h.Class("undo"), hidden("mode", mode),
		hidden("session", s.Key),
		h.Button(h.Class("mode"), g.If(mode == "default" && b.Closed != "", h.Disabled()), g.Text(label)), g.Text(" "),
		h.Span(h.Class("meta"), g.Text("In plan mode nothing is changed: edits are refused, and what commands change is "+
			"dropped.")))
}

// counted returns a number and what it counts, or nil for a number of 0, except that of calls.
func counted(n int, of, class string) g.Node {
	switch {
	case of != "call" && n == 0:
		return nil
	case of != "call":
		return g.Group{g.Text(" · "), h.Span(h.Class(class), g.Textf("%d %s", n, of))}
	case n != 1:
		of += "s"
	}
	return g.Textf("%d %s", n, of)
}

// statistics returns the figures on the page of one session.
func (b liveBody) statistics(s agentSession) g.Node {
	mean := 0.0
	if s.Calls > 0 {
		mean = s.Millis / float64(s.Calls)
	}
	return h.Dl(h.Class("stats"),
		term("Calls", g.Text(strconv.Itoa(s.Calls))), term("Approved", g.Text(strconv.Itoa(s.Approved))),
		term("Refused", g.Text(strconv.Itoa(s.Refused))), term("Failed", g.Text(strconv.Itoa(s.Failed))),
		term("Lines", g.Textf("+%d −%d", s.Lines.Added, s.Lines.Removed)), term("A call takes", g.Text(duration(mean))),
		term("Began", timestamp(s.First)), term("Lasted", g.Text(s.Last.Sub(s.First).Round(time.Second).String())),
		term("Tools", h.Ul(g.Map(s.Tools, func(t toolCount) g.Node { return h.Li(text(t.Name), g.Textf(" %d", t.Calls)) }))),
	)
}

func (b liveBody) tasks() g.Node {
	if len(b.Tasks) == 0 {
		return nothing("tasks", "No task. A command that runs longer than a call may take goes on here, with its output and "+
			"a way to stop it.")
	}
	return g.Map(b.Tasks, b.task)
}

func (b liveBody) task(t taskView) g.Node {
	state := taskBegun(t.Task)
	done := t.Over()
	if done {
		state = g.Group{h.Span(h.Class("state"), g.Text("ended")), g.Text(" at "), timestamp(t.Ended())}
	}
	return h.Li(h.ID("task-"+t.Key), h.Data("v", strconv.FormatBool(done)+mcpserver.Sanitize(t.Last)),
		h.Class("item task"),
		h.A(h.Class("what"), h.Href(address("tasks", t.Key)), code(t.Text)),
		meta(state, text(" · "+t.Principal), g.If(t.Last != "", g.Group{g.Text(" · "), code(t.Last)})),
		g.If(!done, post(address("tasks", t.Key, "stop"), b.Token,
			button("danger", "Stop", h.Aria("label", "Stop the task "+mcpserver.Sanitize(t.Text))),
		)),
	)
}
