package guard_test

import (
	"testing"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
)

// callServer is a kind of effect of another package: the call of a tool of another server, on whose form there are rules.
type callServer struct{ server, tool string }

func (c callServer) Judge(j guard.Judgment) {
	name := "mcp__" + c.server + "__" + c.tool
	j.Decide(guard.Subject{What: "call " + name, Form: name, Rule: name, AlwaysAllow: true})
}

func (callServer) Permission() guard.Permission { return guard.ToExec }

func (c callServer) Record() (field, value string) { return "call", c.server + " " + c.tool }

// silent is an effect that does not judge itself.
type silent struct{ guard.Compute }

func (silent) Judge(guard.Judgment) {}

func TestEffectsOfOthers(t *testing.T) {
	call := []guard.Effect{callServer{"github", "merge"}}
	for _, tt := range []struct {
		mode             string
		allow, ask, deny string
		effects          []guard.Effect
		want             guard.Action
		rule             string
	}{
		{settings.ModeDefault, "", "", "", call, guard.Ask, "mode default"},
		{settings.ModePlan, "mcp__github", "", "", call, guard.Deny, "mode plan"},
		{settings.ModeDontAsk, "", "", "", call, guard.Deny, "mode dontAsk"},
		{settings.ModeBypass, "", "", "", call, guard.Allow, "mode bypassPermissions"},
		{settings.ModeDefault, "mcp__github__*", "", "", call, guard.Allow, "mcp__github__*"},
		{settings.ModeBypass, "mcp__github__merge", "mcp__github__me*", "", call, guard.Ask, "mcp__github__me*"},
		{settings.ModeBypass, "mcp__github__merge", "", "mcp__github", call, guard.Deny, "mcp__github"},
		{settings.ModeBypass, "", "", "Proxy", call, guard.Deny, "Proxy"},
		{settings.ModeDefault, "mcp__gitlab", "", "", call, guard.Ask, "mode default"},
		{settings.ModeBypass, "", "", "", append(call, silent{}), guard.Deny, ""},
		{settings.ModeBypass, "", "", "", append(call, nil), guard.Deny, ""},
		{settings.ModePlan, "", "", "", []guard.Effect{guard.Compute{}}, guard.Allow, ""},
		{settings.ModeBypass, "", "", "", nil, guard.Deny, ""},
		{settings.ModeBypass, "", "", "", []guard.Effect{guard.Exec{Text: "true"}, guard.Exec{Text: "false"}}, guard.Deny, ""},
		{settings.ModeBypass, "", "", "", []guard.Effect{&guard.Exec{Text: "true"}}, guard.Deny, ""},
	} {
		entries := func(text string) []settings.Entry {
			if text == "" {
				return nil
			}
			return []settings.Entry{{Text: text}}
		}
		p, err := guard.New(guard.Config{Roots: []string{t.TempDir()}, Settings: &settings.Settings{
			DefaultMode: tt.mode, Allow: entries(tt.allow), Ask: entries(tt.ask), Deny: entries(tt.deny),
		}})
		if err != nil {
			t.Fatal(err)
		}
		v := p.Judge(guard.Intent{Tool: "Proxy", Effects: tt.effects})
		if v.Action != tt.want || v.Rule != tt.rule {
			t.Errorf("%+v: %v by %q: %s", tt, v.Action, v.Rule, v.Error())
		}
	}
}
