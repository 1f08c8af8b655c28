package mcpserver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/auth"
)

// consultServer is a server of the old era with a prompt, and a resource whose content is its address.
const consultServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	id=${BASH_REMATCH[1]}
	case $line in
	*'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}}}' ;;
	*'"tools/list"'*) answer "$id" '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*) answer "$id" '{"content":[{"type":"text","text":"the tool ran"}]}' ;;
	*'"prompts/list"'*) answer "$id" '{"prompts":[{"name":"hi","arguments":[{"name":"a\u202e","description":"d\u200b"}]}]}' ;;
	*'"resources/list"'*) answer "$id" '{"resources":[{"uri":"a:listed","name":"one\ntoolhost-mcp://t/x"}]}' ;;
	*'"resources/templates/list"'*) answer "$id" '{"resourceTemplates":[{"uriTemplate":"a:{x}","name":"any"}]}' ;;
	*'"completion/complete"'*'"value":"x"'*) answer "$id" '{"completion":{"values":["xyz"]}}' ;;
	*'"wrong"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"wrong"}}\n' "$id" ;;
	*'"prompts/get"'*) answer "$id" '{"messages":[{"role":"user","content":{"type":"text","text":"the prompt ran"}}]}' ;;
	*'a:gone'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"gone"}}\n' "$id" ;;
	*'a:broken'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"broken"}}\n' "$id" ;;
	*'a:large'*) answer "$id" '{"contents":[{"uri":"a:large","text":"'"$(head -c 5000000 /dev/zero | tr '\0' x)"'"}]}' ;;
	*'"resources/read"'*) [[ $line =~ \"uri\":\"([^\"]*) ]]; answer "$id" '{"contents":[{"uri":"'"${BASH_REMATCH[1]}"'","text":"the content of '"${BASH_REMATCH[1]}"'"}]}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
	esac
done
`

// consultConfig writes the configuration of the server s.
func consultConfig(t *testing.T) (config string) {
	t.Helper()
	file, config := filepath.Join(t.TempDir(), "server.sh"), filepath.Join(t.TempDir(), "servers.json")
	writeFile(t, file, consultServer)
	writeFile(t, config, fmt.Sprintf(`{"mcpServers":{"s":{"command":"bash","args":[%q],"sandbox":false}}}`, file))
	return config
}

// consulted opens a host with the server s, whose prompts and resources are known.
func consulted(t *testing.T, change func(*Config)) *pipeClient {
	t.Helper()
	config := consultConfig(t)
	c := startPipe(t, nil, func(c *Config) {
		c.MCPConfig, c.With = []string{config}, []string{"ListMcpResources", "ReadMcpResource"}
		change(c)
	})
	looked := func() bool {
		return len(c.host.children.consults(LocalPrincipal).Prompts()) > 0 &&
			!c.host.tools.now().serverOf("mcp__s__hi").Unknown
	}
	for end := time.Now().Add(30 * time.Second); !looked() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return c
}

// TestTokenServers: the bearer of a token sees and uses the servers that it gives, and no other.
func TestTokenServers(t *testing.T) {
	o := openOffice(t, func(c *Config) {
		userSettings(t, map[string]any{"permissions": map[string]any{"allow": []string{"mcp__s"}}})
		c.MCPConfig, c.With = []string{consultConfig(t)}, []string{"ListMcpResources", "ReadMcpResource"}
	})
	for end := time.Now().Add(30 * time.Second); !o.host.tools.has("mcp__s__run") &&
		time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		o.host.gateway.Look()
	}
	const listed = "toolhost-mcp://s/a:listed"
	request := func(method, params string) webRequest {
		return modern(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":%q,"params":{%s%s}}`, method, params, modernMeta))
	}
	for name, tt := range map[string]struct {
		servers []string
		may     bool
	}{"all": {nil, true}, "this": {[]string{"t", "s"}, true}, "other": {[]string{"t"},
		false}, "none": {[]string{}, false}} {
		bearer, _, err := auth.AddToken(o.tokens, name, auth.All, 0, "", tt.servers...)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range []struct {
			req         webRequest
			named, want string
		}{
			{request("tools/list", ""), "", `"mcp__s__run"`},
			{request("prompts/list", ""), "", `"mcp__s__hi"`},
			{request("prompts/get", `"name":"mcp__s__hi",`), "mcp__s__hi", "the prompt ran"},
			{request("resources/list", ""), "", listed},
			{request("resources/templates/list", ""), "", "toolhost-mcp://s/a:{x}"},
			{request("resources/read", `"uri":"`+listed+`",`), listed, "the content of"},
			{callAs("mcp__s__run", "{}"), "mcp__s__run", "the tool ran"},
			{callAs("ListMcpResources", "{}"), "ListMcpResources", listed},
			{callAs("ReadMcpResource", `{"uri":"`+listed+`"}`), "ReadMcpResource", "the content of"},
		} {
			if _, body := use.req.as(bearer, map[string]string{"Mcp-Name": use.named}).do(t,
				o.url); strings.Contains(body, use.want) != tt.may {
				t.Errorf("%s, %s: %s", name, use.req.body, body)
			}
		}
	}
}

