package clients

import (
	"net"
	"net/url"
	"strings"
)

// commandArgs is the plainest entry: a command and its arguments.
func commandArgs(s Server) object {
	return object{{key: "command", value: s.Command}, {key: "args", value: s.Args}}
}

// typed puts the type of the transport before the rest of an entry.
func typed(kind string, rest object) object {
	return append(object{{key: "type", value: kind}}, rest...)
}

func claudeDesktop() Client {
	const dir, file = "Claude", "claude_desktop_config.json"
	return Client{
		Name: "claude-desktop", Title: "Claude Desktop", Next: "quit Claude Desktop and start it again",
		format: jsonFormat{strict: true}, container: "mcpServers", stdio: commandArgs,
		files: func(e Env) []string {
			var files []string
			if e.OS == "windows" {
				// The packaged app (MSIX) sees a directory of its own in place of %APPDATA%.
				local := e.or("LOCALAPPDATA", e.home("AppData", "Local"))
				for _, pkg := range e.Glob(e.join(local, "Packages", "Claude_*")) {
					files = append(files, e.join(pkg, "LocalCache", "Roaming", dir, file))
				}
			}
			return append(files, e.support(dir, file))
		},
	}
}

func claudeCode() Client {
	atOnce := field{key: "alwaysLoad", value: true} // its tool search would hide the tools
	c := Client{
		Name: "claude-code", Title: "Claude Code", Next: "start a new session of Claude Code; /mcp shows the server", InProject: true,
		format: jsonFormat{strict: true}, container: "mcpServers", project: []string{".mcp.json"},
		program: "claude", viaProgram: true, secret: "${" + TokenVariable + "}",
		files: func(e Env) []string { return []string{e.join(e.or("CLAUDE_CONFIG_DIR", e.Home), ".claude.json")} },
		markers: func(e Env) []string {
			return []string{e.or("CLAUDE_CONFIG_DIR", e.home(".claude")), e.home(".claude.json")}
		},
		stdio: func(s Server) object { return append(typed("stdio", commandArgs(s)), atOnce) },
	}
	c.http = func(s Server) object {
		return typed("http", object{{key: "url", value: s.URL}, c.bearer(s), atOnce})
	}
	return c
}

func cursor() Client {
	c := Client{
		Name: "cursor", Title: "Cursor", Next: "restart Cursor, or switch the server on under Settings → MCP",
		format: jsonFormat{}, container: "mcpServers", project: []string{".cursor", "mcp.json"},
		program: "cursor", secret: "${env:" + TokenVariable + "}", stdio: commandArgs,
		files: func(e Env) []string { return []string{e.home(".cursor", "mcp.json")} },
	}
	c.http = func(s Server) object { return object{{key: "url", value: s.URL}, c.bearer(s)} }
	return c
}

func vsCode() Client {
	c := Client{
		Name: "vscode", Title: "VS Code", Next: "run “MCP: List Servers” in VS Code and start the server",
		format: jsonFormat{}, container: "servers", project: []string{".vscode", "mcp.json"},
		program: "code", secret: "${env:" + TokenVariable + "}",
		files: func(e Env) []string { return []string{e.support("Code", "User", "mcp.json")} },
		stdio: func(s Server) object { return typed("stdio", commandArgs(s)) },
	}
	c.http = func(s Server) object { return typed("http", object{{key: "url", value: s.URL}, c.bearer(s)}) }
	return c
}

// windsurf is the older agent of Windsurf, Cascade. The one that took its place is [devin].
func windsurf() Client {
	c := Client{
		Name: "windsurf", Title: "Windsurf", Next: "press refresh in the MCP panel of Cascade, or restart Windsurf; its newer agent, Devin, has a file of its own: toolhost install devin",
		format: jsonFormat{}, container: "mcpServers",
		program: "windsurf", secret: "${env:" + TokenVariable + "}", stdio: commandArgs,
		files: func(e Env) []string { return []string{e.home(".codeium", "windsurf", "mcp_config.json")} },
	}
	c.http = func(s Server) object { return object{{key: "serverUrl", value: s.URL}, c.bearer(s)} }
	return c
}

