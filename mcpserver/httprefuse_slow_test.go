//go:build slow

package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
)

// Clients that dawdle lose their connection, each at its time.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	h, _ := openHost(t, map[string]string{"long.txt": strings.Repeat("a long line of text\n", 1500)})
	head := "POST " + httpserver.Endpoint + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	known := head + "Authorization: Bearer " + testToken + "\r\n"
	message := "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: Read\r\n"
	call := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"long.txt"},` + modernMeta + `}}`).body
	whole := known + message + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(call), call)
	for _, tt := range []struct{ name, sent, says string }{
		{"nothing", "", ""},
		{"half a header", head, ""},
		{"half a body", known + "Content-Length: 1000\r\n\r\n{", "408"},
		{"half a body without a token", head + "Content-Length: 1000\r\n\r\n{", "401"},
		{"nothing more", whole, "200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line := answerInTime(t, h, 100*time.Millisecond, tt.sent)
			for brief := 200 * time.Millisecond; !strings.Contains(line, tt.says) &&
				brief < 10*time.Second; brief *= 2 {
				line = answerInTime(t, h, brief, tt.sent) // on a machine under load this client dawdles, and so does the server
			}
			if !strings.Contains(line, tt.says) {
				t.Errorf("it is answered %q", line)
			}
		})
	}
	for name, request := range map[string]string{
		"a reader of nothing": whole, "a stranger who reads nothing": head + "Content-Length: 0\r\n\r\n",
		"a supervisor who reads nothing": "GET " + "/healthz" + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialBrief(t, h, 100*time.Millisecond)
			many := strings.Repeat(request, 50)
			for { // the server reads no more when it cannot write, and then gives the connection up
				if _, err := io.WriteString(conn, many); err != nil {
					return
				}
			}
		})
	}
}

// dialBrief connects to a server of a host that waits for no one for longer than a moment.
func dialBrief(t *testing.T, h *Host, brief time.Duration) net.Conn {
	t.Helper()
	address, _ := serveWeb(t, h, func(c *httpserver.Config) {
		c.Limits = httpserver.UsualLimits()
		c.Limits.Header, c.Limits.Body, c.Limits.Write, c.Limits.Idle = brief, brief, brief, brief
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// answerInTime sends something to such a server, waits until that closes the connection, and returns the first line of its answer.
func answerInTime(t *testing.T, h *Host, brief time.Duration, sent string) (line string) {
	t.Helper()
	conn := dialBrief(t, h, brief)
	_, err := io.WriteString(conn, sent)
	answer, readErr := io.ReadAll(conn)
	for _, err := range []error{err, readErr} { // it may be closed before all was sent or read
		if operr, ok := errors.AsType[*net.OpError](err); err != nil && !ok || ok && operr.Timeout() {
			t.Error(err)
		}
	}
	line, _, _ = strings.Cut(string(answer), "\r\n")
	return line
}
