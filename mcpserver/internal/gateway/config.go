package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// localPrincipal is the user that the host runs as.
const localPrincipal = "local"

// maxConfig is the size of a configuration file, in bytes.
const maxConfig = 4 << 20

// A Trust is the source of an entry.
type Trust uint8

// The sources of entries.
const (
	Project Trust = iota // a repository
	User                 // the user
	Managed              // the administrator
)

// An Entry is one configured server.
type Entry struct {
	Name  string `json:"-"`
	File  string `json:"-"` // the configuration file
	Trust Trust  `json:"-"`
	// Refused says why the server cannot be used. "" if it can.
	Refused string `json:"-"`

	Type          string            `json:"type,omitempty"`
	Command       string            `json:"command,omitempty"`
	Args          []string          `json:"args,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Cwd           string            `json:"cwd,omitempty"`
	URL           string            `json:"url,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	HeadersHelper string            `json:"headersHelper,omitempty"`
	Timeout       int               `json:"timeout,omitempty"` // milliseconds of a call
	AlwaysLoad    bool              `json:"alwaysLoad,omitempty"`
	OAuth         *OAuthEntry       `json:"oauth,omitempty"`
	Disabled      bool              `json:"disabled,omitempty"`

	Network    *NetworkEntry `json:"network,omitempty"`
	Roots      string        `json:"roots,omitempty"`
	Share      string        `json:"share,omitempty"`
	Parallel   []string      `json:"parallel,omitempty"`
	TrustHints *bool         `json:"trustHints,omitempty"`
	Pin        *bool         `json:"pin,omitempty"`
	Sandbox    *bool         `json:"sandbox,omitempty"`
	Sampling   bool          `json:"sampling,omitempty"`

	masks map[string]maskEntry // variables of "env" for which the process gets a sentinel
}