// devin is the agent of Devin Desktop, which Windsurf became, and of the Devin CLI, since its version 3000.3. Its
// documentation names no way to take a header from the environment.
func devin() Client {
	c := Client{
		Name: "devin", Title: "Devin", Next: "start a new session of Devin; devin mcp list shows the server",
		format: jsonFormat{}, container: "mcpServers", project: []string{".devin", "mcp_config.json"}, program: "devin",
		files: func(e Env) []string {
			if e.OS == "windows" {
				return []string{e.support("devin", "mcp_config.json")}
			}
			return []string{e.config("devin", "mcp_config.json")}
		},
		stdio: commandArgs,
	}
	c.http = func(s Server) object { return object{{key: "url", value: s.URL}, c.bearer(s)} }
	return c
}

// antigravity is the CLI and the editor that took the place of Gemini CLI for most accounts. Its documentation
// names no way to take a header from the environment.
func antigravity() Client {
	c := Client{
		Name: "antigravity", Title: "Antigravity", Next: "start a new session of Antigravity; agy mcp list shows the server",
		format: jsonFormat{}, container: "mcpServers", project: []string{".agents", "mcp_config.json"}, program: "agy",
		files: func(e Env) []string { return []string{e.home(".gemini", "config", "mcp_config.json")} },
		stdio: commandArgs,
	}
	c.http = func(s Server) object { return object{{key: "serverUrl", value: s.URL}, c.bearer(s)} }
	return c
}

func zed() Client {
	c := Client{
		Name: "zed", Title: "Zed", Next: "nothing: Zed reads the file again by itself; the Agent Panel's settings show the server",
		format: jsonFormat{}, container: "context_servers", project: []string{".zed", "settings.json"}, program: "zed",
		files: func(e Env) []string {
			switch e.OS {
			case "windows":
				return []string{e.support("Zed", "settings.json")}
			case "darwin":
				return []string{e.home(".config", "zed", "settings.json")}
			}
			return []string{e.config("zed", "settings.json")}
		},
		stdio: func(s Server) object {
			return append(commandArgs(s), field{key: "env", value: object{}, once: true})
		},
	}
	c.http = func(s Server) object { return object{{key: "url", value: s.URL}, c.bearer(s)} }
	return c
}

func gemini() Client {
	c := Client{
		Name: "gemini", Title: "Gemini CLI", Next: "start a new session of Gemini CLI; /mcp shows the server", InProject: true,
		format: jsonFormat{}, container: "mcpServers", project: []string{".gemini", "settings.json"},
		program: "gemini", secret: "${" + TokenVariable + "}", stdio: commandArgs,
		files: func(e Env) []string {
			return []string{e.join(e.or("GEMINI_CLI_HOME", e.Home), ".gemini", "settings.json")}
		},
	}
	c.http = func(s Server) object {
		return object{{key: "url", value: s.URL}, {key: "type", value: "http"}, c.bearer(s)}
	}
	return c
}

func copilot() Client {
	tools := field{key: "tools", value: []string{"*"}, once: true}
	atOnce := field{key: "deferTools", value: "never"} // its tool search would hide the tools
	c := Client{
		Name: "copilot", Title: "Copilot CLI", Next: "start a new session of Copilot CLI; /mcp show lists the server", InProject: true,
		format: jsonFormat{}, container: "mcpServers", project: []string{".github", "mcp.json"},
		program: "copilot", secret: "${" + TokenVariable + "}",
		files: func(e Env) []string {
			return []string{e.join(e.or("COPILOT_HOME", e.home(".copilot")), "mcp-config.json")}
		},
		stdio: func(s Server) object { return append(typed("local", commandArgs(s)), tools, atOnce) },
	}
	c.http = func(s Server) object {
		return typed("http", object{{key: "url", value: s.URL}, c.bearer(s), tools, atOnce})
	}
	return c
}

