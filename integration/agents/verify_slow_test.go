//go:build slow

package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// verified are the clients that are verified, with their programs, which .ci/clients names.
var verified = map[string]string{
	"claude-code": "claude", "codex": "codex", "gemini": "gemini", "copilot": "copilot", "opencode": "opencode", "kilo": "kilo", "kimi": "kimi", "cline": "cline",
	"qwen": "qwen", "continue": "cn",
}

// TestVerifyClients has each of these clients verified with its own tools and, where settings switch them off, without. Which tools it
// offers is compared with what a person looked at: go test ./integration/agents -tags slow -run TestVerifyClients -update writes it anew. A client that this
// machine is too busy for is not judged.
func TestVerifyClients(t *testing.T) {
	t.Parallel()
	for client, program := range verified {
		for _, args := range [][]string{{client}, {client, "--replace"}, {client, "--run"}} {
			if slices.Contains(args, "--replace") && slices.Contains([]string{"copilot", "kimi", "cline", "continue"}, client) { // no setting switches their tools off
				continue
			}
			if isFork(client) && !*host.Update && !samples.Whole() {
				continue
			}
			name := strings.Join(args, "")
			t.Run(name, func(t *testing.T) { // one after the other: a client that is slow is not judged
				_, env := host.ClientProgram(t, program)
				file := filepath.Join("testdata", "verify", name+".json")
				want, err := os.ReadFile(file)
				if err != nil && !*host.Update {
					t.Skip("no report to compare with")
				}
				p := newPerson(t)
				began := time.Now()
				got, problem := p.verify(t, env, args...)
				if strings.Contains(problem, "did not end within") {
					t.Skip(problem)
				}
				t.Logf("%.1f s", time.Since(began).Seconds())
				if *host.Update {
					host.Must(t, os.WriteFile(file, got, 0o644))
					return
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s (-want +got)\n%s\n%s", file, problem, diff)
				}
				if left, err := os.ReadDir(p.Home); err != nil || len(left) != 1 {
					t.Errorf("the home holds %v, %v: nothing of the user's is written", left, err)
				}
			})
		}
	}
}
