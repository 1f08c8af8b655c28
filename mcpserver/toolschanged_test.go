package mcpserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

const (
	listenForTools = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
	listTools      = `{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{` + modernMeta + `}}`
)

// denyForUser writes the user's settings file, of [ownHome].
func denyForUser(t *testing.T, rule string) {
	testenv.NeedsNotifications(t)
	t.Helper()
	writeFile(t, filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "toolhost", "toolhost.json"),
		fmt.Sprintf(`{"permissions": {"deny": [%q]}}`, rule))
}

func isListChanged(a rpcAnswer) bool { return a.Method == "notifications/tools/list_changed" }

// A subscription stays open, is told of a change that no request has seen, and of no other, and ends with the host.
func TestListChangedOverStdio(t *testing.T) {
	ownHome(t)
	c := startPipe(t, nil)
	c.send(listenForTools)
	if a := c.receive(); !strings.HasSuffix(a.Method, "acknowledged") {
		t.Fatalf("the first message is %+v", a)
	}
	denyForUser(t, "Read(.env)")
	c.send(listTools)
	if a := c.receive(); !strings.Contains(string(a.Result), `"name":"Bash"`) ||
		!strings.Contains(string(a.Result), `"ttlMs":60000,"cacheScope":"private"`) {
		t.Fatalf("a rule on files changes the list: %+v", a)
	}
	denyForUser(t, "Bash")
	if a := c.receive(); !isListChanged(a) || a.Params.Meta["io.modelcontextprotocol/subscriptionId"] != 5.0 {
		t.Fatalf("not told of the change: %+v", a)
	}
	c.send(listTools)
	if a := c.receive(); string(a.ID) != "6" || strings.Contains(string(a.Result), `"name":"Bash"`) {
		t.Fatalf("the list is not changed: %+v", a)
	}
	c.in.Close()
	if a := c.receive(); string(a.ID) != "5" {
		t.Fatalf("the subscription ends with %+v", a)
	}
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

// A cancelled subscription is told nothing more.
func TestListChangedCancelled(t *testing.T) {
	ownHome(t)
	c := startPipe(t, nil)
	c.send(listenForTools)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,` + modernMeta + `}}`)
	c.send("") // when this has been read, the subscription is cancelled
	denyForUser(t, "Bash")
	c.send(listTools)
	if a := c.receive(); string(a.ID) != "6" {
		t.Errorf("told of a change: %+v", a)
	}
}

func TestListChangedOverHTTP(t *testing.T) {
	ownHome(t)
	h, _ := openHost(t, nil, func(c *Config) { c.Remote = true })
	url, stop := serveWeb(t, h)
	first, second := modern(listenForTools).open(t, url), modern(listenForTools).open(t, url)
	for _, stream := range []*webStream{first, second} {
		if a := stream.next(); !strings.HasSuffix(a.Method, "acknowledged") {
			t.Fatalf("the first message is %+v", a)
		}
	}
	denyForUser(t, "Bash")
	for _, stream := range []*webStream{first, second} {
		if a := stream.next(); !isListChanged(a) || a.Params.Meta["io.modelcontextprotocol/subscriptionId"] != 5.0 {
			t.Fatalf("not told of the change: %+v", a)
		}
	}
	stop()
}

// A legacy session is told at its next request, whatever that is.
func TestListChangedLegacy(t *testing.T) {
	ownHome(t)
	c := startPipe(t, nil)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	if a := c.receive(); !strings.Contains(string(a.Result), `"tools":{"listChanged":true}`) {
		t.Errorf("not declared: %s", a.Result)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	denyForUser(t, "Bash")
	c.send(toolCall(1, "Glob", `{"pattern":"*"}`))
	told, answered := false, false
	for !told || !answered {
		a := c.receive()
		told, answered = told || isListChanged(a), answered || string(a.ID) == "1"
	}
}
