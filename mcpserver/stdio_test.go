package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// A pipeClient speaks to a stdio host line by line.
type pipeClient struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	gone  chan struct{}
	ended chan error
	host  *Host
	root  string
}

func startPipe(t *testing.T, files map[string]string, change ...func(*Config)) *pipeClient {
	t.Helper()
	h, root := openHost(t, files, change...)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &pipeClient{t: t, in: inW, out: bufio.NewReader(outR), gone: make(chan struct{}), ended: make(chan error, 1),
		host: h, root: root}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c.ended <- s.ServeStdio(context.Background(), inR, outW, c.gone)
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		<-served // before the host is closed and its directories are removed
	})
	return c
}

func (c *pipeClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

type rpcAnswer struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Message string
		Meta    map[string]any `json:"_meta"`
	}
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (c *pipeClient) receive() rpcAnswer {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	var a rpcAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		c.t.Fatalf("not the protocol: %q", line)
	}
	return a
}

func toolCall(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`,
		id, tool, args)
}

const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`

func TestStdioMessages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	c := startPipe(t, nil)
	tests := []struct {
		name, line string
		code       int
		id         string
	}{
		{"no JSON", `{bad`, -32700, "null"},
		{"half a character as id", `{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, -32600, "null"},
		{"a notification with an id", `{"jsonrpc":"2.0","id":30,"method":"notifications/cancelled","params":{"requestId":1}}`, -32601, "30"},
		{"half a message", `{"jsonrpc":"2.0","id":1`, -32700, "null"},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, "null"},
		{"a number", `5`, -32600, "null"},
		{"an id of null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null"},
		{"a method that is a number", `{"jsonrpc":"2.0","id":7,"method":5}`, -32600, "7"},
		{"params that are a list", `{"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}`, -32600, "8"},
		{"another version", `{"jsonrpc":"1.0","id":9,"method":"ping"}`, -32600, "9"},
		{"an unknown method", `{"jsonrpc":"2.0","id":10,"method":"no/such"}`, -32601, "10"},
		{"an unknown tool", toolCall(11, "Nothing", "{}"), -32602, "11"},
		{"an id beyond 2^53", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, -32600, "null"},
		{"an id that is no integer", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null"},
		{"an id that no float holds", `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, -32600, "null"},
		{"an id that is a list", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, -32600, "null"},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":13,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}", -32700, "13"},
		{"a request with a result", `{"jsonrpc":"2.0","id":14,"method":"ping","result":{}}`, -32600, "14"},
		{"a request with an error", `{"jsonrpc":"2.0","id":15,"method":"ping","error":{}}`, -32600, "15"},
		{"no version", `{"id":16,"method":"ping"}`, -32600, "16"},
		{"a version that is a number", `{"jsonrpc":2.0,"id":17,"method":"ping"}`, -32600, "17"},
		{"null", `null`, -32600, "null"},
		{"a name that stands twice", `{"jsonrpc":"2.0","id":18,"method":"tools/call","params":{"name":"Read","name":"Write","arguments":{}}}`, -32600, "18"},
		{"a name in two spellings", `{"jsonrpc":"2.0","id":19,"method":"tools/call","params":{"name":"Read","Name":"Write","arguments":{}}}`, -32600, "19"},
		{"a name behind an escape", `{"jsonrpc":"2.0","id":20,"method":"tools/call","params":{"name":"Read","n\u0061me":"Write","arguments":{}}}`, -32600, "20"},
		{"other arguments", `{"jsonrpc":"2.0","id":21,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a"},"Arguments":{"file_path":"b"}}}`, -32600, "21"},
		{"params that only our decoder finds", `{"jsonrpc":"2.0","id":22,"method":"tools/call","Params":{"name":"Read","arguments":{}}}`, -32600, "22"},
		{"params spelt with a long s", "{\"jsonrpc\":\"2.0\",\"id\":23,\"method\":\"ping\",\"param\u017f\":{}}", -32600, "23"},
		{"a method that stands twice", `{"jsonrpc":"2.0","id":24,"method":"ping","method":"tools/list"}`, -32600, "24"},
		{"no tool", `{"jsonrpc":"2.0","id":25,"method":"tools/call","params":{}}`, -32602, "25"},
		{"a number that nothing holds", toolCall(26, "Read", `{"file_path":"a.txt","limit":1e400}`), -32602, "26"},
		{"a cursor of somebody else", `{"jsonrpc":"2.0","id":27,"method":"tools/list","params":{"cursor":"bogus"}}`, -32602, "27"},
		{"a cursor that is a number", `{"jsonrpc":"2.0","id":28,"method":"tools/list","params":{"cursor":5}}`, -32602, "28"},
		{"an initialize of numbers", `{"jsonrpc":"2.0","id":29,"method":"initialize","params":{"protocolVersion":5}}`, -32602, "29"},
		{"a call that is too long", toolCall(31, "Write", `{"content":"`+strings.Repeat("x", MaxMessage)+`"}`), -32600, "31"},
		{"a call that is too long, with its id at the end", `{"method":"tools/call","params":{"id":1,"x":"` + strings.Repeat("x", MaxMessage) + `"},"jsonrpc":"2.0","id":"32"}`, -32600, `"32"`},
		{"a line that is too long", `{"jsonrpc":"2.0","id":12,"x":"` + strings.Repeat("x", MaxMessage) + `"}`, -32600, "null"},
	}
	if samples.Step(1) > 1 {
		tests = tests[:len(tests)-2] // one call that is too long
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c.send(test.line)
			a := c.receive()
			if a.Error == nil || a.Error.Code != test.code || string(a.ID) != test.id &&
				!(test.id == "null" && a.ID == nil) {
				t.Errorf("id %s, error %+v", a.ID, a.Error)
			} else if strings.Contains(a.Error.Message, "Go ") || strings.Contains(a.Error.Message, "mcp.") {
				t.Errorf("the words of a decoder: %s", a.Error.Message)
			}
			c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)                 // a response to nothing
			c.send(`{"jsonrpc":"2.0","method":"notifications/something"}`) // an unknown notification
			c.send(`   `)                                                  // an empty line
			c.send(ping)
			if a := c.receive(); string(a.ID) != `"p"` || a.Error != nil {
				t.Errorf("after it a ping got id %s, error %+v", a.ID, a.Error)
			}
		})
	}
}

// TestOtherFramings sends what other protocols and programs would send. What is wrong with it is said, and the next line is read.
func TestOtherFramings(t *testing.T) {
	c := startPipe(t, nil)
	utf16 := func(text string) string {
		var b strings.Builder
		for _, r := range text {
			b.WriteByte(byte(r))
			b.WriteByte(0)
		}
		return b.String()
	}
	for _, test := range []struct{ name, line, says string }{
		{"the headers of a language server", fmt.Sprintf("Content-Length: %d\r", len(ping)), "on one line"},
		{"the type of a language server", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r", "on one line"},
		{"HTTP", "POST /mcp HTTP/1.1\r", "on one line"},
		{"UTF-16", utf16(ping), "UTF-8"},
		{"UTF-16 with a mark", "\xff\xfe" + utf16(ping), "UTF-8"},
		{"NUL bytes", "\x00" + ping, "NUL"},
		{"a depth of 20,000", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "too deeply"},
	} {
		c.send(test.line)
		if a := c.receive(); a.Error == nil || a.Error.Code != -32700 || !strings.Contains(a.Error.Message, test.says) {
			t.Errorf("%s: id %s, error %+v", test.name, a.ID, a.Error)
		}
	}
	for _, line := range []string{"\uFEFF" + ping, ping + "\r", "\t" + ping + "  "} {
		c.send("\r")
		c.send(line)
		if a := c.receive(); string(a.ID) != `"p"` || a.Error != nil {
			t.Errorf("%q: id %s, error %+v", line, a.ID, a.Error)
		}
	}
}

// TestSpellingsOfAnID writes one id in two ways: they are the same, of a call that runs and of one that is cancelled.
func TestSpellingsOfAnID(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil, func(c *Config) { c.Allow = []string{"Bash"} })
	escaped := func(text string) string { return strings.Replace(text, `"a"`, `"\u0061"`, 1) }
	c.send(strings.Replace(toolCall(1, "Bash", waitFor), `"id":1`, `"id":"a"`, 1))
	c.send(escaped(`{"jsonrpc":"2.0","id":"a","method":"ping"}`))
	if a := c.receive(); a.Error == nil || !strings.Contains(a.Error.Message, "still running") {
		t.Errorf("the id of a call that runs: id %s, error %+v", a.ID, a.Error)
	}
	c.send(escaped(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
	c.send(toolCall(2, "Bash", `{"command":"echo next"}`)) // its turn comes when the first one has ended
	if a := c.receive(); string(a.ID) != "2" || a.Error != nil {
		t.Errorf("after a call that was cancelled: id %s, error %+v", a.ID, a.Error)
	}
}

// waitFor is a command that runs until the file go exists.
const waitFor = `{"command":"until [ -e go ]; do sleep 0.01; done"}`

// TestReaderKeepsTheLead: whoever waited to lead leads on when the next message is no request.
func TestReaderKeepsTheLead(t *testing.T) {
	c := startPipe(t, nil)
	for i := range samples.Raced(60) { // in the first ones no one waits yet
		file := fmt.Sprint("go", i)
		c.send(toolCall(i, "Bash", fmt.Sprintf(`{"command":"until [ -e %s ]; do sleep 0.01; done"}`, file)))
		c.send(`{"jsonrpc":"2.0","method":"notifications/something"}`)
		c.send(ping)
		if a := c.receive(); string(a.ID) != `"p"` {
			t.Fatalf("an answer to %s: %s", a.ID, a.Result)
		}
		writeFile(t, filepath.Join(c.root, file), "")
		if a := c.receive(); string(a.ID) != fmt.Sprint(i) || !strings.Contains(string(a.Result), `"exit_code":0`) {
			t.Fatalf("an answer to %s: %s", a.ID, a.Result)
		}
	}
}

func TestIDInFlightIsTaken(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil)
	c.send(toolCall(1, "Bash", waitFor))
	c.send(toolCall(1, "Bash", `{"command":"true"}`))
	if a := c.receive(); a.Error == nil || a.Error.Code != -32600 {
		t.Errorf("a second request with the same id: %+v", a)
	}
	writeFile(t, filepath.Join(c.root, "go"), "")
	if a := c.receive(); a.Error != nil || string(a.ID) != "1" {
		t.Errorf("the first: %+v", a)
	}
}

func TestCancelledRequestIsNotAnswered(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil)
	c.send(toolCall(1, "Bash", `{"command":"touch started; sleep 600"}`))
	await(t, filepath.Join(c.root, "started"))
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.send(toolCall(2, "Bash", `{"command":"echo next"}`))
	if a := c.receive(); string(a.ID) != "2" {
		t.Errorf("an answer to %s", a.ID)
	}
}

// ends are the ways in which a client goes away.
var ends = map[string]struct {
	end  func(*pipeClient)
	told bool // who only sends no more may read
}{
	"the input ends":      {func(c *pipeClient) { c.in.Close() }, true},
	"the client has died": {func(c *pipeClient) { close(c.gone) }, false},
}

// A call that is not done when the client goes away, and can be soon, is answered.
func TestEndOfInputLetsCallsFinish(t *testing.T) {
	for name, tt := range ends {
		t.Run(name, func(t *testing.T) {
			c := startPipe(t, map[string]string{"a.txt": "a\n"})
			c.send(toolCall(1, "Read", `{"file_path":"a.txt"}`))
			c.send("") // when this has been read, the call has arrived
			tt.end(c)
			if a := c.receive(); string(a.ID) != "1" || a.Error != nil {
				t.Errorf("a call that could finish: %+v", a)
			}
			c.awaitEnd()
		})
	}
}

// awaitEnd waits for the end of the host.
func (c *pipeClient) awaitEnd() {
	c.t.Helper()
	go io.Copy(io.Discard, c.out)
	if err := <-c.ended; err != nil {
		c.t.Error(err)
	}
}
