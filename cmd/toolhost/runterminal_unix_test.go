//go:build unix

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLeaveAwaitsItsOwnAnswer has a terminal answer what a client asked, before it answers what toolhost asks.
func TestLeaveAwaitsItsOwnAnswer(t *testing.T) {
	t.Setenv("TERM", "xterm")
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	shown, terminal := pipe()
	_, client := pipe()
	s, k := &screen{terminal: terminal, asked: true}, &keyboard{client: client}
	left := make(chan struct{})
	go func() {
		k.leave(s)
		close(left)
	}()
	buf := make([]byte, 4096)
	n, err := shown.Read(buf)
	asked := string(buf[:n])
	if err != nil || !strings.HasSuffix(asked, restoreCursor) {
		t.Fatalf("it asks %q, %v", asked, err)
	}
	answer := ""
	for _, at := range regexp.MustCompile(`(\x1b\[\d+;\d+)H\x1b\[6n`).FindAllStringSubmatch(asked, -1) {
		answer += at[1] + "R"
	}
	came := func() bool {
		select {
		case <-k.quiet.Load().came:
			return true
		default:
			return false
		}
	}
	for _, forged := range []string{"\x1b[0n", strings.Repeat("\x1b[1;1R", moves), "touch breached\r",
		answer[:len(answer)-1]} {
		if _, _ = k.Write([]byte(forged)); came() {
			t.Errorf("it takes %q for the answer to %q", forged, asked)
		}
	}
	if _, _ = k.Write([]byte("R")); !came() {
		t.Errorf("it does not take %q for the answer to %q", answer, asked)
	}
	<-left
}
