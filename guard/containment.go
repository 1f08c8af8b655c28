package guard

import (
	"os"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/settle"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// A Containment says how the kernel limits the reads and writes of a Bash command. The
// zero value limits nothing.
type Containment struct {
	// Writes says that commands can write in the boundary only.
	Writes bool
	// Denies says that commands cannot reach what Read and Edit rules deny, nor write what is protected.
	Denies bool
	// Name is the name of the backend ("namespaces", "landlock"). Why says what the backend cannot enforce and why, for
	// the refusal.
	Name, Why string
}

// Commands is the part of a policy on the caller's commands: their containment, what they see of the host, and which
// programs they may start.
type Commands struct{ p *Policy }

// Excluded reports whether the settings want the command run outside of the containment: every command in it matches
// sandbox.excludedCommands. Such a command was judged as uncontained.
func (c Commands) Excluded(e Exec) bool {
	return !c.p.data.excluded.Empty() && c.p.data.excludes(e.analysis())
}

// excludes reports whether every command of a text is excluded. In plan mode no command is.
func (k *policyData) excludes(a *command.Analysis) bool {
	if k.excluded.Empty() || len(a.Commands) == 0 || k.discards() {
		return false
	}
	for _, s := range a.Commands {
		if k.excluded.Text(s.Text) == nil {
			return false
		}
	}
	return true
}

// Discard reports whether what contained commands change is dropped, and never reaches the disk: in plan mode.
func (c Commands) Discard() bool { return c.p.data.discards() }

func (k *policyData) discards() bool { return k.mode == settings.ModePlan && k.containment().Writes }

// Containment returns the containment of the commands that this policy judges.
func (c Commands) Containment() Containment { return c.p.data.containment() }

// SameRules reports whether q is the same snapshot of the rules, for any caller.
func (p *Policy) SameRules(q *Policy) bool { return q != nil && p.data == q.data }

// Scratch returns the caller's directory for temporary files of commands, "" if there is none.
func (c Commands) Scratch() string { return c.p.data.scratch }

// Private returns the directories that the caller's commands see in place of the host's, if the containment can mount
// them.
func (c Commands) Private() privatedir.Set {
	if !c.p.data.hasPrivateDirs() {
		return nil
	}
	return c.p.data.private
}

// DeniesFiles reports whether commands are denied any file: by a rule on reading or writing, by the settings of the
// sandbox, or because files of the host itself lie where commands write.
func (c Commands) DeniesFiles() bool {
	k := c.p.data
	return k.deny.HasPaths() || !k.ask.Read.Empty() || k.files.any() || k.ownFilesWritable
}

// Hidden reports whether the file or directory at real is hidden from commands: by [Commands.Denied], or because a rule
// asks before it is read.
func (c Commands) Hidden(real string, dir bool) bool {
	return c.Denied(real, dir) || c.Asked(real, dir) != ""
}

// Asked returns the rule that asks before the file or directory at real is read, as written; "" if there is none.
func (c Commands) Asked(real string, dir bool) string {
	if r := c.p.data.ask.Read.Match(pathname.Slashed(real), dir); r != nil {
		return r.Text
	}
	return ""
}

// Denied reports whether the file or directory at real is denied to commands: by [Policy.Hidden], or by
// sandbox.filesystem.denyRead.
func (c Commands) Denied(real string, dir bool) bool {
	return c.p.Hidden(real, dir) || c.p.data.files.withholds(real, dir)
}

// ReadRule returns the deny rule on reading the file at real, as written; "" if there is none.
func (c Commands) ReadRule(real string) string {
	if r := c.p.data.deny.Read.Match(pathname.Slashed(real), false); r != nil {
		return r.Text
	}
	return ""
}

// KeepsChanges reports whether changes of protected files stay without a question: in the mode that asks nothing.
func (c Commands) KeepsChanges() bool { return c.p.data.mode == settings.ModeBypass }

// OwnOfHome returns what stands at protected names directly in the home directory and is not settled, if commands write
// that directory: see [settle.OwnOfHome]. A sandbox keeps it as it is.
func (c Commands) OwnOfHome() (own []string) {
	if !c.p.data.writesHome() {
		return nil
	}
	for _, home := range c.p.data.home.Names() {
		own = append(own, settle.OwnOfHome(pathname.Native(home))...)
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// isOwnOfHome reports whether a real path lies at or below one of [Commands.OwnOfHome].
func (k *policyData) isOwnOfHome(path string) bool {
	return withinAny(path, Commands{&Policy{data: k}}.OwnOfHome())
}

func (k *policyData) writesHome() bool {
	return slices.ContainsFunc(slices.Concat(k.outermost(), k.files.writable), func(dir string) bool {
		return slices.ContainsFunc(k.home.Names(),
			func(home string) bool { return pathname.Within(home, pathname.Slashed(dir)) })
	})
}

// AsksPersons reports whether the mode asks persons at all.
func (c Commands) AsksPersons() bool {
	return c.p.data.mode != settings.ModeBypass && c.p.data.mode != settings.ModeDontAsk
}

// Settled returns the directories, without links, whose protected files are settled after a command: those that
// commands write in a sandbox.
func (c Commands) Settled() []string {
	k := c.p.data
	paths := SandboxPaths{Writable: k.outermost()}
	k.files.widen(k, &paths)
	return slices.DeleteFunc(paths.Writable, func(dir string) bool { return dir == k.scratch })
}

// Environment returns the variables, as NAME=value, that the settings give commands.
func (c Commands) Environment() []string { return c.p.data.environment }

// PassedVariables returns which variables of the host's environment commands get. all is true if the caller is the
// user. Otherwise commands get the variables that hold no credentials and those whose names match the patterns.
func (c Commands) PassedVariables() (patterns []string, all bool) {
	return texts(c.p.data.passed), !c.p.caller.Remote
}

// SecretVariables returns the names of variables that contained commands do not get.
func (c Commands) SecretVariables() []string { return texts(c.p.data.sandbox.Credentials.EnvVars) }

// MaskedVariables returns the variables of which contained commands get a sentinel.
func (c Commands) MaskedVariables() []settings.Mask { return c.p.data.sandbox.Credentials.MaskedVars }

// SSHDestinations returns as whom contained commands log in with the person's SSH agent.
func (c Commands) SSHDestinations() (list []sshagent.Destination) {
	for _, e := range c.p.data.sandbox.Credentials.SSHAgent {
		if d, err := sshagent.ParseDestination(e.Text); err == nil { // settings have warned of others
			list = append(list, d)
		}
	}
	return list
}

// MaskedFiles returns the files of which contained commands read a copy with sentinels. The files themselves are
// hidden from commands. A file that a rule denies is not in the list.
func (c Commands) MaskedFiles() []MaskedFile {
	k := c.p.data
	return slices.DeleteFunc(slices.Clone(k.files.masked), func(m MaskedFile) bool {
		path := pathname.Slashed(m.Path)
		return k.deny.Read.Match(path, false) != nil || k.ask.Read.Match(path, false) != nil ||
			k.files.denied.MatchLeaf(path, false) != nil
	})
}

// A network is the settings on the hosts that commands may reach.
type network struct {
	// Allowed and Denied are domains; "*.example.com" means its subdomains. Denied includes the domains that WebFetch
	// rules deny.
	Allowed, Denied []string
	// Private lets allowed names resolve to addresses of private networks.
	Private bool
	// Sockets are Unix sockets of host programs that stay reachable.
	Sockets []string
	// PortRecords is the directory in which hosts record the ports that they listen on; "" if there is none.
	PortRecords string
	// Asks says whether a person is asked about hosts that neither list names.
	Asks bool
	// Publish says whether ports that commands listen on are published on the host's loopback.
	Publish bool
}

// Network returns the hosts that commands may reach.
func (c Commands) Network() network {
	n := c.p.data.sandbox.Network
	// A remote caller would open the port on another person's machine.
	publish := !c.p.caller.Remote || n.AllowLocalBinding
	if n.PublishPorts != nil {
		publish = *n.PublishPorts
	}
	sockets := texts(n.AllowUnixSockets)
	if n.AllowAllUnixSockets {
		sockets = topDirectories()
	}
	return network{
		Allowed: texts(n.AllowedDomains), Denied: append(texts(n.DeniedDomains), c.p.data.deny.Domains...),
		Private: n.AllowPrivate, Sockets: sockets, Publish: publish,
		PortRecords: c.p.data.portRecords, Asks: !n.ManagedDomainsOnly && unasked(c.p.data.mode, Ask) == Ask,
	}
}

// topDirectories returns the top-level directories, which together hold every named Unix socket.
func topDirectories() []string {
	var out []string
	entries, _ := os.ReadDir("/") // on an error no socket is allowed
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
