package clients

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// A Client is a program that can use an MCP server, as clients.json says it.
type Client struct {
	// Name is the client's name on the command line, such as "claude-desktop".
	Name string
	// Title is the product name.
	Title string
	// Program is the client's command; empty when it has none.
	Program string
	// Next tells the user how a change takes effect.
	Next string
	// InProject reports that the client starts servers in the directory the user works in. Where it does not,
	// roots must be named.
	InProject bool
	// Format is that of its file: "json", "jsonc", "toml" or "yaml". Empty: the file is not edited, the lines are printed.
	Format string
	// Container is the key that holds the servers.
	Container string
	// Files are the places of the user's file by system, the most telling first; "" stands for the other systems.
	Files map[string][]string
	// Project is the file below a project's directory; empty when the client has none.
	Project string
	// Markers are paths whose existence shows that the client is used; nil: the directories of Files.
	Markers []string
	// Stdio and HTTP are the entry; HTTP is nil when the file cannot name a URL.
	Stdio, HTTP object
	// With are the tools that a host serves on request only and the client has none for. ToolSearch is the mode of a
	// host's tool search for it; empty: the default. "off" is for a client that finds deferred tools itself.
	With       []string
	ToolSearch string
	// Token is how the file refers to the environment variable of the token; empty when it cannot.
	Token string
	// BareVariables: it replaces $NAME in entries, as a shell does.
	BareVariables bool
	// PrivateNote is what else must be done for an entry with an address that is not on the Internet to work.
	PrivateNote string
	// ViaProgram: the change is made by the client's own command where that is installed, because the client itself
	// rewrites its file while it runs.
	ViaProgram bool
	// Replaces are the settings that switch its own tools off. Since is the version of the client that they were tried
	// with, and Keeps what it offers in spite of them.
	Replaces     []Replacement
	Since, Keeps string
	// Verifies is how the client is run for a fake model; nil: it cannot be, and Unverified says why.
	Verifies   *Trial
	Unverified string
	// Runs is what the client needs that runs as a whole in a sandbox; nil: it is not known.
	Runs *Run
}

// TokenVariable is the environment variable that entries for HTTP refer to for the bearer token.
const TokenVariable = "TOOLHOST_TOKEN"

// Find returns the client of a name, a title or a program. Letter case, blanks and hyphens do not count.
func Find(name string) (Client, error) {
	folded := fold(name)
	var names []string
	for _, c := range All() {
		if folded != "" && (fold(c.Name) == folded || fold(c.Title) == folded || fold(c.Program) == folded) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Client{}, fmt.Errorf("there is no client %q; known are %s", name, strings.Join(names, ", "))
}

func fold(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// userFiles are the places of the user's file.
func userFiles(c Client, e Env) []string {
	templates, ok := c.Files[e.OS]
	if !ok {
		templates = c.Files[""]
	}
	return e.paths(templates)
}

// UserFile returns the path of the client's own file, which may not exist.
func (c Client) UserFile(e Env) string {
	all := userFiles(c, e)
	if len(all) == 0 {
		return ""
	}
	if i := slices.IndexFunc(all, e.Exists); i >= 0 {
		return all[i]
	}
	return all[0]
}

// ProjectFile is the client's file in a project; ok is false when it has none.
func (c Client) ProjectFile(e Env, dir string) (path string, ok bool) {
	return dir + e.path("/"+c.Project), c.Project != ""
}

// Present reports whether the client seems to be installed here.
func (c Client) Present(e Env) bool {
	if c.Program != "" && e.LookPath(c.Program) != "" {
		return true
	}
	signs := e.paths(c.Markers)
	if c.Markers == nil {
		for _, file := range userFiles(c, e) {
			signs = append(signs, e.dir(file))
		}
	}
	return slices.ContainsFunc(signs, e.Exists)
}

// Editable reports whether the client's file is edited; if not, [Client.Lines] are what it should say.
func (c Client) Editable() bool { return c.Format != "" }

// format is that of the client's file; YAML, in which lines are printed, where it is not edited.
func (c Client) format() format {
	switch c.Format {
	case "json", "jsonc":
		return jsonFormat{strict: c.Format == "json"}
	case "toml":
		return tomlFormat{}
	}
	return yamlFormat{}
}

// TokenInClear reports whether an entry for HTTP must hold the bearer token itself.
func (c Client) TokenInClear() bool { return c.HTTP != nil && c.Token == "" }

// Note is what else must be done for the entry of a server to work; empty when nothing.
func (c Client) Note(s Server) string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	host, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() && !ip.IsPrivate() || ip == nil && strings.Contains(host, ".") {
		return ""
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ReplaceAll(c.PrivateNote, "{address}", quote(net.JoinHostPort(host, port)))
}

// A Server is the entry of toolhost in a client's file.
type Server struct {
	// Name is the key of the entry.
	Name string
	// Command is the absolute path of the binary; Args are its arguments.
	Command string
	Args    []string
	// URL is the address of a host that listens already; with it Command and Args are not used.
	URL string
	// Token is the bearer token in clear, for the clients that cannot take it from the environment.
	Token string
}

// entry returns the entry of a server in the client's file.
func (c Client) entry(s Server) object {
	template := c.Stdio
	if s.URL != "" {
		template = c.HTTP
	}
	with := strings.NewReplacer("{name}", s.Name, "{command}", s.Command, "{url}", s.URL, "{token}", cmp.Or(c.Token, s.Token))
	return filled(template, s.Args, with).(object)
}

// Arguments are those with which a client starts a host: its roots, and what the client needs.
func Arguments(c Client, roots ...string) []string { return c.arguments([]string{"stdio"}, roots) }

// RemoteArguments are those with which a client starts a relay to a target, which options and roots belong to.
func RemoteArguments(c Client, target string, options, roots []string) []string {
	return c.arguments(append([]string{"remote", target}, options...), roots)
}

func (c Client) arguments(args, roots []string) []string {
	for _, root := range roots {
		args = append(args, "--root", root)
	}
	if len(c.With) > 0 {
		args = append(args, "--with", strings.Join(c.With, ","))
	}
	if c.ToolSearch != "" {
		args = append(args, "--tool-search", c.ToolSearch)
	}
	return args
}

// conflictingKeys are the keys that an entry of the other transport may have and this one must not.
func conflictingKeys(c Client, s Server) []string {
	mine, other := c.Stdio, c.HTTP
	if s.URL != "" {
		mine, other = other, mine
	}
	var keys []string
	for _, f := range other {
		if _, kept := mine.get(f.key); !kept {
			keys = append(keys, f.key)
		}
	}
	return keys
}