func opencode() Client {
	enabled := field{key: "enabled", value: true, once: true}
	c := Client{
		Name: "opencode", Title: "opencode", Next: "start opencode again", InProject: true,
		format: jsonFormat{}, container: "mcp", project: []string{"opencode.json"},
		program: "opencode", secret: "{env:" + TokenVariable + "}",
		files: func(e Env) []string {
			if file := e.Getenv("OPENCODE_CONFIG"); file != "" {
				return []string{file}
			}
			return []string{e.config("opencode", "opencode.json"), e.config("opencode", "opencode.jsonc")}
		},
		stdio: func(s Server) object {
			return typed("local", object{{key: "command", value: append([]string{s.Command}, s.Args...)}, enabled})
		},
	}
	c.http = func(s Server) object {
		return typed("remote", object{{key: "url", value: s.URL}, c.bearer(s), enabled})
	}
	return c
}

func codex() Client {
	timeout := field{key: "tool_timeout_sec", value: callTimeout, once: true} // its own is 60 s
	return Client{
		Name: "codex", Title: "Codex", Next: "start a new session of Codex; codex mcp list shows the server", InProject: true,
		format: tomlFormat{}, container: "mcp_servers", project: []string{".codex", "config.toml"},
		program: "codex", secret: TokenVariable,
		files: func(e Env) []string {
			return []string{e.join(e.or("CODEX_HOME", e.home(".codex")), "config.toml")}
		},
		stdio: func(s Server) object { return append(commandArgs(s), timeout) },
		http: func(s Server) object {
			return object{{key: "url", value: s.URL}, {key: "bearer_token_env_var", value: TokenVariable}, timeout}
		},
	}
}

func goose() Client {
	extension := func(s Server, kind string, rest object) object {
		head := object{{key: "enabled", value: true, once: true}, {key: "type", value: kind}, {key: "name", value: s.Name}}
		return append(append(head, rest...), field{key: "timeout", value: callTimeout, once: true})
	}
	c := Client{
		Name: "goose", Title: "Goose", Next: "start a new session of Goose", InProject: true,
		format: yamlFormat{}, container: "extensions", program: "goose", secret: "${" + TokenVariable + "}",
		files: func(e Env) []string {
			if e.OS == "windows" {
				return []string{e.support("Block", "goose", "config", "config.yaml")}
			}
			return []string{e.config("goose", "config.yaml")}
		},
		stdio: func(s Server) object {
			return extension(s, "stdio", object{
				{key: "cmd", value: s.Command}, {key: "args", value: s.Args}, {key: "envs", value: object{}, once: true},
			})
		},
	}
	c.http = func(s Server) object {
		return extension(s, "streamable_http", object{
			{key: "uri", value: s.URL}, c.bearer(s), {key: "env_keys", value: []string{TokenVariable}},
		})
	}
	return c
}

// libreChat waits 30 s for a call unless it is told otherwise, less than a command may take in the foreground.
func libreChat() Client {
	timeout := field{key: "timeout", value: callTimeout * 1000, once: true} // in milliseconds
	c := Client{
		Name: "librechat", Title: "LibreChat", Next: "add these lines to librechat.yaml of the LibreChat server and restart it",
		container: "mcpServers", secret: "${" + TokenVariable + "}",
		stdio: func(s Server) object { return append(typed("stdio", commandArgs(s)), timeout) },
		note:  allowedAddress,
	}
	c.http = func(s Server) object {
		return append(typed("streamable-http", object{{key: "url", value: s.URL}, c.bearer(s)}), timeout)
	}
	return c
}

// allowedAddress is what librechat.yaml must say of a server that is not on the Internet: LibreChat reaches no
// other by itself.
func allowedAddress(s Server) string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	host, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() && !ip.IsPrivate() || ip == nil && strings.Contains(host, ".") {
		return ""
	}
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return "LibreChat reaches addresses of private networks only if librechat.yaml lists them (in its container, 127.0.0.1 is the container):\n\n" +
		"mcpSettings:\n  allowedAddresses: [" + quote(net.JoinHostPort(host, port)) + "]\n"
}
