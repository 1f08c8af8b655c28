package clients

import (
	"net/url"
	"slices"
	"strings"
)

// A Run is what a client needs that runs as a whole in a sandbox: see toolhost run.
type Run struct {
	// Hosts are those of its models and of its login.
	Hosts []string
	// URLs are the environment variables that name another address of its model.
	URLs []string
	// Layers are the directories of its configuration. In the sandbox there are private ones in their places, in which
	// it sees the user's files read-only.
	Layers []string
	// Copies are files of the user of which it has a copy of its own to write, by the path of the copy in a layer.
	Copies map[string]string
	// Shared are files and directories in the layers that it writes as they are, such as sessions. A directory ends in
	// "/" and is made.
	Shared []string
	// Logins are the files of Shared that hold its login, which no other command may read.
	Logins []string
	// Entry is a file of the user in a layer, of which it has a copy with the entry of this host. Empty: Env or Args
	// name the entry.
	Entry string
	// Env are variables that it gets where the user has not set them, and Args its first arguments. In both {file} is a
	// file with the entry of this host, {command} this program and {socket} what it is to connect to. {entry} is what
	// the user has set, a configuration, with the entry added.
	Env  map[string]string
	Args []string
	// Agent is how it does one task without a person; nil: it is not known.
	Agent *Agent
}

// An Agent is how a client does one task without a person. The task comes on its standard input. The element {model}
// of Args stands for Model, {resume} for Resume, in which {model} and {id} are the values.
type Agent struct {
	Args, Model, Resume []string
	Parse               string // the format of its output
	Env                 map[string]string
}

// OnPlatform returns the data with paths of this platform and user, and of logins those that exist.
func (r Run) OnPlatform(e Env) Run {
	r.Layers, r.Shared = e.paths(r.Layers), e.paths(r.Shared)
	r.Logins = slices.DeleteFunc(e.paths(r.Logins), func(path string) bool { return !e.Exists(path) })
	if r.Entry != "" {
		r.Entry = e.path(r.Entry)
	}
	copies, env := map[string]string{}, map[string]string{}
	for to, from := range r.Copies {
		copies[e.path(to)] = e.path(from)
	}
	for name, value := range r.Env {
		env[name] = e.path(value)
	}
	r.Copies, r.Env = copies, env
	return r
}

// Addresses are the hosts that the user's environment names in the place of the client's own, with their ports.
func (r Run) Addresses(e Env) (hosts []string) {
	for _, name := range r.URLs {
		u, err := url.Parse(e.Getenv(name))
		if err != nil || u.Hostname() == "" {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		hosts = append(hosts, strings.TrimSuffix(u.Hostname()+":"+port, ":"))
	}
	return hosts
}

// Filled returns arguments and variables with what stands for their placeholders.
func (r Run) Filled(e Env, entry []byte, file, command, socket string) (args, env []string) {
	with := strings.NewReplacer("{file}", file, "{command}", command, "{socket}", socket, "{entry}", string(entry))
	for _, arg := range r.Args {
		args = append(args, with.Replace(arg))
	}
	for name, value := range r.Env {
		if e.Getenv(name) == "" || value == entryText {
			env = append(env, name+"="+with.Replace(value))
		}
	}
	slices.Sort(env)
	return args, env
}

// entryText is the value of a variable that holds a configuration.
const entryText = "{entry}"

// Entry is a configuration of the client with this server: one that names no other, or that of the user in a file or
// a variable.
func (c Client) Entry(e Env, s Server) ([]byte, error) {
	var given []byte
	for name, value := range c.Runs.Env {
		if value == entryText {
			given = []byte(e.Getenv(name))
		}
	}
	if c.Runs.Entry != "" {
		t, err := readTarget(e.path(c.Runs.Entry))
		if err != nil {
			return nil, err
		}
		given = t.raw
	}
	return c.put(given, s, true)
}
