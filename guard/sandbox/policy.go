package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// A Policy defines what the commands of one sandbox may access. All paths are absolute. Under the zero Policy a
// command can read the machine, but not reach its daemons, write anything, or use a network.
//
// If paths of different kinds lie inside each other the deeper one decides, except that Denied always wins.
type Policy struct {
	// Writable lists the files and directories a command may change: workspace
	// roots, the directory for temporary files, caches. They must exist.
	// In namespaces, commands of root have root's powers over the files of users
	// and groups, at most 64 of each, that own such a directory, and not over
	// those of other users.
	Writable []string
	// ReadOnly lists paths inside the writable ones that stay as they are:
	// .git/hooks, .claude, settings files. They, and their parents, cannot be
	// renamed either. One that is absent, or is a symbolic link, cannot be held
	// fast; [Quarantine] moves it away when it appears or changes.
	ReadOnly []string
	// Pinned lists directories and symbolic links inside the writable ones that lead to read-only paths: they cannot be
	// renamed, removed or replaced, while the content of the directories can be written. [Quarantine] restores an absent
	// one, and a link if the backend cannot protect it (only Namespaces can).
	Pinned []string
	// Denied lists files and directories no command can read or write, by any
	// program and under any of their names inside Writable. Missing ones are
	// allowed: call Sandbox.Deny when they appear.
	Denied []string
	// Masked lists what is hidden in the same way but is not subject to rules
	// about the workspace: home secrets, the host's state directory.
	Masked []string
	// Shown lists read-only exceptions inside Masked.
	Shown []string
	// Programs lists files outside of Writable that commands can neither read nor start. It adds to what an
	// [execgate.Gate] refuses: the kernel starts none of them even if a process changes what another one is about to
	// start. An attempt is still judged, by the file's name. Only Namespaces and Seatbelt enforce it.
	Programs []string
	// Private lists directories that commands have of their own in the place of the host's: /tmp. Those that lie in what
	// is denied or masked have no effect, and Landlock cannot mount them.
	Private []Private
	// Overlay, unless it is zero, drops what commands change: each directory that they write is an overlay, whose
	// changes end with the sandbox and take at most so many bytes of memory. Where the system has no overlays they
	// write in Temporary only, see [Sandbox.NoOverlay].
	Overlay int64
	// Temporary lists those of Writable, and names of Private, that programs cannot do without. Only an Overlay uses
	// it.
	Temporary []string
	// Caches lists directories of the host that commands see as they are; what commands write there goes into a
	// layer. A directory for which no layer can be made is read-only: see [Sandbox.Cached]. Only Namespaces mounts
	// them.
	Caches []Cache
	// Sockets lists Unix sockets of host programs, and directories of them, that
	// commands may connect to. All others are refused, because a daemon (docker,
	// D-Bus, an SSH agent, tmux) works outside of every limit: commands connect to
	// sockets on which a command listens. In a writable directory, a socket that is
	// listed by its own name is reached until another takes its place.
	Sockets []string
	// Files lists what commands read in the place of the host's files, even if these are masked. They cannot write it.
	// Only Namespaces mounts it; elsewhere the files are denied.
	Files []File
	// SSH is the SSH agent of commands, which outlives the sandbox; nil: they have none. Only Namespaces serves it.
	SSH *sshagent.Agent
	// Network holds the rules on connections of commands. The zero value lets them reach only each other.
	Network Network
	// Execs puts the commands under a filter that has each start of a program judged, see [Spec].Execs.
	Execs        bool
	maxProcesses int // set by tests only; 0: the default
}

// A Private directory takes the place of one of the host.
type Private struct {
	// Name is the host's directory, and Dir what commands find there, and may write.
	Name, Dir string
	// Shown names the entries of the host's directory that commands see read-only in the new one. Each has an empty mount
	// point in Dir.
	Shown []string
}

// A Cache is a directory of the host, and the layer into which commands write.
type Cache struct {
	// Name is the host's directory.
	Name string
	// Upper holds what commands have changed, and Work is an empty directory next to it that the kernel needs. No other
	// sandbox uses them at the same time. Commands must not reach them by these names, see [Policy].Masked.
	Upper, Work string
}

