//go:build slow

package attack

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

// flood logs in with ten requests over each of 1,000 connections at once, and counts the answers.
const flood = `python3 - "$GITHUB_TOKEN" %s <<'END'
import asyncio, collections, ssl, sys
token, at = sys.argv[1:]
name, port = at.split(":")
context, said = ssl.create_default_context(), collections.Counter()
async def log_in():
    r, w = await asyncio.open_connection(name, int(port), ssl=context, ssl_handshake_timeout=600)
    for i in range(10):
        w.write(f"GET /{i} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        head = (await r.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.split("content-length: ")[1].split()[0])
        body = (await r.readexactly(size)).decode()
        said[f"logged-in=true /{i}" in body and token in body] += 1
    await everybody.wait() # no connection ends before the last one has begun
    w.close()
async def all():
    global everybody
    everybody = asyncio.Barrier(1000)
    for e in await asyncio.gather(*(log_in() for _ in range(1000)), return_exceptions=True):
        if e: said[repr(e)] += 1
asyncio.run(all())
print("answers", dict(said))
END
`

// TestCredentialFlood: 10,000 requests with a token over 1,000 connections at once are answered, and nothing of them
// is left in the host.
func TestCredentialFlood(t *testing.T) {
	g := newCredentialGround(t)
	s := g.start()
	login := host.Args{"command": `curl -sS -H "Authorization: Bearer $GITHUB_TOKEN" https://` + g.mine}
	s.Try("Bash", login) // the sandbox has begun
	pid := s.Cmd.Process.Pid
	descriptors := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		host.Must(t, err)
		return len(entries)
	}
	before := descriptors()
	var cancel context.CancelFunc
	s.Ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	said, _ := s.Try("Bash", host.Args{"command": fmt.Sprintf(flood, g.mine), "run_in_background": true})
	task := regexp.MustCompile(`task_\w+`).FindString(said)
	for failed := false; !failed && !strings.Contains(said, "answers {"); {
		said, failed = s.Try("TaskOutput", host.Args{"task_id": task, "block": true})
		failed = failed || strings.Contains(said, "Error")
	}
	if !strings.Contains(said, "answers {True: 10000}") {
		t.Errorf("of 10,000 requests:\n%s", said)
	}
	g.unseen("the answers", said)
	const spare = 8 // epoll, a pipe of the command that just ended
	host.Eventually(t, func() string {
		if n := descriptors(); n > before+spare {
			return fmt.Sprintf("%d descriptors, and %d before", n, before)
		}
		for _, child := range host.Descendants(t, pid) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); strings.HasPrefix(string(name), "python") {
				return fmt.Sprintf("the program of process %d is left", child)
			}
		}
		return ""
	})
	if said, _ := s.Try("Bash", login); !strings.Contains(said, "logged-in=true") {
		t.Errorf("after the flood: %s", said)
	}
	host.Must(t, s.Cmd.Process.Signal(syscall.SIGQUIT)) // Go writes what each goroutine does
	_ = s.Close()                                       // it tells of the signal
	const kept = 4                                      // of the last login, which may not have ended
	serving := regexp.MustCompile(`(?m)^created by .*proxy\.\(\*(?:Terminated|session)\)`)
	if n := len(serving.FindAllString(s.Stderr.String(), -1)); n > kept {
		t.Errorf("%d goroutines serve connections that have ended", n)
	}
}
