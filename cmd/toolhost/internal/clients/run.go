package clients

import (
	"net/url"
	"slices"
	"strings"
)

// A Run says what a client needs to run as a whole in a sandbox: see toolhost run.
type Run struct {
	// Hosts are the hosts of its models and of its login.
	Hosts []string
	// URLs are the environment variables that set another address for its model.
	URLs []string
	// Layers are its configuration directories. In the sandbox each is replaced by a private directory, in which the
	// client sees the user's files read-only.
	Layers []string
	// Copies are files of the user that the client gets as writable copies, by the path of the copy in a layer.
	Copies map[string]string
	// Shared are files and directories in the layers that the client can write directly, such as sessions. A directory
	// ends in "/" and is created.
	Shared []string
	// Logins are the files in Shared with its login, which no other command may read.
	Logins []string
	// Entry is a file of the user in a layer. The client gets a copy of it with the entry of this host. Empty: Env or
	// Args have the entry.
	Entry string
	// Env are variables that are set unless the user has set them, and Args are its first arguments. In both, {file}
	// stands for a file with the entry of this host, {command} for this program and {socket} for the socket to connect
	// to. {entry} stands for the user's value, which is a configuration, with the entry added.
	Env  map[string]string
	Args []string
	// Agent says how it does a task without a person; nil if that is not known.
	Agent *Agent
}

// An Agent says how a client does a task without a person. It gets the task on its standard input. In Args, the
// element {model} stands for Model, and {resume} for Resume; in these, {model} and {id} stand for the values.
type Agent struct {
	Args, Model, Resume []string
	Parse               string // the format of its output
	Env                 map[string]string
}

// OnPlatform returns the data with paths of this platform and user. Only logins that exist are kept.
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

// Addresses returns the hosts, with ports, that the user's environment sets in place of the client's own.
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

// Filled returns the arguments and variables with their placeholders replaced.
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

// Entry returns a configuration of the client with this server. Everything else in it is from the user's configuration
// in a file or a variable, if the client has one of them.
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
