//go:build slow

package scripts

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestRemoteFarKilled: when the far host is killed, the call that was with it is reported, and not run again. The next call
// goes to a new host, and a legacy client need not begin again.
func TestRemoteFarKilled(t *testing.T) {
	g := newFarGround(t)
	g.Put("a.txt", "content\n")
	for _, setting := range samples.Of([]host.Setting{host.StdioModern, host.StdioLegacy, host.HTTPModern}, 1) {
		t.Run(setting.String(), func(t *testing.T) {
			s := g.relay(setting)
			name := "ran-" + setting.String()
			call, err := s.Host.Start(s.Ctx, "Bash", host.Args{"command": "echo x >> " + name + "; sleep 100"}.String(),
				nil)
			host.Must(t, err)
			host.Eventually(t, func() string {
				if raw, _ := os.ReadFile(g.Path(name)); string(raw) != "x\n" {
					return "the command has not begun"
				}
				return ""
			})
			g.kill(true)
			if _, err := call.Result(s.Ctx); err == nil || !strings.Contains(err.Error(), "it ran or not: unknown") {
				t.Errorf("the call that was running: %v", err)
			}
			if got := s.MustCall("Read", host.Args{"file_path": "a.txt"}); !strings.Contains(got, "content") {
				t.Errorf("the next call: %s", got)
			}
			if ran := host.Get(t, g.Path(name)); ran != "x\n" {
				t.Errorf("the command ran as often as there are lines: %q", ran)
			}
			s.End()
		})
	}
}

// TestRemoteTogether: two relays use one host and do not share what they have read. Rules that are sent along belong to
// another host.
func TestRemoteTogether(t *testing.T) {
	g := newFarGround(t)
	g.Put("a.txt", "content\n")
	one, two := g.relay(host.StdioLegacy), g.relay(host.StdioModern)
	if hosts := host.FarProcesses(t, g.State, true); len(hosts) != 1 {
		t.Errorf("two relays to one workspace have the hosts %v", hosts)
	}
	one.MustCall("Read", host.Args{"file_path": "a.txt"})
	two.Refused("Edit", host.Args{"file_path": "a.txt", "old_string": "content", "new_string": "changed"}, "read")
	one.MustCall("Edit", host.Args{"file_path": "a.txt", "old_string": "content", "new_string": "changed"})
	three := g.relay(host.StdioModern, "--deny", "Read(a.txt)")
	three.Refused("Read", host.Args{"file_path": "a.txt"}, "a.txt")
	rules := g.Put("rules.json", `{"permissions": {"deny": ["Edit(a.txt)"]}, "comment": "`+
		strings.Repeat("x", 200_000)+`"}`)
	four := g.relay(host.StdioModern, "--settings", rules)
	four.MustCall("Read", host.Args{"file_path": "a.txt"})
	four.Refused("Edit", host.Args{"file_path": "a.txt", "old_string": "changed", "new_string": "again"}, "Edit(a.txt)")
	for _, s := range []*host.Session{one, two, three, four} {
		s.End()
	}
}

// TestRemoteForward: a port of this machine leads to a server at the target, and each direction ends by itself.
func TestRemoteForward(t *testing.T) {
	g := newFarGround(t)
	far, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	defer far.Close()
	go func() {
		for {
			c, err := far.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				text, _ := io.ReadAll(c) // the client's direction ends first
				fmt.Fprintf(c, "got %s", text)
			}()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	here := free.Addr().(*net.TCPAddr).Port
	free.Close()
	s := g.relay(host.StdioModern, "--forward", fmt.Sprintf("%d:%d", here, far.Addr().(*net.TCPAddr).Port))
	g.Put("a.txt", "content\n")
	s.MustCall("Read", host.Args{"file_path": "a.txt"}) // it has started
	talk := func() string {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", here))
		host.Must(t, err)
		defer c.Close()
		fmt.Fprint(c, "hello")
		_ = c.(*net.TCPConn).CloseWrite() // without a server, the connection may have been reset
		answer, _ := io.ReadAll(c)
		return string(answer)
	}
	for range 3 {
		if got := talk(); got != "got hello" {
			t.Errorf("got %q", got)
		}
	}
	g.kill(false) // the link: it is opened again
	if got := talk(); got != "got hello" {
		t.Errorf("over a new link: %q", got)
	}
	far.Close()
	if got := talk(); got != "" {
		t.Errorf("without a server: %q", got)
	}
	s.End()
}

// TestRemoteProgram: where the home directory is the root, tools and commands neither replace the program that the next link
// starts nor read the token of its host.
func TestRemoteProgram(t *testing.T) {
	g := newFarGround(t)
	g.WS = g.Home
	s := g.relay(host.StdioLegacy)
	programs, err := filepath.Glob(filepath.Join(g.State, "program", "*", "toolhost"))
	tokens, e := filepath.Glob(filepath.Join(g.State, "remote", "*.token"))
	if err != nil || e != nil || len(programs) != 1 || len(tokens) != 1 {
		t.Fatalf("programs %v, tokens %v", programs, tokens)
	}
	before, err := os.Stat(programs[0])
	host.Must(t, err)
	token := strings.TrimSpace(host.Get(t, tokens[0]))
	for _, command := range []string{
		"cat " + tokens[0], "echo x > " + programs[0], "rm -rf " + filepath.Dir(programs[0]), "mv " + g.State + " elsewhere; cat elsewhere/remote/*.token",
		"mkdir -p " + filepath.Join(g.State, "program", "next") + " && echo x > " + filepath.Join(g.State, "program", "next", "toolhost"),
	} {
		if text, _ := s.Try("Bash", host.Args{"command": command}); strings.Contains(text, token) {
			t.Errorf("%s prints the token", command)
		}
	}
	s.Refused("Read", host.Args{"file_path": tokens[0]}, "state", "denied", "protected")
	s.Refused("Write", host.Args{"file_path": filepath.Join(g.State, "program", "next", "toolhost"), "content": "x"},
		"state", "denied", "protected")
	after, err := os.Stat(programs[0])
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the program was changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(g.State, "program", "next")); err == nil {
		t.Error("another program was put next to it")
	}
	s.End()
}

// TestRemoteDoctor: doctor reports the link and the host of a target.
func TestRemoteDoctor(t *testing.T) {
	g := newFarGround(t)
	cmd := exec.Command(host.Binary, "doctor", "--remote", g.target, "--root", g.WS)
	cmd.Env = host.CleanEnv(g.Home)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "ok    link     cmd:env: answered within") ||
		!strings.Contains(string(out), "root     "+g.WS) {
		t.Errorf("%v\n%s", err, out)
	}
}
