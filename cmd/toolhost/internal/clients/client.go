package clients

import (
	"fmt"
	"slices"
	"strings"
)

// A Client is a program that can use an MCP server.
type Client struct {
	// Name is what the user calls the client on the command line, such as "claude-desktop".
	Name string
	// Title is the name its maker gives it.
	Title string
	// Next says what must be done for a change to count.
	Next string
	// InProject reports that the client starts servers in the directory the user works in. Where it does not,
	// roots must be named.
	InProject bool

	format    format // nil: the file is not edited, the lines are printed
	container string // the key that holds the servers
	// files are the places of the user's file, the most telling first.
	files func(Env) []string
	// project is the file below a project's directory; empty when the client has none.
	project []string
	// markers are paths that exist where the client is used; nil: the directories of files.
	markers func(Env) []string
	// program is the client's command, where it has one.
	program string
	// stdio and http make the entry; http is nil when the file cannot name a URL.
	stdio, http func(Server) object
	// secret is how the file refers to an environment variable in a header; empty when it cannot.
	secret string
	// note is what else must be done for an entry to work; nil: nothing.
	note func(Server) string
	// viaProgram makes the change through the client's own command where that is installed, because the
	// client itself rewrites its file while it runs.
	viaProgram bool
}

// TokenVariable is the environment variable that entries for HTTP refer to for the bearer token.
const TokenVariable = "TOOLHOST_TOKEN"

// callTimeout is how long a client may wait for one call, in seconds. Commands run for ten minutes at most.
const callTimeout = 600

// All returns the clients that are known, by name.
func All() []Client {
	return []Client{
		antigravity(), claudeCode(), claudeDesktop(), codex(), copilot(), cursor(), devin(), gemini(), goose(), libreChat(), opencode(), vsCode(),
		windsurf(), zed(),
	}
}

// Find returns the client of a name. Letter case, blanks and hyphens do not count.
func Find(name string) (Client, error) {
	folded := fold(name)
	var names []string
	for _, c := range All() {
		if fold(c.Name) == folded || fold(c.Title) == folded {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Client{}, fmt.Errorf("there is no client %q; known are %s", name, strings.Join(names, ", "))
}

func fold(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// UserFile is where the client's own file is, or would be.
func (c Client) UserFile(e Env) string {
	if c.files == nil {
		return ""
	}
	all := c.files(e)
	if i := slices.IndexFunc(all, e.Exists); i >= 0 {
		return all[i]
	}
	return all[0]
}

// ProjectFile is the client's file in a project; ok is false when it has none.
func (c Client) ProjectFile(e Env, dir string) (path string, ok bool) {
	if len(c.project) == 0 {
		return "", false
	}
	return e.join(append([]string{dir}, c.project...)...), true
}

// Present reports whether the client seems to be installed here.
func (c Client) Present(e Env) bool {
	if c.program != "" && e.LookPath(c.program) != "" {
		return true
	}
	var signs []string
	switch {
	case c.markers != nil:
		signs = c.markers(e)
	case c.files != nil:
		for _, file := range c.files(e) {
			signs = append(signs, e.dir(file))
		}
	}
	return slices.ContainsFunc(signs, e.Exists)
}

// Editable reports whether the client's file is edited; if not, [Client.Lines] are what it should say.
func (c Client) Editable() bool { return c.format != nil }

// TokenInClear reports whether an entry for HTTP must hold the bearer token itself.
func (c Client) TokenInClear() bool { return c.http != nil && c.secret == "" }

// Note is what else must be done for the entry of a server to work; empty when nothing.
func (c Client) Note(s Server) string {
	if c.note == nil {
		return ""
	}
	return c.note(s)
}

// A Server is what a client is told of toolhost.
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

// entry is what the client's file says of a server.
func (c Client) entry(s Server) object {
	if s.URL != "" {
		return c.http(s)
	}
	return c.stdio(s)
}

// bearer is the header that carries the token.
func (c Client) bearer(s Server) field {
	value := c.secret
	if value == "" {
		value = s.Token
	}
	return field{key: "headers", value: object{{key: "Authorization", value: "Bearer " + value}}}
}

// conflictingKeys are the keys that an entry of the other transport may have and this one must not.
func (c Client) conflictingKeys(s Server) []string {
	if c.http == nil {
		return nil
	}
	mine, other := c.stdio, c.http
	if s.URL != "" {
		mine, other = other, mine
	}
	var keys []string
	for _, f := range other(s) {
		if _, kept := mine(s).get(f.key); !kept {
			keys = append(keys, f.key)
		}
	}
	return keys
}
