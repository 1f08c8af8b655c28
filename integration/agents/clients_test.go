//go:build slow

package agents

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A realClient is a client whose own program connects to toolhost and works for a model that a test plays.
type realClient struct {
	name      string // of the test
	program   string
	install   string // the client's name for toolhost install
	list      []string
	connected string                                                // what the list says of a server that answers; a client without one shows it by its work
	args      func(url string) (args, env []string)                 // of a run without a person
	config    func(p person, url string) (file string, content any) // the client's own configuration, which it has before
	first     []string                                              // what the first request with tools holds
}

var realClients = []realClient{
	{name: "claude", program: "claude", install: "claude-code", list: []string{"mcp", "list"}, connected: "Connected", args: host.ClaudeArgs, first: schemas},
	{name: "claude with its tool search", program: "claude", install: "claude-code", args: claudeSearchArgs, first: schemas},
	{name: "codex", program: "codex", install: "codex", list: []string{"mcp", "list"}, connected: "enabled", args: codexArgs, first: naming},
	{name: "gemini", program: "gemini", install: "gemini", list: []string{"mcp", "list"}, connected: "Connected", args: geminiArgs, config: geminiConfig, first: schemas},
	{name: "cline", program: "cline", install: "cline", args: clineArgs, config: clineConfig, first: schemas},
	{name: "copilot", program: "copilot", install: "copilot", list: []string{"mcp", "list"}, connected: "local", args: copilotArgs, first: schemas},
	{name: "opencode", program: "opencode", install: "opencode", list: []string{"mcp", "list"}, connected: "connected", args: opencodeArgs, first: schemas},
	{name: "qwen", program: "qwen", install: "qwen", list: []string{"mcp", "list"}, connected: "Connected", args: qwenArgs, config: qwenConfig, first: schemas},
	{name: "kilo", program: "kilo", install: "kilo", args: kiloArgs, first: schemas},
	{name: "kimi", program: "kimi", install: "kimi", args: kimiArgs, first: schemas},
}

// isFork reports whether a client is a fork of another one: Kilo Code of opencode, and Qwen Code of Gemini CLI. Those are
// tried for each commit, the forks with -samples=10.
func isFork(client string) bool { return client == "kilo" || client == "qwen" }

// TestRealClients has the clients' own programs read what toolhost install wrote, connect, and work for a model that this test
// plays. What the model is shown must be the text of the results, and what it did must be on the disk: clients differ in what
// they make of an entry and of a result, and no other program tells. It runs where TOOLHOST_CLIENTS names a directory with the
// programs, for example after
//
//	npm install --prefix DIR $(cat .ci/clients) node@22
//
// the directory DIR/node_modules/.bin.
func TestRealClients(t *testing.T) {
	t.Parallel()
	for _, c := range realClients {
		if isFork(c.name) && !samples.Whole() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			program, env := host.ClientProgram(t, c.program)
			p := newPerson(t)
			host.WriteModelFiles(t, p.Project)
			played, url := playModel(t)
			c.add(t, p, env, url)
			if c.list != nil {
				if out, _ := p.Run(t, env, program, c.list...); !strings.Contains(out, "toolhost") ||
					!strings.Contains(out, c.connected) {
					t.Errorf("%v does not say %q:\n%s", c.list, c.connected, out)
				}
			}
			c.work(t, p, program, env, played, url)
			if out, ok := p.Run(t, env, host.Binary, "uninstall", c.install); !ok {
				t.Errorf("uninstall: %s", out)
			}
			if c.list != nil {
				if out, _ := p.Run(t, env, program, c.list...); strings.Contains(out, host.Binary) {
					t.Errorf("afterwards %v still says:\n%s", c.list, out)
				}
			}
		})
	}
}

// playModel serves a model that makes [host.ModelCalls].
func playModel(t *testing.T) (played *host.Scripted, url string) {
	played = &host.Scripted{Calls: host.ModelCalls}
	server := httptest.NewServer(fakemodel.Model(played.Next))
	t.Cleanup(server.Close)
	return played, server.URL
}

// add makes the client's configuration, for a model at url, and the entry of toolhost in it.
func (c realClient) add(t *testing.T, p person, env []string, url string, flags ...string) {
	t.Helper()
	if c.config != nil {
		file, content := c.config(p, url)
		data, err := json.Marshal(content)
		host.Must(t, err)
		host.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		host.Must(t, os.WriteFile(file, data, 0o600))
	}
	if c.install == "" {
		return
	}
	if c.install == "cline" { // its hub starts the server
		flags = append(flags, "--root", p.Project)
	}
	for _, args := range [][]string{
		{"install", c.install}, {"install", c.install}, // the second time there is nothing to do
		{"install", c.install, "--root", "."}, // and this changes the entry
	} {
		args = append(args, flags...)
		if out, ok := p.Run(t, env, host.Binary, args...); !ok {
			t.Fatalf("%v: %s", args, out)
		}
	}
}

