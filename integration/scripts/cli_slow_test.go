//go:build slow

package scripts

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestCommandsWithServers gives the commands that run no host for long a file with another server, which they look at themselves.
func TestCommandsWithServers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the server is a script for Bash")
	}
	p := host.NewPerson(t)
	server := filepath.Join(p.Home, "server.sh")
	host.Must(t, os.WriteFile(server, []byte(`#!/bin/bash
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"hello","description":"Greets.","inputSchema":{"type":"object"}}]}' ;;
	*) result='{"content":[{"type":"text","text":"hello there"}]}' ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "${BASH_REMATCH[1]}" "$result"
done
`), 0o700))
	file := filepath.Join(p.Home, "servers.json")
	host.Must(t, os.WriteFile(file, []byte(`{"mcpServers":{"s":{"command":`+host.QuotedJSON(server)+`}}}`), 0o600))
	with := []string{"--mcp-config", file, "--root", p.Project}
	for _, c := range []struct {
		args []string
		ok   bool
		says string
	}{
		{[]string{"tools"}, true, "mcp__s__hello  Greets."}, // the server was not looked at before
		{[]string{"check", "mcp__s__hello", "{}", "--deny", "mcp__s", "--state-dir", filepath.Join(p.Home, "other")}, false, "rule    mcp__s"}, // nor here
		{[]string{"call", "mcp__s__hello", "{}", "--allow", "mcp__s"}, true, "hello there"},
		{[]string{"tools", "--with", "AskUserQuestion,EnterWorktree"}, true, "EnterWorktree"},
		{[]string{"check", "mcp__s__other", "{}"}, false, "no such tool: mcp__s__other"},
		{[]string{"tools", "--mcp-config", filepath.Join(p.Home, "none.json")}, false, "none.json: no such file or directory"},
	} {
		if out, ok := p.Run(t, nil, host.Binary, append(c.args, with...)...); ok != c.ok ||
			!strings.Contains(out, c.says) {
			t.Errorf("%v says\n%s", c.args, out)
		}
	}
}
