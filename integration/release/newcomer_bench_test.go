//go:build slow

package release

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
	"github.com/toolhost/toolhost/integration/host"
)

// BenchmarkNewcomer is the clock of a newcomer: from the npm package, or from go install, to the first Read by Claude Code for a model
// that this program plays. The goal from the npm package is 20 s on a quiet machine. It runs where TOOLHOST_CLIENTS names a directory
// with Claude Code, as in TestRealClients:
//
//	TOOLHOST_CLIENTS=DIR/node_modules/.bin go test ./integration/release -run '^$' -bench Newcomer -benchtime 1x
func BenchmarkNewcomer(b *testing.B) {
	program, env := host.ClientProgram(b, "claude")
	b.Run("npm", func(b *testing.B) {
		file := filepath.Join(packNpm(b), "toolhost-"+packageVersion+".tgz")
		newcomer(b, program, env, func(p host.Person) string {
			npm := append(env, "npm_config_registry="+host.Nowhere, "npm_config_audit=false", "npm_config_fund=false",
				"npm_config_update_notifier=false")
			if out, ok := p.Run(b, npm, "npm", "install", "--global", "--prefix", p.Home, file); !ok {
				b.Fatal(out)
			}
			return filepath.Join(p.Home, "bin", "toolhost")
		})
	})
	b.Run("go install", func(b *testing.B) {
		newcomer(b, program, env, func(p host.Person) string {
			b.StopTimer()
			bin := filepath.Join(p.Home, "bin")
			goEnv, command := goProxy(b, "v0.1.0", bin)
			b.StartTimer()
			cmd := exec.CommandContext(b.Context(), "go", "install", command+"@v0.1.0")
			cmd.Dir, cmd.Env = p.Home, goEnv
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			return filepath.Join(bin, "toolhost")
		})
	})
}

// newcomer installs toolhost, adds it to Claude Code, and has the first Read made.
func newcomer(b *testing.B, claude string, env []string, install func(host.Person) (toolhost string)) {
	for b.Loop() {
		b.StopTimer()
		p := host.NewPerson(b)
		host.WriteModelFiles(b, p.Project)
		played := &host.Scripted{Calls: host.ModelCalls[:1]}
		server := httptest.NewServer(fakemodel.Model(played.Next))
		b.StartTimer()

		toolhost := install(p)
		if out, ok := p.Run(b, env, toolhost, "install", "claude-code"); !ok {
			b.Fatal(out)
		}
		args, more := host.ClaudeArgs(server.URL)
		if out, ok := p.Run(b, append(env, more...), claude, args...); !ok {
			b.Fatal(out)
		}

		b.StopTimer()
		server.Close()
		played.Check(b)
		if _, err := os.Stat(toolhost); err != nil {
			b.Error(err)
		}
		b.StartTimer()
	}
}
