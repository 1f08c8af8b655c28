//go:build slow && linux

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// A stop is a station of a call at which its client leaves. Each is held there by something that waits, so that none is met by chance.
var stops = []struct {
	name   string
	before host.Args // a command that runs before it in the same conversation
	tool   string    // the call that is left
	args   host.Args
	hook   string // the event whose hook waits
	made   bool   // the call has done its work by then
}{
	{name: "in the queue", before: host.Args{"command": waiting}, tool: "Write", args: host.Args{"file_path": "made.txt", "content": "made\n"}},
	{name: "in a hook before", hook: "PreToolUse", tool: "Write", args: host.Args{"file_path": "made.txt", "content": "made\n"}},
	{name: "running", tool: "Bash", args: host.Args{"command": waiting + "; touch made.txt"}},
	{name: "in a hook behind", hook: "PostToolUse", tool: "Write", args: host.Args{"file_path": "made.txt", "content": "made\n"}, made: true},
}

// waiting says that it has begun and then waits for a word.
const waiting = `touch begun; until [ -e go ]; do sleep 0.05; done`

// TestFaultLeave lets the client leave at every station of a call. What had not been done by then is not done later, nothing runs on, and
// who comes next is served. But over HTTP in the older era a lost connection is no cancellation, by the specification, and nowhere does
// it end the hooks of work that has been done: there the call goes on to its end.
func TestFaultLeave(t *testing.T) {
	for _, setting := range host.Settings {
		for _, st := range stops {
			t.Run(setting.String()+"/"+st.name, func(t *testing.T) {
				t.Parallel()
				g, tag := newGround(t), host.NewTag()
				hooks := map[string]any{}
				if st.hook != "" {
					hooks[st.hook] = []any{map[string]any{"matcher": "Write", "hooks": []any{
						map[string]any{"type": "command", "command": ": " + tag + "; cd " + g.WS + "; [ -e go ] || { " +
							waiting + "; }"},
					}}}
				}
				rules := filepath.Join(g.Home, "rules.json")
				host.Must(t, os.WriteFile(rules, []byte(host.Args{"hooks": hooks, "permissions": map[string]any{"allow": []string{"Bash"}}}.String()), 0o600))
				s := g.start(setting, "--settings", rules, "--metrics", ":0")
				if st.before != nil {
					ahead := s
					if setting == host.HTTPModern { // who is ahead stays: that two connections end in their order is not to be had
						ahead = g.another(s, setting)
					}
					ahead.leaveBehind("Bash", st.before, tag)
					begun(t, g)
				}
				s.leaveBehind(st.tool, st.args, tag)
				if st.before == nil {
					begun(t, g)
				} else if s.Web { // it has been sent, and may still be on its way
					s.waits(t)
				} else if _, err := s.Request(s.Ctx, "tools/list", nil); err != nil { // it has been read when this is answered
					t.Fatal(err)
				}
				goesOn := s.Web && (setting.Era == client.Legacy || st.made)
				s = g.leave(s, setting, "--settings", rules)
				if st.before != nil && setting == host.HTTPModern {
					g.recorded(st.tool) // as one that was cancelled
					g.Put("go", "")
				}
				if goesOn {
					g.Put("go", "")
				}
				host.Survivors(t, tag)
				g.Put("go", "")
				if text := s.MustCall("Bash", host.Args{"command": "echo on"}); !strings.Contains(text, "on") {
					t.Errorf("who comes next is answered: %s", text)
				}
				if st.made || goesOn { // in its own time: who comes next does not wait for it
					host.Eventually(t, func() string {
						if _, err := os.Stat(g.Path("made.txt")); err != nil {
							return "what was to be made is not there: " + err.Error()
						}
						return ""
					})
				} else if _, err := os.Stat(g.Path("made.txt")); err == nil {
					t.Error("what had not been done when the client left was done later")
				}
				s.MustCall("Write", host.Args{"file_path": "next.txt", "content": "next\n"})
				s.End()
				g.Tidy()
			})
		}
	}
}

// leaveBehind sends a call whose processes carry a tag, for an answer that no one will take.
func (s *session) leaveBehind(tool string, a host.Args, tag string) {
	s.T.Helper()
	if command, ok := a["command"]; ok {
		a = host.Args{"command": fmt.Sprintf("export TAG=%s; bash -c '%s' %s", tag, command, tag)}
	}
	if _, err := s.Start(s.Ctx, tool, a.String(), nil); err != nil {
		s.T.Fatal(err)
	}
}

func begun(t *testing.T, g *ground) {
	t.Helper()
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("begun")); err != nil {
			return "the call has not come to its station"
		}
		return ""
	})
}

// leave ends a client's connection and returns the next client: of the same host over HTTP, of a new one on stdio.
func (g *ground) leave(s *session, setting host.Setting, flags ...string) *session {
	g.T.Helper()
	if err := s.Close(); err != nil {
		g.T.Errorf("%v\n%s", err, s.Stderr)
	}
	if !s.Web {
		return g.start(setting, flags...)
	}
	return g.another(s, setting)
}

// another is another client of the same host over HTTP.
func (g *ground) another(s *session, setting host.Setting) *session {
	g.T.Helper()
	conn, err := client.HTTP(s.Ctx, setting.Era, s.URL, s.Token)
	host.Must(g.T, err)
	h := *s.Host
	h.Conn = conn
	return &session{&host.Session{Host: &h, T: s.T, Ctx: s.Ctx}}
}
