//go:build linux

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// tree is a command that starts processes which hold on to life in every way known, all carrying the tag, and then says so and waits:
// in the background, in a session of their own, orphaned twice over, deaf to signals, and stopped.
func tree(tag string) string {
	deaf := `trap "" TERM HUP INT; while :; do sleep 1; done`
	return strings.ReplaceAll(`export TAG=`+tag+`
sleep 1000 &
setsid sleep 1001 &
setsid -f sleep 1002
(setsid bash -c '(DEAF) & exec sleep 1003' TAG &)
( ( nohup bash -c 'DEAF' TAG >/dev/null 2>&1 & ) & )
bash -c 'kill -STOP $$' TAG &
touch ready
trap "" TERM
while :; do sleep 1; done`, "DEAF", deaf)
}

// quick is within how long a host and all it started must have ended once its client is gone, where it took the given time to begin
// them: on a machine that does much else both take theirs. How long it took is logged.
func quick(begun time.Duration) time.Duration { return 10*time.Second + 10*begun }

// settings are flags under which commands run in a sandbox or outside.
func (g *ground) settings(contain bool) []string {
	if contain {
		return nil
	}
	off := filepath.Join(g.Home, "off.json")
	if err := os.WriteFile(off, []byte(`{"sandbox": {"enabled": false}, "permissions": {"allow": ["Bash"]}}`),
		0o600); err != nil {
		g.T.Fatal(err)
	}
	return []string{"--settings", off}
}

// TestFaultClientDies kills the client, while something else holds the host's input and output open.
func TestFaultClientDies(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	fifo := filepath.Join(g.Home, "input")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDWR, 0) // stays open when the client is gone
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	tag := host.NewTag()
	script := `"$0" stdio --root "$1" --state-dir "$2" <"$3" >"$1/output" & wait`
	parent := exec.Command("sh", "-c", script, host.Binary, g.WS, g.State, fifo)
	parent.Env = host.CleanEnv(g.Home)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Wait() }()
	defer func() { _ = parent.Process.Kill() }()
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Bash","arguments":%s,`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", host.Args{"command": tree(tag)}, client.Modern)
	asked := time.Now()
	if _, err := in.WriteString(request); err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("ready")); err != nil {
			raw, _ := os.ReadFile(g.Path("output"))
			return "the command is not ready: " + string(raw)
		}
		return ""
	})
	watched := host.Watch(t, host.Descendants(t, parent.Process.Pid)[0])
	start, within := time.Now(), quick(time.Since(asked))
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took := watched.End(t)
	host.Survivors(t, tag)
	t.Logf("the host ended after %v, the last process after %v", took.Round(time.Millisecond),
		time.Since(start).Round(time.Millisecond))
	if took > within {
		t.Errorf("it took %v until the host had ended, more than %v", took, within)
	}
}

// TestFaultDisconnect closes the connection in the middle of calls, at random moments. A stdio host ends with its client, an HTTP host
// goes on; in both an edit was made or was not.
func TestFaultDisconnect(t *testing.T) {
	g := newGround(t)
	n := 0
	g.Put("a.txt", "number 0\n")
	web := g.start(host.HTTPModern)
	for i := range samples.Rounds(12) {
		var s *session
		if i%2 == 0 {
			s = g.start(host.StdioModern)
		} else {
			conn, err := client.HTTP(web.Ctx, client.Modern, web.URL, web.Token)
			host.Must(t, err)
			s = &session{&host.Session{Host: &host.Host{Conn: conn, Stderr: web.Stderr}, T: t, Ctx: web.Ctx}}
		}
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		for _, tool := range []string{"Edit", "Bash", "Grep"} {
			a := map[string]host.Args{
				"Edit": {"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", n), "new_string": fmt.Sprintf("number %d\n", n+1)},
				"Bash": {"command": "sleep 0.01"},
				"Grep": {"pattern": "number"},
			}[tool]
			if _, err := s.Start(s.Ctx, tool, a.String(), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(rand.N(10 * time.Millisecond)) // any station
		if err := s.Close(); err != nil {
			t.Errorf("%v\n%s", err, s.Stderr)
		}
		if i%2 == 1 {
			web.MustCall("Bash", host.Args{"command": "true"}) // waits for what runs
		}
		var now int
		if _, err := fmt.Sscanf(host.Get(t, g.Path("a.txt")), "number %d\n", &now); err != nil || now != n &&
			now != n+1 {
			t.Fatalf("after number %d comes number %d, %v", n, now, err)
		}
		n = now
	}
	web.End()
	g.Tidy()
}
