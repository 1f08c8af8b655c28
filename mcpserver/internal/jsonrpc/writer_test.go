package jsonrpc

import (
	"io"
	"testing"
)

func TestWriterMakesItsMakersWait(t *testing.T) {
	r, w := io.Pipe()
	l := NewWriter(w)
	line := make([]byte, maxUnread/4+1)
	go l.Write(line)
	for { // until it is being written
		l.mu.Lock()
		writing := l.writing
		l.mu.Unlock()
		if writing {
			break
		}
	}
	for range 3 {
		l.Write(line)
	}
	if !l.Crowded() {
		t.Error("it is not crowded")
	}
	waited := make(chan struct{})
	go func() { l.WaitForRoom(); close(waited) }()
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
	l.Close()
	l.WaitForRoom() // a closed writer holds no one
	w.Close()
}