// maxProcesses is how many processes and threads a sandbox has room for: far above what parallel builds need and far
// below what brings a machine to a stand. It holds with namespaces on Linux 6.14 and later.
const maxProcesses = 4096

// Network says which hosts commands can reach. The zero value is a loopback
// interface of the sandbox's own and nothing else.
type Network struct {
	// AllowedDomains lists what the proxy connects to: "example.com" is that
	// host, "*.example.com" every host below it, "*" every host; a port may
	// follow (":443"). Addresses of private networks and of this machine are
	// refused even for allowed names, unless an entry is that address itself
	// or AllowPrivate is set.
	AllowedDomains []string
	// DeniedDomains has the same form and wins over AllowedDomains.
	DeniedDomains []string
	// AllowPrivate lets allowed names resolve to addresses of private networks
	// (RFC 1918, 4193 and 6598), not to those of this machine or its link.
	AllowPrivate bool
	// PortRecords is the directory in which hosts record the ports they listen on with [RecordPort]; "" if there is none.
	PortRecords string
	// Secrets are put into requests to their hosts, and commands never have them. Each has a sentinel of its own. They
	// need Namespaces: elsewhere, commands have neither values nor sentinels.
	Secrets []Secret
}

// A Secret is put into requests of commands that have its sentinel.
type Secret = proxy.Secret

// MinSecret is the length of the shortest secret.
const MinSecret = proxy.MinSecret

// A File is what commands read at the name of a file that exists.
type File struct {
	Path    string // of the host
	Content string
}

// without returns what a backend makes of p: without overlays commands write temporary directories only, and files
// that it cannot replace are denied.
func (p Policy) without(b Backend) Policy {
	if b != Namespaces {
		for _, f := range p.Files {
			p.Denied = append(slices.Clip(p.Denied), f.Path)
		}
	}
	if p.Overlay > 0 && b != Namespaces {
		lasting := func(path string) bool { return !slices.Contains(p.Temporary, path) }
		p.Writable = slices.DeleteFunc(slices.Clone(p.Writable), lasting)
	}
	return p
}

// rules returns the rules for the proxy.
func (n Network) rules() proxy.Rules {
	return proxy.Rules{AllowedDomains: n.AllowedDomains, DeniedDomains: n.DeniedDomains, AllowPrivate: n.AllowPrivate,
		Secrets: n.Secrets}
}

// validate reports the first thing in p that cannot be meant.
func (p Policy) validate() error {
	type list struct {
		name  string
		paths []string
	}
	lists := []list{
		{"writable", p.Writable}, {"read-only", p.ReadOnly}, {"pinned", p.Pinned}, {"denied", p.Denied},
		{"masked", p.Masked}, {"program", p.Programs}, {"shown", p.Shown}, {"socket", p.Sockets},
	}
	for _, d := range p.Private {
		if filepath.Clean(d.Name) != d.Name {
			return fmt.Errorf("sandbox: private path %q is not clean", d.Name)
		}
		lists = append(lists, list{"private", []string{d.Name, d.Dir}})
		for _, entry := range d.Shown {
			if entry == "" || entry == "." || entry == ".." || strings.ContainsAny(entry, "/\x00") {
				return fmt.Errorf("sandbox: %q is not an entry of %s", entry, d.Name)
			}
		}
	}
	for _, o := range p.Caches {
		lists = append(lists, list{"cache", []string{o.Name, o.Upper, o.Work}})
	}
	for _, f := range p.Files {
		lists = append(lists, list{"file", []string{f.Path}})
	}
	for _, l := range lists {
		for _, path := range l.paths {
			if err := validatePath(path); err != nil {
				return fmt.Errorf("sandbox: %s path %q: %w", l.name, path, err)
			}
		}
	}
	if err := proxy.Validate(p.Network.AllowedDomains); err != nil {
		return fmt.Errorf("sandbox: allowed domain %w", err)
	}
	if err := proxy.Validate(p.Network.DeniedDomains); err != nil {
		return fmt.Errorf("sandbox: denied domain %w", err)
	}
	return nil
}

func validatePath(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return errors.New("is not absolute")
	case strings.ContainsRune(path, 0):
		return errors.New("contains a NUL byte")
	case filepath.Dir(filepath.Clean(path)) == filepath.Clean(path):
		return errors.New("is the root of the file system; name the directories that are meant")
	}
	return nil
}
