package kube

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// newTestClient returns a client of a handler.
func newTestClient(t *testing.T, u user, h http.HandlerFunc) *Client {
	t.Helper()
	web := httptest.NewTLSServer(h)
	t.Cleanup(web.Close)
	c, err := newClient(cluster{Server: web.URL + "/", Insecure: true}, &login{user: u})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRenew: credentials that are refused are renewed once, if others may be there.
func TestRenew(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a script")
	}
	file := filepath.Join(t.TempDir(), "token")
	token := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cat := &plugin{Command: "sh", Args: []string{"-c", `echo '{"status":{"token":"'$(cat '` + file + `')'"}}'`}}
	for name, c := range map[string]struct {
		user user
		asks int // requests of the second call
		ok   bool
	}{
		"token":  {user{Token: "old"}, 1, false},
		"file":   {user{TokenFile: file}, 2, true},
		"plugin": {user{Exec: cat}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			good, asked := "old", 0
			client := newTestClient(t, c.user, func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.Header.Get("Authorization") != "Bearer "+good {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			token("old")
			if err := client.Do(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, nil); err != nil ||
				asked != 1 {
				t.Fatalf("%v after %d requests", err, asked)
			}
			good, asked = "new", 0
			token("new")
			err := client.Do(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, nil)
			if (err == nil) != c.ok || asked != c.asks || err != nil && !Denied(err) {
				t.Errorf("%v after %d requests", err, asked)
			}
		})
	}
}

// TestWatch: a watch goes on when the server ends it, and an error of the server ends it.
func TestWatch(t *testing.T) {
	connections := 0
	client := newTestClient(t, user{}, func(w http.ResponseWriter, _ *http.Request) {
		connections++
		kind := "MODIFIED"
		if connections == 3 {
			kind = "ERROR"
		}
		fmt.Fprintf(w, `{"type":%q,"object":{"reason":"Gone","message":"too old"}}`, kind)
	})
	seen := 0
	err := client.Watch(t.Context(), "/x", map[string][]string{}, func(json.RawMessage, bool) (bool, error) {
		seen++
		return false, nil
	})
	if seen != 2 || err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("%d seen, %v", seen, err)
	}
}

// TestExecHangs: an API server that accepts the connection and does not answer is given up.
func TestExecHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		c := &Client{server: "http://x", login: &login{}, plain: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil },
		}}
		defer c.plain.CloseIdleConnections()
		if _, err := c.Exec(t.Context(), "ns", "pod", "sh"); err == nil ||
			!strings.Contains(err.Error(), "did not start a command in 15s") {
			t.Errorf("the server does not answer: %v", err)
		}
	})
}

// TestExecLasts: the connection of a command outlives the request that began it.
func TestExecLasts(t *testing.T) {
	client := newTestClient(t, user{}, func(w http.ResponseWriter, _ *http.Request) {
		conn, r, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Protocol: "+streamProtocol+"\r\n\r\n")
		text := readMasked(t, r)
		_, _ = io.WriteString(conn, frame(0x82, "\x01"+text[1:])+frame(0x82, "\x03"+`{"status":"Success"}`))
	})
	ctx, cancel := context.WithCancel(t.Context())
	command, err := client.Exec(ctx, "ns", "pod", "cat")
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	defer command.Kill()
	var out bytes.Buffer
	_, err = command.Write([]byte("hello"))
	if err = errors.Join(err, command.Run(&out, io.Discard)); err != nil || out.String() != "hello" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// frame is a frame of a server.
func frame(head byte, message string) string {
	return string([]byte{head, byte(len(message))}) + message
}

// TestCommand: what a server sends is understood, also in parts, and what is sent can be read by it.
func TestCommand(t *testing.T) {
	const success = `{"status":"Success"}`
	for name, c := range map[string]struct{ in, stdout, stderr, err string }{
		"both":        {frame(0x82, "\x01out") + frame(0x82, "\x02err") + frame(0x82, "\x03"+success), "out", "err", ""},
		"in parts":    {frame(0x02, "\x01a") + frame(0x89, "ping") + frame(0x80, "b") + frame(0x82, "\x03"+success), "ab", "", ""},
		"long":        {"\x82\x7e\x01\x01\x01" + strings.Repeat("x", 256) + frame(0x82, "\x03"+success), strings.Repeat("x", 256), "", ""},
		"fails":       {frame(0x82, "\x03"+`{"status":"Failure","message":"exit status 3"}`), "", "", "exit status 3"},
		"closed":      {frame(0x88, ""), "", "", "was closed"},
		"breaks":      {frame(0x82, "\x01out") + "\x82", "out", "", "broke"},
		"masked":      {"\x82\x81aaaa\x01", "", "", "none of the protocol"},
		"much longer": {"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", "", "", "none of the protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			command := &Command{conn: discard{}, r: bufio.NewReader(strings.NewReader(c.in))}
			err := command.Run(&stdout, &stderr)
			if stdout.String() != c.stdout || stderr.String() != c.stderr || (err == nil) != (c.err == "") ||
				err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %q, %v", stdout.String(), stderr.String(), err)
			}
		})
	}
	near, far := net.Pipe()
	defer near.Close()
	text := strings.Repeat("0123456789", 7000)
	go func() {
		command := &Command{conn: far}
		_, _ = io.WriteString(command, text) // what is missing is seen
		_ = command.Close()
	}()
	r, got := bufio.NewReader(near), ""
	for !strings.HasSuffix(got, "\xff\x00") {
		got += readMasked(t, r)
	}
	if strings.ReplaceAll(got, "\x00", "") != text+"\xff" {
		t.Errorf("%d bytes arrived", len(got))
	}
}

// readMasked reads a frame of a client.
func readMasked(t *testing.T, r io.Reader) string {
	t.Helper()
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	head := read(2)
	length := int(head[1] & 0x7f)
	if length == lengthOfTwo {
		long := read(2)
		length = int(long[0])<<8 | int(long[1])
	}
	mask, text := read(4), read(length)
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return string(text)
}

type discard struct{}

func (discard) Read([]byte) (int, error)    { return 0, io.EOF }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
