package mcpserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// skillServer is a server with a skill whose SKILL.md is "in a".
const skillServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	id=${BASH_REMATCH[1]}
	case $line in
	*'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}},"serverInfo":{"name":"s","version":"1"}}' ;;
	*'"resources/list"'*) answer "$id" '{"resources":[]}' ;;
	*'"skills/list"'*) answer "$id" '{"skills":[{"uri":"skill://good/SKILL.md","frontmatter":{"name":"good","description":"Does it."},"resources":[{"uri":"skill://good/SKILL.md","digest":"sha256:966106d452e9005f471b0015d2a902da453f82b224c094d5a7bf61a8d8ca290b","size":4}]}]}' ;;
	*'"resources/read"'*) answer "$id" '{"contents":[{"uri":"skill://good/SKILL.md","mimeType":"text/markdown","text":"in a"}]}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
	esac
done
`

// TestForeignSkills has clients over a pipe and over HTTP list, get, read and use a skill of another server. Where a
// rule denies the server there is none.
func TestForeignSkills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, entries := filepath.Join(dir, "server.sh"), filepath.Join(dir, "servers.json")
	writeFile(t, file, skillServer)
	writeFile(t, entries, fmt.Sprintf(`{"mcpServers":{"s":{"command":"bash","args":[%q],"sandbox":false}}}`, file))
	const uri = "toolhost-mcp://s/skill://good/SKILL.md"
	for _, rule := range []string{"allow", "deny"} {
		change := func(c *Config) {
			c.With, c.MCPConfig, c.ToolSearch = []string{"Skill"}, []string{entries}, "off"
			if c.Allow = []string{"mcp__s"}; rule == "deny" {
				c.Allow, c.Deny = nil, []string{"mcp__s"}
			}
		}
		pipe := startPipe(t, nil, change)
		url, _ := startWeb(t, nil, change)
		for over, ask := range map[string]func(name, request string) string{
			"a pipe": func(_, request string) string {
				pipe.send(request)
				a := pipe.receive()
				return fmt.Sprintf("%s %+v", a.Result, a.Error)
			},
			"HTTP": func(name, request string) string {
				q := modern(request)
				q.headers["Mcp-Name"] = name
				_, body := q.do(t, url)
				return body
			},
		} {
			for _, tt := range []struct{ name, method, params, allowed, denied string }{
				{"", methodSkillList, "", `"uri":"` + uri + `"`, `"skills":[]`},
				{uri, methodSkillGet, fmt.Sprintf(`"uri":%q,`, uri), `"description":"Does it."`, "there is no skill"},
				{uri, methodSkillGet, fmt.Sprintf(`"uri":%q,`, strings.Replace(uri, "good", "none", 1)), "there is no skill", "there is no skill"},
				{uri, "resources/read", fmt.Sprintf(`"uri":%q,`, uri), `"text":"in a"`, "denied by a rule"},
				{"", "tools/list", "", "- s/good: Does it.", `"name":"Skill"`},
				{"Skill", "tools/call", `"name":"Skill","arguments":{"skill":"s/good","args":"of today"},`, `in a\nArguments: of today`, "there is no skill"},
			} {
				want := map[string]string{"allow": tt.allowed, "deny": tt.denied}[rule]
				got := ask(tt.name, skillRequest(1, tt.method, tt.params))
				if !strings.Contains(got, want) || rule == "deny" && strings.Contains(got, "Does it.") {
					t.Errorf("%s, %s over %s: %s, want %s", rule, tt.method, over, got, want)
				}
			}
		}
	}
}
