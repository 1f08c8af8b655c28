package gateway

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/toolhost/toolhost/builtin"
)

// TestSecrets: a result, a prompt and a resource say that they hold secrets, and mask them if the settings say so.
func TestSecrets(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3dE5fG7", 4)
	script := strings.ReplaceAll(`
-- server --
initialize reply {"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}}}
prompts/list reply {"prompts":[{"name":"p"}]}
prompts/get reply {"messages":[{"role":"user","content":{"type":"text","text":"key TOKEN"}}]}
resources/read reply {"contents":[{"uri":"x:y","text":"key TOKEN"}]}
tools/call reply {"content":[{"type":"text","text":"key TOKEN"}],"structuredContent":{"key":"TOKEN"}}
`, "TOKEN", token)
	for _, over := range []string{typeStdio, typeHTTP} {
		b := newBench(t, txtar.Parse([]byte(script)), over)
		b.run("settle")
		for _, mask := range []bool{false, true} {
			calls := []func(env *builtin.Env) (builtin.Plan, error){
				func(env *builtin.Env) (builtin.Plan, error) { return planOf(t, b.g.Tools()[0], env) },
				func(env *builtin.Env) (builtin.Plan, error) {
					return planOf(t, b.g.Consults(localPrincipal).Prompts()[0].Def(), env)
				},
				func(env *builtin.Env) (builtin.Plan, error) {
					return b.g.Consults(localPrincipal).Read(env, "s", "x:y")
				},
			}
			for i, plan := range calls {
				env := b.env()
				env.MaskSecrets = mask
				p, err := plan(env)
				if err != nil {
					t.Fatal(err)
				}
				r, err := p.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				all := r.Text + string(marshal(r.Structured)) + string(marshal(r.Passed))
				if strings.Contains(all, token) == mask || !strings.Contains(r.Text, "1 secret (GitHub token)") {
					t.Errorf("%s, call %d, mask %v: %s", over, i, mask, all)
				}
			}
		}
	}
}

func planOf(t *testing.T, d *builtin.Def, env *builtin.Env) (builtin.Plan, error) {
	call, err := d.Bind([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return call.Plan(t.Context(), env)
}
