//go:build slow

package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestRelayedClients has the clients' own programs work with the tools of a far host: two of them, one for each era of the
// protocol, or all with -samples=100.
func TestRelayedClients(t *testing.T) {
	t.Parallel()
	for _, c := range realClients {
		if c.name != "claude" && c.name != "codex" && !samples.Whole() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			program, env := host.ClientProgram(t, c.program)
			p := newPerson(t)
			p.Settings(t, `{"remote": {"linger": "100ms"}}`)
			host.WriteModelFiles(t, p.Project)
			state := filepath.Join(p.Home, "state", "toolhost")
			host.FarProgram(t, state)
			t.Cleanup(func() { host.FarEnded(t, state) })
			played, url := playModel(t)
			c.add(t, p, env, url, "--root", p.Project, "--remote", "cmd:env")
			c.work(t, p, program, env, played, url)
		})
	}
}

// TestAgentClients has each client that runs agents as the agent, for a model that this test plays: it has the tools of this host, and
// works by them. TOOLHOST_RUN_ALL has those run as well whose model is reached in the same way as that of another.
func TestAgentClients(t *testing.T) {
	t.Parallel()
	for _, c := range realClients {
		usual := c.name == "claude" || c.name == "opencode"
		if !usual && (os.Getenv("TOOLHOST_RUN_ALL") == "" || !slices.Contains([]string{"codex", "gemini", "qwen"}, c.name)) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, _, env, played, url := newClientRunner(t, c)
			_, more := c.args(url)
			const window = `"foregroundWindow": "9m"` // on a busy machine a client takes longer than the usual one
			switch c.name {
			case "claude":
				p.Settings(t, `{"bash": {`+window+`}, "agent": {"runner": "claude"}}`)
			case "codex": // its arguments are not those of a person
				host.WriteIn(t, p.Home, ".codex/config.toml",
					"model = \"none\"\nmodel_provider = \"none\"\ntool_output_token_limit = 10000\n[model_providers.none]\nname = \"none\"\nbase_url = \""+url+"\"\nwire_api = \"responses\"\n")
				fallthrough
			default: // with the host of the model, and the variables with its key
				p.Settings(t, `{"bash": {`+window+`, "env": {"pass": ["*"]}}, "agent": {"runner": {"command": "`+c.program+
					`", "hosts": ["`+strings.TrimPrefix(url, "http://")+`"]}}}`)
			}
			started, err := host.StartHost(t.Context(), host.StdioModern, p.Project,
				slices.Concat(host.CleanEnv(p.Home), env, more), "--root", p.Project)
			host.Must(t, err)
			t.Cleanup(func() { _ = started.Stop() })
			h := agentHost{started, p, t}
			text, out, failed := h.call("Agent", map[string]any{"description": "a test", "prompt": "go"})
			if failed || out["status"] != "completed" || out["runner"] != c.program {
				t.Fatalf("it says\n%s", text)
			}
			played.Check(t)
			if os.Getenv("TOOLHOST_RUN_ALL") == "" {
				return
			}
			if text, out, failed = h.call("Agent", map[string]any{"description": "a test", "prompt": "again",
				"resume": out["agent_id"]}); failed || out["status"] != "completed" {
				t.Errorf("continued it says\n%s", text)
			}
		})
	}
}
