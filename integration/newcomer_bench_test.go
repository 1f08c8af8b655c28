package integration

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
)

// BenchmarkNewcomer is the clock of a newcomer: from the npm package, or from go install, to the first Read by Claude Code for a model
// that this program plays. The goal from the npm package is 20 s on a quiet machine. It runs where TOOLHOST_CLIENTS names a directory
// with Claude Code, as in [TestRealClients]:
//
//	TOOLHOST_CLIENTS=DIR/node_modules/.bin go test ./integration -run '^$' -bench Newcomer -benchtime 1x
func BenchmarkNewcomer(b *testing.B) {
	program, env := clientProgram(b, "claude")
	b.Run("npm", func(b *testing.B) {
		file := filepath.Join(packNpm(b), "toolhost-"+packageVersion+".tgz")
		newcomer(b, program, env, func(p person) string {
			npm := append(env, "npm_config_registry="+nowhere, "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false")
			if out, ok := p.run(b, npm, "npm", "install", "--global", "--prefix", p.home, file); !ok {
				b.Fatal(out)
			}
			return filepath.Join(p.home, "bin", "toolhost")
		})
	})
	b.Run("go install", func(b *testing.B) {
		newcomer(b, program, env, func(p person) string {
			b.StopTimer()
			bin := filepath.Join(p.home, "bin")
			goEnv, command := goProxy(b, "v0.1.0", bin)
			b.StartTimer()
			cmd := exec.CommandContext(b.Context(), "go", "install", command+"@v0.1.0")
			cmd.Dir, cmd.Env = p.home, goEnv
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			return filepath.Join(bin, "toolhost")
		})
	})
}

// newcomer installs toolhost, adds it to Claude Code, and has the first Read made.
func newcomer(b *testing.B, claude string, env []string, install func(person) (toolhost string)) {
	for b.Loop() {
		b.StopTimer()
		p := newPerson(b)
		writeModelFiles(b, p.project)
		played := &scripted{calls: modelCalls[:1]}
		server := httptest.NewServer(fakemodel.Model(played.next))
		b.StartTimer()

		toolhost := install(p)
		if out, ok := p.run(b, env, toolhost, "install", "claude-code"); !ok {
			b.Fatal(out)
		}
		args, more := claudeArgs(server.URL)
		if out, ok := p.run(b, append(env, more...), claude, args...); !ok {
			b.Fatal(out)
		}

		b.StopTimer()
		server.Close()
		played.check(b)
		if _, err := os.Stat(toolhost); err != nil {
			b.Error(err)
		}
		b.StartTimer()
	}
}
