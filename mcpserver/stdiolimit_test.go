package mcpserver

import (
	"fmt"
	"io"
	"testing"
)

func TestBytesInFlightAreBounded(t *testing.T) {
	c := &stdioConn{calls: map[string]*stdioCall{}}
	const large = MaxBytesInFlight / 4
	for i := range 4 {
		if err := c.admit(fmt.Sprint(i), &stdioCall{size: large}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.admit("5", &stdioCall{size: 1}); err == nil {
		t.Error("more bytes are in flight than there is room for")
	}
	c.answer("0", c.calls["0"], nil)
	if err := c.admit("5", &stdioCall{size: 1}); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

func TestLineWriterMakesItsMakersWait(t *testing.T) {
	r, w := io.Pipe()
	l := newLineWriter(w)
	line := make([]byte, maxUnread/4+1)
	go l.write(line)
	for { // until it is being written
		l.mu.Lock()
		writing := l.writing
		l.mu.Unlock()
		if writing {
			break
		}
	}
	for range 3 {
		l.write(line)
	}
	if !l.crowded() {
		t.Error("it is not crowded")
	}
	waited := make(chan struct{})
	go func() { l.waitForRoom(); close(waited) }()
	select {
	case <-waited:
		t.Error("nobody waits while too much is unread")
	default:
	}
	if _, err := io.CopyN(io.Discard, r, int64(len(line))); err != nil {
		t.Fatal(err)
	}
	<-waited
	go io.Copy(io.Discard, r)
	l.close()
	l.waitForRoom() // a closed writer holds nobody
	w.Close()
}
