package guard

import (
	"os"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/settings"
)

// A Containment says how the kernel limits the reads and writes of a Bash command. The
// zero value limits nothing.
type Containment struct {
	// Writes says that commands can write in the boundary only.
	Writes bool
	// Denies says that commands cannot reach what Read and Edit rules deny, nor write what is protected.
	Denies bool
	// Name is the backend's ("namespaces", "bubblewrap"); Why says what it cannot
	// do and why, for the refusal.
	Name, Why string
}

// Commands is what a policy says of its caller's commands: what holds them, what they get of the host, and which programs they may start.
type Commands struct{ p *Policy }

// Excluded reports whether the settings want the command run outside of the
// containment: every command in it is among sandbox.excludedCommands. It was
// judged as one that nothing contains.
func (c Commands) Excluded(text string) bool {
	return !c.p.data.excluded.Empty() && excludes(c.p.data.excluded, command.Analyze(text))
}

// excludes reports whether every command of a text is among those that are excluded.
func excludes(excluded *rules.Commands, a *command.Analysis) bool {
	if excluded.Empty() || len(a.Commands) == 0 {
		return false
	}
	for _, s := range a.Commands {
		if excluded.Text(s.Text) == nil {
			return false
		}
	}
	return true
}

// Containment returns what contains the commands that this policy judges.
func (c Commands) Containment() Containment { return c.p.data.containment() }

// SameRules reports whether q is the same snapshot of the rules, for any caller.
func (p *Policy) SameRules(q *Policy) bool { return q != nil && p.data == q.data }

// Scratch returns the caller's directory for temporary files of commands, "" if there
// is none.
func (c Commands) Scratch() string { return c.p.data.scratch }

// Private returns the directories that the caller's commands have of their own in the place of the host's, where what
// contains them can mount these.
func (c Commands) Private() privatedir.Set {
	if !c.p.data.hasPrivateDirs() {
		return nil
	}
	return c.p.data.private
}

// DeniesFiles reports whether any rule denies reading or writing files, or the
// settings of the sandbox deny commands some, or files of the host's own lie where
// commands write.
func (c Commands) DeniesFiles() bool {
	k := c.p.data
	return k.deny.HasPaths() || k.files.any() || k.ownFilesWritable
}

// Denied reports whether commands must not see the file or directory at real:
// [Policy.Hidden], and what sandbox.filesystem.denyRead denies.
func (c Commands) Denied(real string, dir bool) bool {
	return c.p.Hidden(real, dir) || c.p.data.files.withholds(real, dir)
}

// ReadRule returns the deny rule on reading the file at real, as it was written; "" if there is none.
func (c Commands) ReadRule(real string) string {
	if r := c.p.data.deny.Read.Match(pathname.Slashed(real), false); r != nil {
		return r.Text
	}
	return ""
}

// Environment returns the variables, as NAME=value, that the settings give commands.
func (c Commands) Environment() []string { return c.p.data.environment }

// PassedVariables says what commands get of the host's environment: all of it where the caller is the user; otherwise
// what holds no credentials, and the variables whose names match the patterns.
func (c Commands) PassedVariables() (patterns []string, all bool) {
	return texts(c.p.data.passed), !c.p.caller.Remote
}

// SecretVariables returns the names of variables that contained commands do not get.
func (c Commands) SecretVariables() []string { return texts(c.p.data.sandbox.Credentials.EnvVars) }

// A network is what the settings say of the hosts that commands may reach.
type network struct {
	// Allowed and Denied are domains; "*.example.com" means its subdomains. Denied
	// includes what WebFetch rules deny.
	Allowed, Denied []string
	// Private lets allowed names resolve to addresses of private networks.
	Private bool
	// Sockets are Unix sockets of host programs that stay reachable.
	Sockets []string
	// PortRecords is the directory in which hosts note where they listen; "": there is none.
	PortRecords string
	// Publish says that ports commands listen on are published on the host's loopback.
	Publish bool
}

// Network returns what commands may reach.
func (c Commands) Network() network {
	n := c.p.data.sandbox.Network
	publish := !c.p.caller.Remote || n.AllowLocalBinding // a remote caller's port would be opened on a machine of others
	if n.PublishPorts != nil {
		publish = *n.PublishPorts
	}
	sockets := texts(n.AllowUnixSockets)
	if n.AllowAllUnixSockets {
		sockets = topDirectories()
	}
	return network{
		Allowed: texts(n.AllowedDomains), Denied: append(texts(n.DeniedDomains), c.p.data.deny.Domains...), Private: n.AllowPrivate, Sockets: sockets, Publish: publish,
		PortRecords: c.p.data.portRecords,
	}
}

// topDirectories returns the directories that all Unix sockets with a name lie in.
func topDirectories() []string {
	var out []string
	entries, _ := os.ReadDir("/") // where there are none, no socket is opened
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, "/"+e.Name())
		}
	}
	return out
}

func texts(entries []settings.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Text)
	}
	return out
}
