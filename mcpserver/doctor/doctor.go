// Package doctor says how a host is: what it found of its roots, rules, sandbox, shell, state and tools, and what
// would make each better.
//
// Its Go API is not stable.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// A Finding is one line of what a host says about itself.
type Finding struct {
	// Level is ok, warn or fail.
	Level string `json:"level"`
	// About names the subject of the check.
	About string `json:"about"`
	// Text says how it is.
	Text string `json:"text"`
	// Remedy says what would make it better; empty when nothing is wrong.
	Remedy string `json:"remedy,omitempty"`
}

// The levels of a finding.
const (
	LevelOK   = "ok"
	LevelWarn = "warn"
	LevelFail = "fail"
)

// A Subject is a host as it is examined.
type Subject struct {
	Roots    []string
	Settings *settings.Watcher
	// Policy has the rules of Principal, as which commands are tried.
	Policy    *guard.Policy
	Principal string
	// Missing are the denies, perhaps meant for Claude Code alone, that take tools away.
	Missing []guard.SharedDeny
	// Idle are warnings about rules that match no known tool.
	Idle []string
	Box  *builtin.Runtime
	// Tools are the names of those that are served, as the principal sees them.
	Tools []string
	// Commands says that Bash is served, whether a rule takes it away or not.
	Commands bool
	// StateDir is the state directory, and Unkept why it is not used; nil: it is.
	StateDir string
	Unkept   error
	// Audit is nil when calls are not recorded. AuditMaxSize and AuditKeep say when it is rotated, and how many files
	// are kept.
	Audit        *audit.Log
	AuditMaxSize int64
	AuditKeep    int
}

// Examine looks at what a host works with: its roots, rules, sandbox, shell, state and tools.
func Examine(ctx context.Context, s *Subject) []Finding {
	var all []Finding
	all = append(all, s.roots()...)
	all = append(all, s.rules()...)
	all = append(all, s.hooks()...)
	all = append(all, s.sandbox()...)
	all = append(all, s.execGate()...)
	all = append(all, s.manyNames()...)
	all = append(all, web()...)
	all = append(all, s.shell(ctx))
	all = append(all, git()...)
	all = append(all, s.state()...)
	return append(all, s.tools())
}

func (s *Subject) roots() []Finding {
	var all []Finding
	for _, root := range s.Roots {
		f := Finding{Level: LevelOK, About: "root", Text: root}
		if err := writable(root); err != nil {
			f.Level, f.Text, f.Remedy = LevelWarn, fmt.Sprintf("%s cannot be written: %v", root,
				err), "nothing, if the tools are only to read there"
		}
		all = append(all, f)
	}
	return all
}

func (s *Subject) rules() []Finding {
	set := s.Settings.Reload()
	if len(set.Broken) > 0 {
		var all []Finding
		for _, err := range set.Broken {
			all = append(all, Finding{LevelFail, "rules", "every call is refused: " + err.Error(), "correct the file"})
		}
		return all
	}
	all := []Finding{{LevelOK, "rules", fmt.Sprintf("mode %s; %d deny, %d ask, %d allow", set.DefaultMode,
		len(set.Deny), len(set.Ask), len(set.Allow)), ""}}
	if len(set.NativeDeny) > 0 {
		var names []string
		for _, e := range set.NativeDeny {
			names = append(names, strings.TrimSpace(e.Text))
		}
		slices.Sort(names)
		all = append(all, Finding{LevelOK, "rules", "by rules.native, bare denies mean the client's own tools, not ours: " +
			strings.Join(slices.Compact(names), ", "), ""})
	}
	for _, w := range slices.Concat(s.Policy.Warnings(), s.Idle) {
		all = append(all, Finding{LevelWarn, "rules", w, "correct the entry"})
	}
	for _, d := range s.Missing {
		all = append(all, Finding{LevelWarn, "rules", d.String(), d.Remedy()})
	}
	if len(set.Untrusted) > 0 {
		all = append(all, Finding{LevelWarn, "trust", fmt.Sprintf("%d entries of the workspace's settings are left out, "+
			"because they would loosen the rules", len(set.Untrusted)), "look at them with toolhost rules, and run " +
			"toolhost trust"})
	}
	return all
}

