package clients

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// A Client is a program that can use an MCP server, as described in clients.json.
type Client struct {
	// Name is the client's name on the command line, such as "claude-desktop".
	Name string
	// Title is the product name.
	Title string
	// Program is the client's command; "" if it has none.
	Program string
	// Next tells the user how a change takes effect.
	Next string
	// InProject says that the client starts servers in the directory in which the user works. Otherwise roots must be
	// named.
	InProject bool
	// Format is the format of its file: "json", "jsonc", "toml" or "yaml". Empty: the file is not edited, and the lines
	// to add are printed.
	Format string
	// Container is the key that holds the servers.
	Container string
	// Files are the possible paths of the user's file by system, the most specific first; "" stands for all other
	// systems.
	Files map[string][]string
	// Project is the path of the file in a project; "" if the client has none.
	Project string
	// Markers are paths whose existence shows that the client is used; nil: the directories of Files.
	Markers []string
	// Stdio and HTTP are the templates of the entry; HTTP is nil if the file cannot have a URL.
	Stdio, HTTP object
	// With are the tools that a host serves on request only and the client has no equivalent of. ToolSearch is the mode
	// of the host's tool search for this client; empty: the default. It is "off" for a client that finds deferred tools
	// itself.
	With       []string
	ToolSearch string
	// Token is how the file refers to the environment variable of the token; "" if it cannot.
	Token string
	// BareVariables says that it replaces $NAME in entries, as a shell does.
	BareVariables bool
	// PrivateNote says what else must be done so that an entry with an address outside of the Internet works.
	PrivateNote string
	// ViaProgram says that the client's own command makes the change if it is installed, because the client rewrites its
	// file while it runs.
	ViaProgram bool
	// Replaces are the settings that switch its own tools off. Since is the version of the client with which they were
	// tried, and Keeps says what it offers nevertheless.
	Replaces     []Replacement
	Since, Keeps string
	// Verifies says how the client is run with a fake model; nil if it cannot be, and then Unverified says why.
	Verifies   *Trial
	Unverified string
	// Runs says what the client needs to run as a whole in a sandbox; nil if that is not known.
	Runs *Run
}

// TokenVariable is the environment variable that entries for HTTP refer to for the bearer token.
const TokenVariable = "TOOLHOST_TOKEN"

// Find returns the client with a name, a title or a program. Case, spaces and hyphens do not matter.
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

// userFiles returns the possible paths of the user's file.
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

// ProjectFile returns the path of the client's file in a project; ok is false if it has none.
func (c Client) ProjectFile(e Env, dir string) (path string, ok bool) {
	return dir + e.path("/"+c.Project), c.Project != ""
}

// Present reports whether the client seems to be installed here.
func (c Client) Present(e Env) bool {
	if c.Program != "" && e.LookPath(c.Program) != "" {
		return true
	}
	return slices.ContainsFunc(c.signs(e), e.Exists)
}

// signs returns paths. One of them exists on a machine that has the client.
func (c Client) signs(e Env) []string {
	signs := e.paths(c.Markers)
	if c.Markers == nil {
		for _, file := range userFiles(c, e) {
			signs = append(signs, e.dir(file))
		}
	}
	return signs
}

// Editable reports whether the client's file is edited. If not, [Client.Lines] returns what to add to it.
func (c Client) Editable() bool { return c.Format != "" }

// format returns the format of the client's file. If the file is not edited, that is YAML, in which the lines are
// printed.
func (c Client) format() format {
	switch c.Format {
	case "json", "jsonc":
		return jsonFormat{strict: c.Format == "json"}
	case "toml":
		return tomlFormat{}
	}
	return yamlFormat{}
}

// TokenInClear reports whether an entry for HTTP must contain the bearer token itself.
func (c Client) TokenInClear() bool { return c.HTTP != nil && c.Token == "" }

// Note says what else must be done so that the entry of a server works, or returns "".
func (c Client) Note(s Server) string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	host, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() && !ip.IsPrivate() || ip == nil &&
		strings.Contains(host, ".") {
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
	// URL is the address of a host that is already running; with it Command and Args are not used.
	URL string
	// Token is the bearer token itself, for clients that cannot take it from the environment.
	Token string
}

// entry returns the entry of a server in the client's file.
func (c Client) entry(s Server) object {
	template := c.Stdio
	if s.URL != "" {
		template = c.HTTP
	}
	with := strings.NewReplacer("{name}", s.Name, "{command}", s.Command, "{url}", s.URL, "{token}",
		cmp.Or(c.Token, s.Token))
	return filled(template, s.Args, with).(object)
}

// Arguments returns the arguments with which a client starts a host: its roots, and what the client needs.
func Arguments(c Client, roots ...string) []string { return c.arguments([]string{"stdio"}, roots) }

// RemoteArguments returns the arguments with which a client starts a relay to a target. The options and roots are
// those for the target.
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

// conflictingKeys returns the keys that only an entry with the other transport may have.
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
