package console

import (
	"strconv"

	"github.com/toolhost/toolhost/mcpserver"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The first page. Its lists are rendered by themselves too, for its script, which replaces an element of a list
// when data-v differs.

func (b liveBody) show(layout) g.Node {
	return g.Group{
		h.H1(h.Class("unseen"), g.Text("Live")),
		h.NoScript(h.P(h.Class("note"), g.Text("Without JavaScript this page does not follow the host: load it anew to see what has changed."))),
		b.section("questions", g.Text("Waiting for you"), "questions", b.warning(), b.questions()),
		b.section("tasks", g.Text("Background tasks"), "list", nil, b.tasks()),
		b.section("calls", g.Group{g.Text("Calls "), h.Small(g.Textf("the last %d, newest first", b.MaxCalls))}, "list", nil, b.calls()),
	}
}

// section holds a list that follows the host.
func (liveBody) section(part string, title g.Node, class string, before, list g.Node) g.Node {
	id := "h-" + part
	return h.Section(h.Aria("labelledby", id), h.H2(h.ID(id), title), before, h.Ol(h.Class(class), h.Data("part", part), list))
}

func (b liveBody) warning() g.Node {
	if b.Closed == "" {
		return nil
	}
	return h.P(h.Class("note warn"), h.Strong(g.Text("Nothing can be approved on this page:")), text(" "+b.Closed),
		g.Text(". Calls that a rule asks about are refused, and the refusal names the rule."))
}

// part is one of the lists; nil when there is none of this name.
func (b liveBody) part(name string) g.Node {
	switch name {
	case "questions":
		return b.questions()
	case "tasks":
		return b.tasks()
	case "calls":
		return b.calls()
	}
	return nil
}

// nothing stands for the elements of an empty list.
func nothing(list, said string) g.Node {
	return h.Li(h.Class("empty"), h.ID(list+"-none"), h.Data("v", "0"), g.Text(said))
}

func (b liveBody) tasks() g.Node {
	if len(b.Tasks) == 0 {
		return nothing("tasks", "No task. A command that runs longer than a call may take goes on here, with its output and a way to stop it.")
	}
	return g.Map(b.Tasks, b.task)
}

func (b liveBody) task(t taskView) g.Node {
	state := taskBegun(t.TaskInfo)
	if t.Done {
		state = g.Group{h.Span(h.Class("state"), g.Text("ended")), g.Text(" at "), timestamp(t.Ended)}
	}
	return h.Li(h.ID("task-"+t.Key), h.Data("v", strconv.FormatBool(t.Done)), h.Class("item task"),
		h.A(h.Class("what"), h.Href(address("tasks", t.Key)), code(t.Text)),
		meta(state, text(" · "+t.Principal)),
		g.If(!t.Done, post(address("tasks", t.Key, "stop"), b.Token,
			button("danger", "Stop", h.Aria("label", "Stop the task "+mcpserver.Sanitize(t.Text))),
		)),
	)
}