// web says what a proxy of the environment makes of the address guard.
func web() []Finding {
	proxy := httpproxy.FromEnvironment()
	if proxy.HTTPProxy == "" && proxy.HTTPSProxy == "" {
		return nil
	}
	return []Finding{{LevelOK, "web", "WebFetch goes through the proxy of the environment, which resolves names: this " +
		"host checks names and not what they lead to", ""}}
}

// sandbox says in plain words what holds a command.
func (s *Subject) sandbox() []Finding {
	if !s.Settings.Current().Sandbox.Enabled {
		return []Finding{{LevelWarn, "sandbox", "off: commands run with all the rights of the user",
			"set sandbox.enabled to true"}}
	}
	report := s.Box.SandboxReport()
	var holds, lacks []string
	for _, part := range []struct {
		held bool
		what string
	}{
		{report.Enforces.Writes, "writes stay in the workspace"}, {report.Enforces.Denies, "denied and protected files are out of reach"},
		{report.Enforces.Network, "the network is limited"}, {report.Enforces.Processes, "nothing outlives its command"},
	} {
		if part.held {
			holds = append(holds, part.what)
		} else {
			lacks = append(lacks, part.what)
		}
	}
	first := Finding{Level: LevelOK, About: "sandbox",
		Text: fmt.Sprintf("%s: %s", report.Backend, strings.Join(holds, ", "))}
	switch {
	case report.Backend == "":
		first.Text = "none: commands run with all the rights of the user"
	case len(lacks) > 0:
		first.Text += "; not held: " + strings.Join(lacks, ", ")
	}
	if len(lacks) > 0 {
		first.Level, first.Remedy = LevelWarn, cmp.Or(report.Remedy,
			"run it on Linux with user namespaces; toolhost profile prints what containers and Ubuntu need")
		if s.Unkept != nil { // there is no directory for what a sandbox needs
			first.Remedy = "name a directory that can be written with --state-dir"
		}
	}
	all := []Finding{first}
	for _, why := range report.Why {
		all = append(all, Finding{LevelOK, "sandbox", strings.TrimSuffix(why, "."), ""})
	}
	return all
}

// git says that git is missing.
func git() []Finding {
	if _, err := hostprogram.Find("git"); err == nil {
		return nil
	}
	return []Finding{{LevelWarn, "git", "not on the PATH: toolhost try and worktrees of agents do not work",
		"install git 2.38 or later"}}
}

// manyNames says that rules on files hold for fewer programs where one file has several names.
func (s *Subject) manyNames() []Finding {
	why := s.Policy.ManyNames()
	if why == "" {
		return nil
	}
	return []Finding{{LevelWarn, "file names", why +
		": tools hold rules against the name that the directory has; commands are asked where rules deny files", "work on a file system of Linux"}}
}

// execGate says how rules on commands are held, where there are any.
func (s *Subject) execGate() []Finding {
	set := s.Settings.Current()
	onCommands := func(e settings.Entry) bool { return strings.HasPrefix(e.Text, "Bash(") }
	if !slices.ContainsFunc(set.Deny, onCommands) && !slices.ContainsFunc(set.Ask, onCommands) {
		return nil
	}
	err := s.Policy.Commands().ExecGate()
	if err == nil {
		return []Finding{{LevelOK, "exec gate", "rules on commands are held when programs start", ""}}
	}
	text := "none: rules on commands hold for the text of a command, and what the text does not tell is asked about: "
	return []Finding{{LevelWarn, "exec gate", text + err.Error(),
		"nothing here: it needs Linux 5.19, and a kernel that lets a program filter its own calls"}}
}

// shell runs a command where commands run.
func (s *Subject) shell(ctx context.Context) Finding {
	if !s.Commands {
		return Finding{LevelOK, "shell", "not looked for: Bash is not served", ""}
	}
	version, path, err := s.Box.TryShell(ctx, s.Principal, s.Policy)
	if err != nil {
		return Finding{LevelFail, "shell", err.Error(),
			"if bash is missing install it, or serve without it (--tools); else see the sandbox line"}
	}
	return Finding{LevelOK, "shell", fmt.Sprintf("bash %s, PATH %s", version, path), ""}
}

func (s *Subject) tools() Finding {
	if len(s.Tools) == 0 {
		return Finding{LevelFail, "tools", "none is served", "see the rules"}
	}
	return Finding{LevelOK, "tools", strings.Join(s.Tools, ", "), ""}
}