// An OAuthEntry is the "oauth" of an entry.
type OAuthEntry struct {
	ClientID string `json:"clientId,omitempty"` // may be the address of a page about the client
	// ClientSecret is that of a registered client: a variable, so that the file does not hold it.
	ClientSecret string   `json:"clientSecret,omitempty"`
	CallbackPort int      `json:"callbackPort,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	// Grant is set for a server that no person logs in to. With "client_credentials", the client proves its identity by
	// the secret, or by the private key in PrivateKeyFile, a PEM file; with "jwt-bearer", by the token in AssertionFile,
	// which its platform renews.
	Grant          string `json:"grant,omitempty"`
	PrivateKeyFile string `json:"privateKeyFile,omitempty"`
	AssertionFile  string `json:"assertionFile,omitempty"`
}

// scopes returns the configured scopes of a login, which replace those that the server asks for.
func (e *Entry) scopes() []string {
	if e.OAuth == nil {
		return nil
	}
	return e.OAuth.Scopes
}

// A NetworkEntry is the "network" of an entry.
type NetworkEntry struct {
	AllowedDomains []string `json:"allowedDomains,omitempty"`
}

// The types of servers.
const (
	typeStdio = "stdio"
	typeHTTP  = "http"
	typeSSE   = "sse"
)

// entryKeys are the members of an entry.
var entryKeys = strings.Fields(`type command args env cwd url headers headersHelper timeout alwaysLoad oauth disabled
	network roots share parallel trustHints pin sandbox sampling`)

// Hash returns a hash of the entry.
func (e *Entry) Hash() string {
	text, _ := json.Marshal(e) // cannot fail: e was decoded from JSON
	if len(e.masks) > 0 {
		more, _ := json.Marshal(e.masks)
		text = append(text, more...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// trustsHints reports whether the annotations of tools decide which calls run concurrently and which are repeated.
func (e *Entry) trustsHints() bool {
	if e.TrustHints != nil {
		return *e.TrustHints && e.Trust != Project
	}
	return e.Trust != Project
}

func (e *Entry) pins() bool      { return e.Pin == nil || *e.Pin || e.Trust == Project }
func (e *Entry) sandboxed() bool { return e.Sandbox == nil || *e.Sandbox || e.Trust == Project }

// domains returns the hosts that the process of the server may reach.
func (e *Entry) domains() []string {
	if e.Network == nil {
		return nil
	}
	return e.Network.AllowedDomains
}

// workspace reports whether a process of the server sees the workspace.
func (e *Entry) workspace() bool {
	switch e.Roots {
	case "workspace":
		return true
	case "none":
		return false
	}
	return len(e.domains()) == 0
}

func (e *Entry) callTime() time.Duration {
	if e.Timeout > 0 {
		return time.Duration(e.Timeout) * time.Millisecond
	}
	return callTime
}

// CheckFile returns an error if the servers of a file cannot be read.
func CheckFile(file string) error {
	_, err := readServers(file)
	return err
}

// readServers reads mcpServers of a file.
func readServers(file string) (map[string]json.RawMessage, error) {
	text, err := privatefile.Read(file, maxConfig)
	if err != nil {
		return nil, err
	}
	plain, err := hujson.Standardize(bytes.TrimPrefix(text, []byte("\ufeff")))
	var top struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err == nil {
		err = json.Unmarshal(plain, &top)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read mcpServers in %s: %w", file, err)
	}
	return top.Servers, nil
}

// readFile reads the servers of a configuration file, and returns its problems. A missing file has no servers.
func readFile(file string, trust Trust) (entries []*Entry, problems []string) {
	servers, err := readServers(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, []string{"servers are left out: " + err.Error()}
	}
	return parseEntries(servers, file, trust)
}

// parseEntries decodes the members of mcpServers.
func parseEntries(servers map[string]json.RawMessage, file string, trust Trust) (entries []*Entry, problems []string) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		e := &Entry{Name: cleanName(name), File: file, Trust: trust}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(servers[name], &members); err == nil {
			for _, key := range slices.Sorted(maps.Keys(members)) {
				if !slices.Contains(entryKeys, key) {
					problems = append(problems, fmt.Sprintf("%s: the server %s has the unknown key %q%s", file, name,
						key, nearest(key, entryKeys)))
				}
			}
		}
		if err := json.Unmarshal(servers[name], e); err != nil {
			e.Refused = fmt.Sprintf("cannot decode its entry in %s: %s", file, entryFault(err))
		} else if why := e.check(name); why != "" {
			e.Refused = why
		}
		if e.Sampling {
			problems = append(problems, fmt.Sprintf("%s: the server %s has sampling, which is not supported: its requests are "+
				"refused", file, name))
		}
		entries = append(entries, e)
	}
	return entries, problems
}

// entryFault returns what is wrong with an entry that cannot be decoded.
func entryFault(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err.Error()
	case wrong.Field == "":
		return fmt.Sprintf("it is of the kind %s: an object is expected", wrong.Value)
	}
	return fmt.Sprintf("%q is of the kind %s: another one is expected", strings.TrimPrefix(wrong.Field, "plain."), wrong.Value)
}

// check sets the type of the entry, and returns why the entry cannot be used, or "".
func (e *Entry) check(name string) string {
	if e.Type == "" {
		if e.Type = typeStdio; e.Command == "" && e.URL != "" {
			e.Type = typeHTTP
		}
	}
	if e.Type == "streamable-http" || e.Type == "streamableHttp" {
		e.Type = typeHTTP
	}
	switch {
	case strings.Contains(e.Name, "__"), strings.HasPrefix(e.Name, "_"), strings.HasSuffix(e.Name,
		"_"), e.Name == "", e.Name == "toolhost":
		return fmt.Sprintf("a server cannot be named %q: use letters, digits, - and single _ within the name, and not "+
			"toolhost", name)
	case e.Disabled:
		return "it is disabled in its entry"
	case e.Type == typeSSE:
		return `the type "sse" is not supported: use the server's streamable HTTP address with "type": "http"`
	case e.Type != typeStdio && e.Type != typeHTTP:
		return fmt.Sprintf(`its type is %q: "stdio" or "http" is expected`, e.Type)
	case e.Type == typeStdio && e.Command == "":
		return `it has no "command"`
	case e.Type == typeHTTP && e.URL == "":
		return `it has no "url"`
	case e.Roots != "" && e.Roots != "workspace" && e.Roots != "none":
		return fmt.Sprintf(`its "roots" are %q: "workspace" or "none" is expected`, e.Roots)
	case e.Share != "" && e.Share != "scope" && e.Share != "caller" && e.Share != "host":
		return fmt.Sprintf(`its "share" is %q: "scope", "caller" or "host" is expected`, e.Share)
	case e.checkMasks() != "":
		return e.checkMasks()
	case e.Timeout < 0:
		return fmt.Sprintf(`its "timeout" is %d milliseconds: a positive number is expected`, e.Timeout)
	}
	return ""
}

