package settings

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/tailscale/hujson"
)

// keyServers holds other MCP servers. keyImport names sources of further servers.
const (
	keyServers = "mcpServers"
	keyImport  = "gateway.import"
)

// The values of [serverSettings].Import: .mcp.json of the roots, ~/.claude.json, and the entries of that file for the
// roots.
const (
	importProject = "project"
	ImportUser    = "user"
	ImportLocal   = "local"
)

// serverSettings say which other MCP servers are used. Entries of the first three are JSON.
type serverSettings struct {
	// Entries are the servers, each an object of one member: {"github": {"command": …}}.
	Entries []Entry
	// Allowed and Denied are the restrictions on servers: {"serverName": …}. An empty list of allowed servers has the
	// entry {}.
	Allowed, Denied []Entry
	// Import is where more servers are taken from.
	Import []Entry
	// Enabled and Disabled name servers of .mcp.json. AllEnabled enables all of them.
	Enabled, Disabled []Entry
	AllEnabled        bool
}

func serverKeys() []key {
	return []key{
		{name: keyServers, form: formList, raw: "object", doc: "Other MCP servers, by name, as Claude Code writes them. Their tools are served as mcp__SERVER__TOOL.",
			list: func(s *Settings) *[]Entry { return &s.Servers.Entries }},
		{name: keyImport, form: formList, from: notWorkspace, known: []string{importProject, ImportUser, ImportLocal},
			doc: "Which servers of Claude Code are served too: \"project\" (.mcp.json), \"user\" and \"local\" " +
				"(~/.claude.json).",
			list: func(s *Settings) *[]Entry { return &s.Servers.Import }},
		{name: "allowedMcpServers", form: formList, raw: "array", tightens: true, doc: "Servers that may be used: {\"serverName\"}, {\"serverCommand\"} or {\"serverUrl\"}. An empty list allows none.",
			list: func(s *Settings) *[]Entry { return &s.Servers.Allowed }},
		{name: "deniedMcpServers", form: formList, raw: "array", tightens: true, doc: "Servers that are not used, in the same form. They win over allowed ones.",
			list: func(s *Settings) *[]Entry { return &s.Servers.Denied }},
		{name: "enabledMcpjsonServers", form: formList, from: notWorkspace, doc: "Servers of .mcp.json that are used without toolhost trust.",
			list: func(s *Settings) *[]Entry { return &s.Servers.Enabled }},
		{name: "disabledMcpjsonServers", form: formList, tightens: true, doc: "Servers of .mcp.json that are not used.",
			list: func(s *Settings) *[]Entry { return &s.Servers.Disabled }},
		{name: "enableAllProjectMcpServers", form: formSwitch, from: notWorkspace, order: strict(false), def: "false", doc: "Use all servers of .mcp.json without toolhost trust.",
			set: flag(func(s *Settings) *bool { return &s.Servers.AllEnabled })},
	}
}

// rawList reads a list whose entries are JSON: the members of an object, or the elements of an array.
func (p *parser) rawList(k *key, v hujson.Value) {
	add := func(at hujson.Value, value any) {
		text, err := json.Marshal(value)
		if err == nil {
			p.lists[k.name] = append(p.lists[k.name], p.entry(at, string(text)))
		}
	}
	plain := func(v hujson.Value) json.RawMessage {
		v = v.Clone()
		v.Standardize()
		return v.Pack()
	}
	switch list := v.Value.(type) {
	case *hujson.Object:
		if k.raw == "object" {
			for _, m := range list.Members {
				add(m.Name, map[string]json.RawMessage{literal(m.Name): plain(m.Value)})
			}
			return
		}
	case *hujson.Array:
		if k.raw == "array" {
			for _, el := range list.Elements {
				add(el, plain(el))
			}
			if len(list.Elements) == 0 {
				add(v, struct{}{})
			}
			return
		}
	}
	p.wrongType(k.name, v, "an "+k.raw)
	if k.tightens { // in doubt no server is allowed
		add(v, struct{}{})
	}
}

// importsProject reports whether the user or the administrator imports the servers of .mcp.json, which is then a
// source.
func (cfg Config) importsProject() bool {
	files := append([]string{cfg.ManagedFile()}, cfg.Files...)
	if cfg.UserConfigDir != "" {
		files = append(files, cfg.UserFile())
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, _, err := readRegular(filepath.Clean(file))
		if err != nil {
			return false
		}
		plain, err := hujson.Standardize(text)
		var found struct {
			Gateway struct{ Import []string } `json:"gateway"`
		}
		return err == nil && json.Unmarshal(plain, &found) == nil &&
			slices.Contains(found.Gateway.Import, importProject)
	})
}
