//go:build linux

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
)

// A stop is a station of a call at which its client leaves. Each is held there by something that waits, so that none is met by chance.
var stops = []struct {
	name   string
	before args   // a command that runs before it in the same conversation
	tool   string // the call that is left
	args   args
	hook   string // the event whose hook waits
	made   bool   // the call has done its work by then
}{
	{name: "in the queue", before: args{"command": waiting}, tool: "Write", args: args{"file_path": "made.txt", "content": "made\n"}},
	{name: "in a hook before", hook: "PreToolUse", tool: "Write", args: args{"file_path": "made.txt", "content": "made\n"}},
	{name: "running", tool: "Bash", args: args{"command": waiting + "; touch made.txt"}},
	{name: "in a hook behind", hook: "PostToolUse", tool: "Write", args: args{"file_path": "made.txt", "content": "made\n"}, made: true},
}

// waiting says that it has begun and then waits for a word.
const waiting = `touch begun; until [ -e go ]; do sleep 0.05; done`

// TestFaultLeave lets the client leave at every station of a call. What had not been done by then is not done later, nothing runs on, and
// who comes next is served. But over HTTP in the older era a lost connection is no cancellation, by the specification, and nowhere does
// it end the hooks of work that has been done: there the call goes on to its end.
func TestFaultLeave(t *testing.T) {
	for _, setting := range settings {
		for _, st := range stops {
			t.Run(setting.String()+"/"+st.name, func(t *testing.T) {
				t.Parallel()
				g, tag := newGround(t), newTag()
				hooks := map[string]any{}
				if st.hook != "" {
					hooks[st.hook] = []any{map[string]any{"matcher": "Write", "hooks": []any{
						map[string]any{"type": "command", "command": ": " + tag + "; cd " + g.ws + "; [ -e go ] || { " + waiting + "; }"},
					}}}
				}
				rules := filepath.Join(g.home, "rules.json")
				must(t, os.WriteFile(rules, []byte(args{"hooks": hooks, "permissions": map[string]any{"allow": []string{"Bash"}}}.String()), 0o600))
				s := g.start(setting, "--settings", rules, "--metrics", ":0")
				if st.before != nil {
					ahead := s
					if setting == httpModern { // who is ahead stays: that two connections end in their order is not to be had
						ahead = g.another(s, setting)
					}
					ahead.leaveBehind("Bash", st.before, tag)
					begun(t, g)
				}
				s.leaveBehind(st.tool, st.args, tag)
				if st.before == nil {
					begun(t, g)
				} else if s.web { // it has been sent, and may still be on its way
					s.waits(t)
				} else if _, err := s.Request(s.ctx, "tools/list", nil); err != nil { // it has been read when this is answered
					t.Fatal(err)
				}
				goesOn := s.web && (setting.era == client.Legacy || st.made)
				s = g.leave(s, setting, "--settings", rules)
				if st.before != nil && setting == httpModern {
					g.recorded(st.tool) // as one that was cancelled
					g.put("go", "")
				}
				if goesOn {
					g.put("go", "")
				}
				survivors(t, tag)
				g.put("go", "")
				if text := s.call("Bash", args{"command": "echo on"}); !strings.Contains(text, "on") {
					t.Errorf("who comes next is answered: %s", text)
				}
				if st.made || goesOn { // in its own time: who comes next does not wait for it
					eventually(t, func() string {
						if _, err := os.Stat(g.path("made.txt")); err != nil {
							return "what was to be made is not there: " + err.Error()
						}
						return ""
					})
				} else if _, err := os.Stat(g.path("made.txt")); err == nil {
					t.Error("what had not been done when the client left was done later")
				}
				s.call("Write", args{"file_path": "next.txt", "content": "next\n"})
				s.end()
				g.tidy()
			})
		}
	}
}

// leaveBehind sends a call whose processes carry a tag, for an answer that no one will take.
func (s *session) leaveBehind(tool string, a args, tag string) {
	s.t.Helper()
	if command, ok := a["command"]; ok {
		a = args{"command": fmt.Sprintf("export TAG=%s; bash -c '%s' %s", tag, command, tag)}
	}
	if _, err := s.Start(s.ctx, tool, a.String(), nil); err != nil {
		s.t.Fatal(err)
	}
}

func begun(t *testing.T, g *ground) {
	t.Helper()
	eventually(t, func() string {
		if _, err := os.Stat(g.path("begun")); err != nil {
			return "the call has not come to its station"
		}
		return ""
	})
}

// leave ends a client's connection and returns the next client: of the same host over HTTP, of a new one on stdio.
func (g *ground) leave(s *session, setting setting, flags ...string) *session {
	g.t.Helper()
	if err := s.Close(); err != nil {
		g.t.Errorf("%v\n%s", err, s.stderr)
	}
	if !s.web {
		return g.start(setting, flags...)
	}
	return g.another(s, setting)
}

// another is another client of the same host over HTTP.
func (g *ground) another(s *session, setting setting) *session {
	g.t.Helper()
	conn, err := client.HTTP(s.ctx, setting.era, s.url, s.token)
	must(g.t, err)
	h := *s.host
	h.Conn = conn
	return &session{&h, s.t, s.ctx}
}
