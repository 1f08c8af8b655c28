package jsonrpc

import (
	"io"
	"testing"
)

func TestWaitForRoom(t *testing.T) {
	r, w := io.Pipe()
	l := NewWriter(w)
	line := make([]byte, maxUnread/4+1)
	go l.Write(line)
	for { // until the goroutine writes
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
		t.Error("Crowded is false")
	}
	waited := make(chan struct{})
	go func() { l.WaitForRoom(); close(waited) }()
	select {
	case <-waited:
		t.Error("WaitForRoom returned while too much is unread")
	default:
	}
	if _, err := io.CopyN(io.Discard, r, int64(len(line))); err != nil {
		t.Fatal(err)
	}
	<-waited
	go io.Copy(io.Discard, r)
	l.Close()
	l.WaitForRoom() // returns at once: the writer is closed
	w.Close()
}
