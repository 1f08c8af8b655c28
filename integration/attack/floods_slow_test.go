//go:build slow && unix

package attack

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// A flooder holds connections of one caller.
type flooder struct {
	*shop
	address, token string
	session        string // of the legacy era
}

func (s *shop) flooder(name string) flooder {
	u, err := url.Parse(s.h.URL)
	host.Must(s.t, err)
	f := flooder{shop: s, address: u.Host, token: token(s.t, s.ws, s.env, "add", name)}
	initialize := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, client.Legacy)
	resp := f.send("POST", "", len(initialize), initialize, true)
	f.session = resp.Header.Get("Mcp-Session-Id")
	return f
}

// send sends a request with a body that may be shorter than announced, and reads the head of the answer if one is expected. The
// connection stays open until the test ends.
func (f flooder) send(method, headers string, length int, body string, answered bool) *http.Response {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.address)
	host.Must(f.t, err)
	f.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "%s /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n%s\r\n%s", method, f.token, length, headers, body)
	if !answered {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	host.Must(f.t, err)
	return resp
}

// fill sends requests until one is refused, and returns how many were not.
func (f flooder) fill(send func() *http.Response) (held int) {
	f.t.Helper()
	for resp := send(); resp.StatusCode == http.StatusOK; resp = send() {
		held++
	}
	return held
}

// TestAttackFloods has callers hold every stream that they get, and bodies that never end, on connections of their own: others go on.
func TestAttackFloods(t *testing.T) {
	s := openShop(t, client.Modern)
	bob := s.enter("bob", "read,write,exec")
	works := func(when string) {
		t.Helper()
		if raw, r := s.call(bob, "Read", object{"file_path": "shared.txt"}, nil); r.IsError ||
			!strings.Contains(raw, "shared") {
			t.Errorf("%s: another caller is refused: %s", when, raw)
		}
	}
	listen := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{
		"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`, client.Modern)
	modern := fmt.Sprintf("MCP-Protocol-Version: %s\r\nMcp-Method: subscriptions/listen\r\n", client.Modern)
	for i := range 3 {
		f := s.flooder(fmt.Sprint("flood", i))
		legacy := fmt.Sprintf("MCP-Protocol-Version: %s\r\nMcp-Session-Id: %s\r\n", client.Legacy, f.session)
		streams := f.fill(func() *http.Response { return f.send("POST", modern, len(listen), listen, true) })
		streams += f.fill(func() *http.Response { return f.send("GET", legacy, 0, "", true) })
		t.Logf("caller %d holds %d streams", i, streams)
		if streams == 0 {
			t.Errorf("caller %d gets no stream at all", i)
		}
		works(fmt.Sprintf("%d streams of caller %d", streams, i))
		for range streams {
			f.send("POST", modern, 1<<20, "{", false)
		}
		works("bodies that never end")
		for range streams {
			f.send("POST", "X: y", 0, "", false) // a head that never ends
			(flooder{shop: s, address: f.address, token: "none"}).send("POST", "X: y", 0, "", false)
		}
		works("heads that never end")
	}
	s.enter("carol", "read")
}
