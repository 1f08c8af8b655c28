package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ClientProgram is the program of a client and the environment that it gets. A proxy that is not there keeps it from
// other machines: no client waits for an answer from elsewhere.
func ClientProgram(t testing.TB, name string) (program string, env []string) {
	t.Helper()
	dir := os.Getenv("TOOLHOST_CLIENTS")
	if dir == "" {
		t.Skip("TOOLHOST_CLIENTS names no directory with the programs of clients")
	}
	program, err := exec.LookPath(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("there is no %s in %s", name, dir)
	}
	return program, []string{
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "NO_COLOR=1", "GEMINI_CLI_TRUST_WORKSPACE=true",
		"HTTP_PROXY=" + Nowhere, "HTTPS_PROXY=" + Nowhere, "NO_PROXY=127.0.0.1,localhost",
	}
}

// WriteModelFiles writes the files and the rule that ModelCalls are about.
func WriteModelFiles(t testing.TB, dir string) {
	t.Helper()
	Must(t, os.Mkdir(filepath.Join(dir, ".toolhost"), 0o755))
	for name, text := range map[string]string{
		"a.txt": "first line\n", ".env": "SECRET=1\n", "long.txt": strings.Repeat(strings.Repeat("x", 40)+"\n", 3000),
		filepath.Join(".toolhost", "toolhost.json"): `{"permissions":{"deny":["Read(.env)"]}}`,
	} {
		Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// ClaudeArgs make Claude Code work for a model elsewhere.
func ClaudeArgs(url string) (args, env []string) {
	return []string{"-p", "go", "--allowedTools", "mcp__toolhost"}, append(ClaudeEnv(url), "ENABLE_TOOL_SEARCH=false")
}

// ClaudeEnv returns the variables that point Claude Code to a model at url.
func ClaudeEnv(url string) []string {
	return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
}
