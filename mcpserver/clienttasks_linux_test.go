package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/integration/testenv"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// followMeta is modernMeta of a client that follows tasks and can ask.
const followMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","threadId":"t","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// followed is a request of a client that follows tasks.
func followed(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, id, method, params, followMeta)
}

// followedBash is a call of Bash of such a client, with extra arguments.
func followedBash(id int, command, extra string) string {
	raw, _ := json.Marshal(command)
	return followed(id, "tools/call", fmt.Sprintf(`"name":"Bash","arguments":{"command":%s%s}`, raw, extra))
}

// A shownTask is what a client sees of a task.
type shownTask struct {
	ResultType, TaskID, Status string
	LastUpdatedAt              time.Time
	TTLMs, PollIntervalMs      *int
	InputRequests              map[string]struct{ Method string }
	Result                     *struct {
		Content []struct{ Text string }
		IsError bool
	}
}

func taskIn(t *testing.T, raw json.RawMessage) (shown shownTask) {
	t.Helper()
	if err := json.Unmarshal(raw, &shown); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return shown
}

// A follower is a client over a pipe that listens to the task that it has started.
type follower struct {
	*pipeClient
	id   string
	told bool // ask has passed over an event
}

// follow starts a command that becomes a task, and listens to it.
func follow(t *testing.T, c *pipeClient, command, extra string) *follower {
	t.Helper()
	testenv.NotShort(t, "starts a sandbox")
	c.send(followedBash(1, command, extra))
	a := c.receive()
	created := taskIn(t, a.Result)
	if created.ResultType != "task" || created.Status != taskWorks || created.TaskID == "" || created.TTLMs != nil ||
		created.Result != nil || strings.Contains(string(a.Result), `"content"`) {
		t.Fatalf("the call is no task: %s %+v", a.Result, a.Error)
	}
	f := &follower{pipeClient: c, id: created.TaskID}
	c.send(followed(2, "subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q,"other"]}`, f.id)))
	if ack := f.line(); !strings.Contains(ack, "acknowledged") || !strings.Contains(ack, f.id) ||
		strings.Contains(ack, "other") || !strings.Contains(ack, `subscriptionId":2`) {
		t.Fatalf("acknowledged: %s", ack)
	}
	return f
}

func (f *follower) line() string {
	f.t.Helper()
	line, err := f.out.ReadString('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	return line
}

// until reads events until the task has a state, which it may have already.
func (f *follower) until(status string) shownTask {
	f.t.Helper()
	now := f.get()
	for ; f.told && now.Status != status; now = f.get() { // the event may be of a later change
		f.told = false
	}
	if now.Status == status {
		return now
	}
	for {
		line := f.line()
		var event struct {
			Method string
			Params shownTask
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			f.t.Fatalf("%v: %s", err, line)
		}
		if event.Params.LastUpdatedAt.Before(now.LastUpdatedAt) {
			continue
		}
		if event.Method == methodTaskEvent && event.Params.TaskID == f.id && event.Params.Status == status {
			return event.Params
		}
		if event.Method == methodTaskEvent && event.Params.Status == taskCompleted {
			f.t.Fatalf("it is %s and never %s: %s", event.Params.Status, status, line)
		}
	}
}

// ask sends a request about the task, and returns the result.
func (f *follower) ask(method, more string) json.RawMessage {
	f.t.Helper()
	f.send(followed(3, method, fmt.Sprintf(`"taskId":%q%s`, f.id, more)))
	for {
		a := f.receive()
		if f.told = f.told || a.Method == methodTaskEvent; string(a.ID) == "3" {
			if a.Error != nil {
				f.t.Fatalf("%s: %+v", method, a.Error)
			}
			return a.Result
		}
	}
}

func (f *follower) get() shownTask { return taskIn(f.t, f.ask(methodTaskGet, "")) }

func withWindow(t *testing.T) func(*Config) {
	return func(c *Config) {
		userSettings(t, map[string]any{"bash": map[string]any{"foregroundWindow": "1s"}})
		c.Allow = []string{"Bash"}
	}
}

// TestClientTask: a call that takes long, and a background command, are tasks of a client that follows tasks. Later calls of the
// conversation run meanwhile, and the result is the one that the call would have had.
func TestClientTask(t *testing.T) {
	for name, extra := range map[string]string{"long": "", "background": `,"run_in_background":true`} {
		t.Run(name, func(t *testing.T) {
			change := func(c *Config) { c.Allow = []string{"Bash"} } // the window is that in which a background command is followed
			if extra == "" {
				change = withWindow(t)
			}
			f := follow(t, startPipe(t, nil, change), "until [ -e go ]; do sleep 0.01; done; echo finished; exit 3",
				extra)
			f.send(followedBash(4, "touch go; echo later", ""))
			done := f.until(taskCompleted)
			if r := done.Result; r == nil || !r.IsError || !strings.Contains(r.Content[0].Text, "finished") ||
				!strings.Contains(r.Content[0].Text, "3") || strings.Contains(r.Content[0].Text, "task_") {
				t.Errorf("result: %+v", done.Result)
			}
			if done.TTLMs == nil || *done.TTLMs < int(taskKept.Milliseconds()) {
				t.Errorf("a task that has ended is kept for ever: %+v", done)
			}
			if again := f.get(); again.Status != taskCompleted || again.ResultType != "complete" ||
				again.Result == nil {
				t.Errorf("again: %+v", again)
			}
			f.send(followedBash(5, "echo next", ""))
			for a := f.receive(); string(a.ID) != "5"; a = f.receive() {
			}
		})
	}
}

// TestClientTaskNotFollowed: other clients get what they got before, and no methods.
func TestClientTaskNotFollowed(t *testing.T) {
	c := startPipe(t, nil, withWindow(t))
	c.send(strings.Replace(modernBash("1", "echo 1", ""), `"echo 1"`, `"echo 1","run_in_background":true`, 1))
	if a := c.receive(); !strings.Contains(string(a.Result), "TaskOutput") ||
		strings.Contains(string(a.Result), `"resultType":"task"`) {
		t.Errorf("a call: %s", a.Result)
	}
	for _, method := range []string{methodTaskGet, methodTaskUpdate, methodTaskCancel} {
		c.send(`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{"taskId":"x",` + modernMeta + `}}`)
		if a := c.receive(); a.Error == nil || a.Error.Code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY {
			t.Errorf("%s: %+v", method, a)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["x"]},` +
		modernMeta + `}}`)
	if a := c.receive(); a.Error == nil || a.Error.Code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY {
		t.Errorf("listen: %+v", a)
	}
}

// TestClientTaskCancel: a task that its client cancels ends with everything that it started.
func TestClientTaskCancel(t *testing.T) {
	f := follow(t, startPipe(t, nil, func(c *Config) { c.Allow = []string{"Bash"} }),
		"touch started; until [ -e go ]; do sleep 0.01; done; touch late", `,"run_in_background":true`)
	if ack := f.ask(methodTaskCancel, ""); string(ack) != `{"resultType":"complete"}` {
		t.Errorf("acknowledged: %s", ack)
	}
	f.until(taskCancelled)
	f.host.clientTasks.running.Wait()
	for _, task := range f.host.runtime.Tasks() {
		if !task.Over() {
			t.Errorf("%s still runs", task.ID)
		}
	}
	f.ask(methodTaskCancel, "") // again
	if now := f.get(); now.Status != taskCancelled || now.Result != nil {
		t.Errorf("then: %+v", now)
	}
}

// TestClientTaskIsOfItsCaller: over HTTP, a task is found by its caller alone, on any connection, and the header names it.
func TestClientTaskIsOfItsCaller(t *testing.T) {
	o := openOffice(t)
	ann, bob := o.add(t, "ann", auth.All), o.add(t, "bob", auth.All)
	send := func(bearer, body, name string) (int, string) {
		q := modern(body)
		q.headers["Authorization"] = "Bearer " + bearer
		if name != "" {
			q.headers["Mcp-Name"] = name
		}
		resp, text := q.do(t, o.url)
		return resp.StatusCode, text
	}
	_, text := send(ann, followedBash(1, "until [ -e go ]; do sleep 0.01; done", `,"run_in_background":true`), "")
	var created struct{ Result shownTask }
	if err := json.Unmarshal([]byte(text), &created); err != nil || created.Result.ResultType != "task" {
		t.Fatalf("%v: %s", err, text)
	}
	id := created.Result.TaskID
	get := followed(2, methodTaskGet, fmt.Sprintf(`"taskId":%q`, id))
	for _, tt := range []struct {
		name, bearer, body, header string
		status                     int
		want                       string
	}{
		{"its caller", ann, get, id, http.StatusOK, `"status":"working"`},
		{"another caller", bob, get, id, http.StatusBadRequest, fmt.Sprintf(`"code":%d`, mcp.INVALID_PARAMS)},
		{"another caller cancels", bob, followed(2, methodTaskCancel, fmt.Sprintf(`"taskId":%q`, id)), id, http.StatusBadRequest, "there is no task"},
		{"another name", ann, get, "other", http.StatusBadRequest, fmt.Sprintf(`"code":%d`, mcp.HEADER_MISMATCH)},
		{"its caller cancels", ann, followed(2, methodTaskCancel, fmt.Sprintf(`"taskId":%q`, id)), id, http.StatusOK, `"resultType":"complete"`},
		{"then", ann, get, id, http.StatusOK, `"status":"cancelled"`},
		{"an address as the name", ann, skillRequest(2, methodSkillGet, `"uri":"skill://user/x/SKILL.md",`), "skill://user/x/SKILL.md", http.StatusNotFound, "serves no skills"},
	} {
		if status, text := send(tt.bearer, tt.body, tt.header); status != tt.status ||
			!strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s", tt.name, status, text)
		}
	}
	if _, err := os.Stat(filepath.Join(o.root, "go")); err == nil {
		t.Error("the command ran on")
	}
}

// TestClientTaskRoom: the oldest ended task of a caller makes room. If none has ended, the next call is for TaskOutput.
func TestClientTaskRoom(t *testing.T) {
	s, all := &clientTasks{}, []*clientTask{}
	become := func() bool {
		task := &clientTask{principal: "ann", tool: "x", leave: func() {}}
		_, created, err := s.run(t.Context(), task, func(ctx context.Context) (*mcp.CallToolResult, error) {
			if !task.HandOver("") {
				return &mcp.CallToolResult{}, nil
			}
			<-ctx.Done()
			return &mcp.CallToolResult{}, nil
		})
		all = append(all, task)
		return created != nil && err == nil
	}
	for range maxClientTasks {
		if !become() {
			t.Fatal("no task")
		}
	}
	if become() {
		t.Error("one task too many")
	}
	s.stop("ann", all[3].id)
	if !become() {
		t.Error("an ended task makes no room")
	}
	if _, ok := s.see("ann", all[3].id); ok {
		t.Error("the ended task is still known")
	}
	s.close()
}

// TestClientTaskFails: a task that fails says why.
func TestClientTaskFails(t *testing.T) {
	s := &clientTasks{}
	task := &clientTask{principal: "ann", tool: "x", leave: func() {}}
	_, created, _ := s.run(t.Context(), task, func(context.Context) (*mcp.CallToolResult, error) {
		task.HandOver("")
		return nil, errors.New("no server")
	})
	s.running.Wait()
	if view, ok := s.see("ann", created.ID); !ok || view.Status != taskFailed || view.Message != "no server" ||
		view.TTL == nil {
		t.Errorf("it failed as %+v", view)
	}
}

// TestTaskEvents: the newest state of each task waits for a client that does not read, however many changes there were.
func TestTaskEvents(t *testing.T) {
	events := &taskEvents{newest: map[string]taskView{}, some: make(chan struct{}, 1)}
	for range 1000 {
		events.put(taskView{ID: "a", Status: taskWorks})
	}
	events.put(taskView{ID: "b", Status: taskWorks, Updated: time.Unix(2, 0)})
	events.put(taskView{ID: "a", Status: taskCompleted, Updated: time.Unix(1, 0)})
	<-events.some
	if all := events.take(); len(all) != 2 || all[0].Status != taskCompleted || all[1].ID != "b" {
		t.Errorf("events: %+v", all)
	}
}

// TestClientTaskTooLate: a call that has ended becomes no task.
func TestClientTaskTooLate(t *testing.T) {
	s := &clientTasks{}
	task := &clientTask{principal: "ann", tool: "x", leave: func() {}}
	if _, created, err := s.run(t.Context(), task, func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	}); created != nil || err != nil {
		t.Fatalf("created %v, %v", created, err)
	}
	if task.HandOver("") || len(s.tasks) > 0 {
		t.Error("the call became a task that works for ever")
	}
}

// TestClientTaskAfterQuestion: what is asked before the call runs is answered before there is a task.
func TestClientTaskAfterQuestion(t *testing.T) {
	c := startPipe(t, nil, askBeforeCommands)
	c.send(followedBash(1, "touch done", `,"run_in_background":true`))
	a := c.receive()
	var asked struct{ ResultType, RequestState, TaskID string }
	if err := json.Unmarshal(a.Result, &asked); err != nil || asked.ResultType != "input_required" ||
		asked.TaskID != "" {
		t.Fatalf("no question: %v %s", err, a.Result)
	}
	answer := fmt.Sprintf(`"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}},`, asked.RequestState)
	c.send(strings.Replace(followedBash(2, "touch done", `,"run_in_background":true`), `"name":"Bash"`, answer+
		`"name":"Bash"`, 1))
	a = c.receive()
	created := taskIn(t, a.Result)
	if created.ResultType != "task" {
		t.Fatalf("then: %s", a.Result)
	}
	f := &follower{pipeClient: c, id: created.TaskID}
	f.host.clientTasks.running.Wait()
	if done := f.get(); done.Status != taskCompleted || !ran(c) {
		t.Errorf("result: %+v", done)
	}
}
