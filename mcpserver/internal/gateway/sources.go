package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/settings"
)

// Sources are the places where servers are configured.
type Sources struct {
	Files    []string // named by the user
	Settings *settings.Settings
	Roots    []string
	Home     string
	Managed  []string // directories of the administrator
}

// Load returns the servers of all sources, and their problems. If several servers have one name, the precedence is:
// administrator, named files, user, project.
func (s Sources) Load() (entries []*Entry, problems []string) {
	var lists [][]*Entry
	add := func(list []*Entry, wrong []string) {
		lists, problems = append(lists, list), append(problems, wrong...)
	}
	for _, dir := range s.Managed {
		file := filepath.Join(dir, "managed-mcp.json")
		if _, err := os.Lstat(file); err == nil { // it replaces all other sources, even if it cannot be read
			list, wrong := readFile(file, Managed)
			return s.restricted(list), wrong
		}
	}
	add(s.written(settings.Managed))
	for _, file := range s.Files {
		add(readFile(file, User))
	}
	add(s.written(settings.User))
	add(s.imported())
	add(s.written(settings.Project))
	entries, wrong := merge(lists...)
	entries = slices.DeleteFunc(entries, (*Entry).isSelf)
	return s.restricted(entries), append(problems, wrong...)
}

// written returns the servers in the settings files of a level.
func (s Sources) written(level settings.Kind) (entries []*Entry, problems []string) {
	add := func(e settings.Entry, refused string) {
		trust, at := User, settings.User
		switch e.Kind {
		case settings.Managed:
			trust, at = Managed, settings.Managed
		case settings.Project, settings.Local:
			trust, at = Project, settings.Project
		}
		if at != level || e.Client && !isMCPJSON(e) {
			return
		}
		var servers map[string]json.RawMessage
		if err := json.Unmarshal([]byte(e.Text), &servers); err != nil {
			return
		}
		list, wrong := parseEntries(servers, e.File, trust)
		for _, server := range list {
			if server.Refused == "" && refused != "" && !(isMCPJSON(e) && s.enabled(server.Name)) {
				server.Refused = refused
			}
		}
		entries, problems = append(entries, list...), append(problems, wrong...)
	}
	for _, e := range s.Settings.Servers.Entries {
		add(e, "")
	}
	for _, e := range s.Settings.Untrusted {
		if text, ok := strings.CutPrefix(e.Text, "mcpServers: "); ok {
			e.Text = text
			add(e, fmt.Sprintf("%s belongs to a workspace that is not trusted, or has changed since: review it, run `toolhost "+
				"trust %s`, and restart", e.File, e.Root))
		}
	}
	return entries, problems
}

func isMCPJSON(e settings.Entry) bool { return filepath.Base(e.File) == ".mcp.json" }

// enabled reports whether a server of .mcp.json is used even if the workspace is not trusted.
func (s Sources) enabled(name string) bool {
	return s.Settings.Servers.AllEnabled || slices.ContainsFunc(s.Settings.Servers.Enabled,
		func(e settings.Entry) bool { return cleanName(e.Text) == name })
}

// imported returns the servers in the user's configuration of Claude Code, as far as the settings import them.
func (s Sources) imported() (entries []*Entry, problems []string) {
	imports := func(what string) bool {
		return slices.ContainsFunc(s.Settings.Servers.Import, func(e settings.Entry) bool { return e.Text == what })
	}
	if s.Home == "" || !imports(settings.ImportUser) && !imports(settings.ImportLocal) {
		return nil, nil
	}
	file := filepath.Join(s.Home, ".claude.json")
	text, err := privatefile.Read(file, maxConfig)
	if os.IsNotExist(err) {
		return nil, nil
	}
	type servers struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	var all struct {
		servers
		Projects map[string]servers `json:"projects"`
	}
	if err == nil {
		text, err = hujson.Standardize(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("the servers of %s are left out: %v", file, err)}
	}
	var lists [][]*Entry
	add := func(found servers) {
		list, wrong := parseEntries(found.Servers, file, User)
		lists, problems = append(lists, list), append(problems, wrong...)
	}
	if imports(settings.ImportLocal) {
		for _, root := range s.Roots {
			add(all.Projects[root])
		}
	}
	if imports(settings.ImportUser) {
		add(all.servers)
	}
	known := map[string]bool{}
	for _, list := range lists { // servers of a root take precedence
		for _, e := range list {
			if !known[e.Name] {
				entries = append(entries, e)
			}
		}
		for _, e := range list {
			known[e.Name] = true
		}
	}
	return entries, problems
}

// restricted refuses the servers that settings do not allow.
func (s Sources) restricted(entries []*Entry) []*Entry {
	set := s.Settings.Servers
	allowed := map[string][]settings.Entry{} // by file: each file with a list must allow the server
	for _, e := range set.Allowed {
		allowed[e.File] = append(allowed[e.File], e)
	}
	for _, server := range entries {
		if server.Refused != "" {
			continue
		}
		real, err := server.expanded()
		if err != nil { // the server cannot start
			real = server
		}
		for _, e := range set.Denied {
			if server.named(e.Text) || real.named(e.Text) {
				server.Refused = "deniedMcpServers denies it: " + e.Where()
			}
		}
		for _, list := range allowed {
			if !slices.ContainsFunc(list, func(e settings.Entry) bool { return real.named(e.Text) }) {
				server.Refused = "allowedMcpServers does not allow it: " + list[0].Where()
			}
		}
		for _, e := range set.Disabled {
			if filepath.Base(server.File) == ".mcp.json" && cleanName(e.Text) == server.Name {
				server.Refused = "disabledMcpjsonServers names it: " + e.Where()
			}
		}
	}
	return entries
}

// named reports whether an element of allowedMcpServers or deniedMcpServers matches the server.
func (e *Entry) named(element string) bool {
	var is struct {
		Name    *string  `json:"serverName"`
		Command []string `json:"serverCommand"`
		URL     *string  `json:"serverUrl"`
	}
	if json.Unmarshal([]byte(element), &is) != nil {
		return false
	}
	switch {
	case is.Name != nil:
		return cleanName(*is.Name) == e.Name
	case is.Command != nil:
		return e.Command != "" && slices.Equal(is.Command, append([]string{e.Command}, e.Args...))
	case is.URL != nil:
		return e.URL != "" && (*is.URL == e.URL || matchesURL(*is.URL, e.URL))
	}
	return false
}

// matchesURL reports whether a URL matches a pattern. It matches scheme, host and path separately, so that * in the
// host does not match a part of the path.
func matchesURL(pattern, text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		scheme, rest = "*", pattern
	}
	host, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	} else if strings.HasSuffix(rest, "*") {
		path = "*"
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	hosts := []string{name + ":" + port}
	if u.Port() == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		hosts = append(hosts, name)
	}
	after := u.EscapedPath()
	if after == "" {
		after = "/"
	}
	if u.RawQuery != "" {
		after += "?" + u.RawQuery
	}
	return wildcard(strings.ToLower(scheme), u.Scheme) && wildcard(path, after) &&
		slices.ContainsFunc(hosts, func(h string) bool { return wildcard(strings.ToLower(host), h) })
}

// wildcard reports whether a text matches a pattern in which * matches any text.
func wildcard(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:] {
		if !ok {
			return false
		}
		if part == parts[len(parts)-1] && strings.HasSuffix(rest, part) {
			return true
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && (rest == "" || strings.HasSuffix(pattern, "*"))
}
