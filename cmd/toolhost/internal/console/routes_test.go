package console

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/testenv"
)

// dial opens a connection to a server of the pages that waits for no one for longer than a moment.
func (s *served) dial(t *testing.T) net.Conn {
	t.Helper()
	web := httptest.NewServer(withDeadlines(s.checked(s.pages()), 50*time.Millisecond, 50*time.Millisecond))
	t.Cleanup(web.Close)
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // no waiting for a server that holds on
		t.Fatal(err)
	}
	return conn
}

// TestNobodyHoldsConnections sends half of what it announces, and asks for what it does not read: the connection is closed.
func TestNobodyHoldsConnections(t *testing.T) {
	testenv.NotShort(t, "fills connections until limits end them")
	s := serve(t, nil)
	for name, head := range map[string]string{
		"nothing there": "POST /nothing HTTP/1.1", "another method": "PUT / HTTP/1.1", "another site": "POST /leave HTTP/1.1\r\nOrigin: http://evil.example",
		"nobody known": "POST /leave HTTP/1.1", "a code": "POST /enter HTTP/1.1", "a GET": "GET / HTTP/1.1", "an asset": "GET /console.js HTTP/1.1",
	} {
		conn := s.dial(t)
		fmt.Fprintf(conn, "%s\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\ncode=", head)
		if answer, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a connection whose client sends half a form is held, after %.40q", name, answer)
		}
	}
	conn := s.dial(t)
	for range 1 << 20 {
		_, err := io.WriteString(conn, "GET /console.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection whose client reads nothing is held")
		} else if err != nil {
			return
		}
	}
	t.Error("a million answers are left unread")
}

// TestHeadOfWhatLasts asks for the head of streams: they hold no place of a page.
func TestHeadOfWhatLasts(t *testing.T) {
	s := serve(t, nil)
	for range MaxPages + 1 {
		resp, err := s.web.Head(s.URL() + "/events")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("the head of a stream: %d", resp.StatusCode)
		}
	}
}