// merge combines the entries of several sources. The first entry of a name is used. If cleanName makes two names of
// one file equal, both are refused.
func merge(lists ...[]*Entry) (all []*Entry, problems []string) {
	known := map[string]*Entry{}
	for _, list := range lists {
		for _, e := range list {
			first := known[e.Name]
			switch {
			case first == nil:
				known[e.Name] = e
				all = append(all, e)
			case first.File == e.File:
				first.Refused = fmt.Sprintf("two servers in %s have the name %s: rename one", e.File, e.Name)
			default:
				problems = append(problems, fmt.Sprintf("the server %s in %s is left out: %s has one with the same name", e.Name,
					e.File, first.File))
			}
		}
	}
	return all, problems
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// expanded returns the entry with its variables replaced. The error names a variable that is not set. It contains no
// values.
func (e *Entry) expanded() (*Entry, error) {
	var missing string
	expand := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(ref string) string {
			m := reference.FindStringSubmatch(ref)
			if value, ok := os.LookupEnv(m[1]); ok && value != "" {
				return value
			}
			if m[2] != "" {
				return m[2][2:]
			}
			missing = m[1]
			return ""
		})
	}
	out := *e
	out.Command, out.URL, out.Args = expand(e.Command), expand(e.URL), nil
	for _, arg := range e.Args {
		out.Args = append(out.Args, expand(arg))
	}
	values := func(in map[string]string) map[string]string {
		all := map[string]string{}
		for name, value := range in {
			all[name] = expand(value)
		}
		return all
	}
	out.Env, out.Headers = values(e.Env), values(e.Headers)
	out.masks = map[string]maskEntry{}
	for name, mask := range e.masks {
		out.masks[name] = maskEntry{mask.Hosts, expand(mask.Value)}
	}
	if e.OAuth != nil {
		own := *e.OAuth
		own.ClientSecret, own.PrivateKeyFile, own.AssertionFile = expand(own.ClientSecret), expand(own.PrivateKeyFile),
			expand(own.AssertionFile)
		out.OAuth = &own
	}
	if missing != "" {
		return nil, fmt.Errorf("the variable %s in its entry in %s is not set: set it, or use ${%s:-DEFAULT}", missing,
			e.File, missing)
	}
	if out.Type == typeHTTP {
		if u, err := url.Parse(out.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf(`its "url" in %s is not an http or https URL`, e.File)
		}
		if err := out.OAuth.check(out.Trust); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// isSelf reports whether an entry starts this program.
func (e *Entry) isSelf() bool {
	self, err := os.Executable()
	if err != nil || e.Command == "" {
		return false
	}
	found, err := e.program()
	if err != nil {
		return false
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(self)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// nearest returns a hint with the most similar name, or "".
func nearest(name string, known []string) string {
	best, distance := "", 1+len(name)/3
	slices.Sort(known)
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k)); d <= distance &&
			(best == "" || d < distance) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}
