package console

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/builtin"
)

func (b taskBody) show(f layout) g.Node {
	state := g.Group{taskBegun(b.Task.Task), text(" · " + b.Task.Principal)}
	if b.Ended != "" {
		state = g.Group{h.Span(h.Class("state"), g.Text("ended")), text(" " + b.Ended)}
	}
	return g.Group{
		h.P(h.Class("crumb"), h.A(h.Href("/"), g.Text("Live")), g.Text(" / task")),
		h.H1(h.Class("unseen"), g.Text("Task")),
		h.Pre(h.Class("shell"), code(b.Task.Text)),
		h.Div(h.Class("line"),
			meta(h.ID("task-state"), h.Role("status"), state),
			g.If(b.Ended == "", post(address("tasks", b.Task.Key, "stop"), f.Token, h.ID("task-stop"),
				button("danger", "Stop"))),
		),
		h.H2(g.Text("Output")),
		h.Div(h.Class("line tools"), h.Data("for", "output"), g.Attr("hidden"),
			h.Label(h.For("find"), h.Class("unseen"), g.Text("Search the output")),
			h.Input(h.Type("search"), h.ID("find"), h.Placeholder("Search the output"), h.AutoComplete("off"),
				noSpellcheck()),
			h.Span(h.ID("found"), h.Class("meta"), h.Role("status")),
			h.Button(h.Type("button"), h.ID("wrap"), h.Aria("pressed", "true"), g.Text("Wrap lines")),
			h.Button(h.Type("button"), h.ID("copy"), g.Text("Copy")),
		),
		h.Pre(h.ID("output"), h.Class("output"), h.TabIndex("0"), h.Role("log"), h.Aria("label", "Output of the task"),
			h.Data("key", b.Task.Key), h.Data("next", strconv.FormatInt(b.Next, 10)),
			g.If(b.Ended != "", g.Attr("data-done")),
			text(b.Text),
		),
	}
}

// taskBegun shows the state of a running task.
func taskBegun(t *builtin.Task) g.Node {
	return g.Group{h.Span(h.Class("state on"), g.Text("running")), g.Text(" since "), timestamp(t.Begun())}
}
