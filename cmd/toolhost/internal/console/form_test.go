package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

const askTwo = `{"questions":[` +
	`{"question":"Which <way>?","header":"Way","options":[{"label":"left","description":"by <b>sea</b>"},{"label":"right"}]},` +
	`{"question":"Which parts?","header":"Parts","options":[{"label":"one"},{"label":"two"}],"multiSelect":true}]}`

// TestFormAtConsole has a client that shows no forms ask: the tool is listed, the person answers at the console, and each end is told.
func TestFormAtConsole(t *testing.T) {
	s := serve(t, nil, func(c *mcpserver.Config) { c.With = []string{"AskUserQuestion"} })
	if err := s.operator.MayAnswer(); err != nil {
		t.Skip(err)
	}
	server, err := mcpserver.NewServer(s.host)
	if err != nil {
		t.Fatal(err)
	}
	inR, in := io.Pipe()
	outR, out := io.Pipe()
	go func() {
		_ = server.ServeStdio(context.Background(), inR, out, nil)
		out.Close()
	}()
	t.Cleanup(func() { in.Close() })
	lines := bufio.NewReader(outR)
	send := func(line string) { fmt.Fprintln(in, line) }
	receive := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	receive()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if list := receive(); !strings.Contains(list, `"name":"AskUserQuestion"`) {
		t.Fatalf("the tool is not listed where a console is open: %s", list)
	}
	for id, tt := range []struct {
		form url.Values
		want string
	}{
		{url.Values{"decision": {"accept"}, "answer1": {"left"}, "answer2": {"one", "two"}, "words2": {"and three"}}, `one; two; and three`},
		{url.Values{"decision": {"accept"}, "words1": {"neither"}, "answer2": {"two"}}, `: neither`},
		{url.Values{"decision": {"decline"}}, "declined to answer"},
		{url.Values{"decision": {"cancel"}, "answer1": {"left"}, "answer2": {"one"}}, "No answer: the person closed"},
	} {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"AskUserQuestion","arguments":%s}}`, id+2, askTwo))
		var waiting []question
		for len(waiting) == 0 {
			waiting, _ = s.console.questions("")
			time.Sleep(time.Millisecond)
		}
		_, page := s.get(t, "/")
		for _, want := range []string{"Which &lt;way&gt;?", "by &lt;b&gt;sea&lt;/b&gt;", "no request for permission",
			`type="radio" name="answer1" value="left"`, `type="checkbox" name="answer2" value="two"`, `name="words2"`} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q:\n%s", want, page)
			}
		}
		number := fmt.Sprint(waiting[0].ID)
		for says, wrong := range map[string]url.Values{
			"question 2 has no answer": {"decision": {"accept"}, "answer1": {"left"}},
			"takes one choice":         {"decision": {"accept"}, "answer1": {"left", "right"}, "answer2": {"one"}},
			"was not offered":          {"decision": {"accept"}, "answer1": {"up"}, "answer2": {"one"}},
			"answer was given":         {"decision": {mcpserver.AllowOnce}},
		} {
			wrong.Set("question", number)
			if _, page := s.sent(t, "/answer", wrong); !strings.Contains(page, says) {
				t.Errorf("%v: %s, want %q", wrong, page, says)
			}
		}
		tt.form.Set("question", number)
		if status, page := s.sent(t, "/answer", tt.form); status != http.StatusOK {
			t.Errorf("%v: %d %s", tt.form, status, page)
		}
		if got := receive(); !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s, want %q", tt.form, got, tt.want)
		}
		if _, page := s.sent(t, "/answer", tt.form); !strings.Contains(page, "had no effect") {
			t.Errorf("a second answer: %s", page)
		}
	}
}

// TestFormIsNoPermission: a question about a permission takes no answer to a form.
func TestFormIsNoPermission(t *testing.T) {
	c := New(true)
	go c.Ask(t.Context(), mcpserver.OperatorQuestion{Tool: "Bash", Question: &mcpserver.Question{}})
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		questions, _ := c.questions("")
		waiting = len(questions)
	}
	if _, err := c.fill(1, "accept", nil); err == nil || !strings.Contains(err.Error(), "about a permission") {
		t.Errorf("got %v", err)
	}
	if waiting, _ := c.questions(""); len(waiting) != 1 {
		t.Error("the question does not wait any more")
	}
}