// TestConsultHooks: what a hook makes of a prompt or a resource is what the client gets.
func TestConsultHooks(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	const prompt, resource = `"prompts/get","params":{"name":"mcp__s__hi"`, `"resources/read","params":{"uri":"toolhost-mcp://s/a:listed"`
	for _, tt := range []struct{ name, says, prompt, resource string }{
		{"replaced", `{"hookSpecificOutput": {"updatedToolOutput": "changed"}}`, `"text":"changed"`, `"text":"changed"`},
		{"an objection", `{"decision": "block", "reason": "not this"}`, "objects: not this", "objects: not this"},
		{"no change", `{}`, "the prompt ran", `"text":"the content of a:listed"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := consulted(t, func(*Config) {
				hook := map[string]any{"matcher": "mcp__s__hi|ReadMcpResource",
					"hooks": []any{map[string]any{"type": "command", "command": "echo '" + tt.says + "'"}}}
				userSettings(t, map[string]any{"hooks": map[string]any{"PostToolUse": []any{hook}}})
			})
			for request, want := range map[string]string{prompt: tt.prompt, resource: tt.resource} {
				c.send(`{"jsonrpc":"2.0","id":1,"method":` + request + `,` + modernMeta + `}}`)
				text, err := json.Marshal(c.receive())
				if err != nil || !strings.Contains(string(text), want) || tt.name == "replaced" &&
					(strings.Contains(string(text), "the prompt ran") || strings.Contains(string(text), "the content")) {
					t.Errorf("got %s, want %q", text, want)
				}
			}
		})
	}
}

// TestConsult: prompts and resources of other servers are listed and got by rules and rights, by clients of both eras and by tools.
func TestConsult(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	const listed, other = "toolhost-mcp://s/a:listed", "toolhost-mcp://s/a:other"
	read := func(uri string) string { return fmt.Sprintf(`"resources/read","params":{"uri":%q`, uri) }
	tool := func(name, args string) string {
		return fmt.Sprintf(`"tools/call","params":{"name":%q,"arguments":%s`, name, args)
	}
	complete := func(value string) string {
		return `"completion/complete","params":{"ref":{"type":"ref/prompt","name":"mcp__s__hi"},"argument":{"name":"a","value":"` + value + `"}`
	}
	const prompts, prompt, resources, templates = `"prompts/list","params":{`, `"prompts/get","params":{"name":"mcp__s__hi"`, `"resources/list","params":{`, `"resources/templates/list","params":{`
	type asking struct{ request, want, not string }
	for _, rules := range []struct {
		allow, deny []string
		tests       []asking
	}{
		{nil, nil, []asking{
			{prompts, `"name":"mcp__s__hi"`, `"mcp__"`},
			{prompts, `[{"name":"a","description":"d"}]`, ""},
			{prompt, "the prompt ran", ""},
			{`"prompts/get","params":{"name":"mcp__s__ho"`, "-32602", ""},
			{`"prompts/get","params":{"name":"mcp__"`, "there is no prompt", ""},
			{resources, listed, ""},
			{templates, "toolhost-mcp://s/a:{x}", "{+address}"},
			{read(listed), "the content of a:listed", ""},
			{read(other), "No rule allows", "the content"},
			{read("toolhost-mcp://t/x"), "-32602", "-32603"},
			{`"prompts/get","params":{"name":"mcp__s__hi","arguments":{"a":"wrong"}`, `"Code":-32602`, ""},
			{complete("x"), `"values":["xyz"]`, ""},
			{complete("y"), `"values":[]`, ""},
			{`"completion/complete","params":{"ref":{"type":"ref/resource","uri":"toolhost-mcp://s/a:{x}"},"argument":{"name":"x","value":"x"}`, `"values":["xyz"]`, ""},
			{`"completion/complete","params":{"ref":{"type":"ref/resource","uri":"toolhost-mcp://s/a:other"},"argument":{"name":"x","value":"x"}`, `"values":[]`, "xyz"},
			{tool("ListMcpResources", "{}"), listed, ""},
			{tool("ListMcpResources", "{}"), "  one toolhost-mcp://t/x", `\ntoolhost-mcp://t`},
			{tool("ListMcpResources", `{"server":"t"}`), "there is no server t", ""},
			{tool("ReadMcpResource", `{"server":"s","uri":"a:listed"}`), "the content of a:listed", ""},
			{tool("ReadMcpResource", `{"server":"t","uri":"`+listed+`"}`), "omit server", "the content"},
		}},
		{nil, []string{"mcp__s"}, []asking{
			{prompts, `"prompts":[]`, "hi"},
			{prompt, "there is no prompt", "ran"},
			{resources, `"resources":[]`, "listed"},
			{read(listed), "denied by a rule", "the content"},
			{complete("x"), `"values":[]`, "xyz"},
			{tool("ListMcpResources", "{}"), "No resource is listed", "listed\""},
		}},
		{nil, []string{"mcp__s__hi"}, []asking{
			{prompts, `"prompts":[]`, "hi"},
		}},
		{nil, []string{"ReadMcpResource"}, []asking{
			{read(listed), "denied by a rule", "the content"},
			{complete("x"), `"values":[]`, "xyz"},
		}},
		{[]string{"mcp__s"}, nil, []asking{
			{read(other), "the content of a:other", ""},
			{read("toolhost-mcp://s/a:large"), "over the limit of 4194304", "xxx"},
			{read("toolhost-mcp://s/a:gone"), `"Code":-32602`, ""},
			{read("toolhost-mcp://s/a:broken"), `"Code":-32603`, ""},
		}},
		{nil, []string{"mcp__s__*"}, []asking{
			{tool("ReadMcpResource", `{"uri":"`+listed+`"}`), "denied by a rule", "the content"},
		}},
	} {
		t.Run(fmt.Sprint(rules.allow, rules.deny), func(t *testing.T) {
			c := consulted(t, func(c *Config) { c.Allow, c.Deny = rules.allow, rules.deny })
			for _, tt := range rules.tests {
				comma := ","
				if strings.HasSuffix(tt.request, "{") {
					comma = ""
				}
				c.send(`{"jsonrpc":"2.0","id":1,"method":` + tt.request + comma + modernMeta + `}}`)
				text, err := json.Marshal(c.receive())
				if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), tt.want) || tt.not != "" &&
					strings.Contains(string(text), tt.not) {
					t.Errorf("%s: got %s, want %q and not %q", tt.request, text, tt.want, tt.not)
				}
			}
		})
	}
}

// TestNothingElseIsAnswered: without other servers, prompts and resources are neither declared nor answered.
func TestNothingElseIsAnswered(t *testing.T) {
	c := startPipe(t, nil)
	c.send(initialize)
	if a := c.receive(); strings.Contains(string(a.Result), `"prompts"`) ||
		strings.Contains(string(a.Result), `"resources"`) {
		t.Errorf("declared: %s", a.Result)
	}
	for _, method := range []string{"prompts/list", "prompts/get", "resources/list", "resources/templates/list",
		"resources/read", "completion/complete"} {
		c.send(`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{"name":"x","uri":"x"}}`)
		if a := c.receive(); a.Error == nil || a.Error.Code != mcp.METHOD_NOT_FOUND {
			t.Errorf("%s: %+v", method, a)
		}
	}
}