// work has the client make the calls of a model, and looks at what became of them.
func (c realClient) work(t *testing.T, p person, program string, env []string, played *host.Scripted, url string) {
	t.Helper()
	args, more := c.args(url)
	if out, ok := p.Run(t, append(env, more...), program, args...); !ok {
		t.Fatalf("%s failed:\n%s", c.program, out)
	}
	played.Check(t)
	for _, word := range c.first {
		if !strings.Contains(played.First, word) {
			t.Errorf("the first request that offers tools does not hold %q", word)
		}
	}
	for name, want := range map[string]string{"a.txt": "edited line\n", "b.txt": "b\n", ".env": "SECRET=1\n"} {
		if got, err := os.ReadFile(filepath.Join(p.Project, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
}

// claudeSearchArgs are claudeArgs for a model that has to search for tools which are not always loaded.
func claudeSearchArgs(url string) (args, env []string) {
	args, env = host.ClaudeArgs(url)
	return args, append(env, "ENABLE_TOOL_SEARCH=true")
}

// codexArgs make Codex work for a model elsewhere.
func codexArgs(url string) (args, env []string) {
	args = []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
	for _, setting := range []string{
		`model="none"`, `model_provider="none"`, `model_providers.none={name="none",base_url="` + url + `",wire_api="responses",env_key="NONE"}`,
		`tool_output_token_limit=10000`, // as for models that it knows
	} {
		args = append(args, "-c", setting)
	}
	return append(args, "go"), []string{"NONE=none"}
}

// geminiArgs make Gemini CLI work for a model elsewhere.
func geminiArgs(url string) (args, env []string) {
	return []string{"-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", "go"}, []string{
		"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=none",
	}
}

func geminiConfig(p person, _ string) (file string, content any) {
	auth := map[string]any{"auth": map[string]string{"selectedType": "gemini-api-key"}}
	return filepath.Join(p.Home, ".gemini", "settings.json"), map[string]any{"security": auth}
}

// qwenArgs make Qwen Code work for a model elsewhere. It knows no exceptions from a proxy.
func qwenArgs(url string) (args, env []string) {
	return []string{"--approval-mode", "yolo", "-p", "go"}, []string{
		"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=none", "OPENAI_MODEL=none", "HTTP_PROXY=", "HTTPS_PROXY=",
	}
}

func qwenConfig(p person, _ string) (file string, content any) {
	return filepath.Join(p.Home, ".qwen", "settings.json"), map[string]any{
		"security": map[string]any{"auth": map[string]string{"selectedType": "openai"}}, "privacy": map[string]bool{"usageStatisticsEnabled": false},
	}
}

// clineArgs make Cline work for the model that its configuration names.
func clineArgs(string) (args, env []string) { return []string{"--auto-approve", "true", "go on"}, nil }

func clineConfig(p person, url string) (file string, content any) {
	const provider = "openai-compatible"
	settings := map[string]string{"provider": provider, "apiKey": "none", "model": "none", "baseUrl": url + "/v1"}
	return filepath.Join(p.Home, ".cline/data/settings/providers.json"), map[string]any{
		"version": 1, "lastUsedProvider": provider, "modes": map[string]any{},
		"providers": map[string]any{provider: map[string]any{"settings": settings, "updatedAt": "2026-11-29T00:00:00.000Z", "tokenSource": "manual"}},
	}
}

// copilotArgs make Copilot CLI work for a model elsewhere.
func copilotArgs(url string) (args, env []string) {
	return []string{"-p", "go", "--allow-all-tools", "--allow-all-paths"}, []string{
		"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_MODEL=gpt-4.1", "COPILOT_OFFLINE=true",
	}
}

// opencodeArgs make opencode work for a model elsewhere.
func opencodeArgs(url string) (args, env []string) {
	return []string{"run", "go"}, []string{"OPENCODE_CONFIG_CONTENT=" + openaiCompatible(url),
		"OPENCODE_DISABLE_MODELS_FETCH=1"}
}

// kiloArgs make Kilo, which is made from opencode, work for a model elsewhere.
func kiloArgs(url string) (args, env []string) {
	return []string{"run", "go", "--auto"}, []string{"KILO_CONFIG_CONTENT=" + openaiCompatible(url),
		"KILO_DISABLE_MODELS_FETCH=1"}
}

// openaiCompatible is the configuration of opencode for a model elsewhere.
func openaiCompatible(url string) string {
	config, _ := json.Marshal(map[string]any{ // strings encode
		"model": "none/none", "small_model": "none/none",
		"provider": map[string]any{"none": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]string{"baseURL": url + "/v1", "apiKey": "none"},
			"models": map[string]any{"none": map[string]string{"name": "none"}},
		}},
	})
	return string(config)
}

// kimiArgs make Kimi Code work for a model elsewhere.
func kimiArgs(url string) (args, env []string) {
	return []string{"-p", "go"}, []string{
		"KIMI_MODEL_NAME=none", "KIMI_MODEL_API_KEY=none", "KIMI_MODEL_PROVIDER_TYPE=openai", "KIMI_MODEL_BASE_URL=" + url + "/v1", "KIMI_CODE_NO_AUTO_UPDATE=1",
	}
}

// firstRequests are words that the first request of a client which offers tools must hold: of our schemas, or of the instructions that
// name our tools to a model that has to search for them.
var (
	schemas = []string{"file_path", "old_string", "run_in_background", "output_mode", "content"}
	naming  = []string{"Read (read a file)", "Edit (edit a file)", "Write (write a file)", "Bash (run a shell command)",
		"Glob (find files)", "Grep (search files)"}
)
