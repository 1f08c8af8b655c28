package mcpserver

import (
	"context"
	"fmt"
	"os"
	"strings"

	"toolhost/builtin"
)

// A Finding is one line of what a host says about itself.
type Finding struct {
	// Level is ok, warn or fail.
	Level string `json:"level"`
	// About is what was looked at.
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

// Examine looks at what a host works with: its roots, rules, sandbox, shell, state and tools.
func (h *Host) Examine(ctx context.Context) []Finding {
	var all []Finding
	all = append(all, h.examineRoots()...)
	all = append(all, h.examineRules()...)
	all = append(all, h.examineSandbox()...)
	all = append(all, h.examineShell(ctx))
	all = append(all, h.examineSearch(ctx)...)
	all = append(all, h.examineState()...)
	return append(all, h.examineTools())
}

func (h *Host) examineRoots() []Finding {
	var all []Finding
	for _, root := range h.cfg.Roots {
		f := Finding{Level: LevelOK, About: "root", Text: root}
		probe, err := os.MkdirTemp(root, ".toolhost-*")
		if err == nil {
			err = os.Remove(probe)
		}
		if err != nil {
			f.Level, f.Text, f.Remedy = LevelWarn, fmt.Sprintf("%s cannot be written: %v", root, err), "nothing, if the tools are only to read there"
		}
		all = append(all, f)
	}
	return all
}

func (h *Host) examineRules() []Finding {
	set := h.settings.Reload()
	if len(set.Broken) > 0 {
		var all []Finding
		for _, err := range set.Broken {
			all = append(all, Finding{LevelFail, "rules", "every call is refused: " + err.Error(), "mend the file"})
		}
		return all
	}
	all := []Finding{{LevelOK, "rules", fmt.Sprintf("mode %s; %d deny, %d ask, %d allow", set.DefaultMode, len(set.Deny), len(set.Ask), len(set.Allow)), ""}}
	for _, w := range h.policy(LocalPrincipal).Warnings() {
		all = append(all, Finding{LevelWarn, "rules", w, "mend the entry"})
	}
	if len(set.Untrusted) > 0 {
		all = append(all, Finding{LevelWarn, "trust", fmt.Sprintf("%d entries of the workspace's settings are left out, because they would loosen the rules", len(set.Untrusted)), "look at them with toolhost rules, and run toolhost trust"})
	}
	return all
}

// examineSandbox says in plain words what holds a command.
func (h *Host) examineSandbox() []Finding {
	if !h.settings.Current().Sandbox.Enabled {
		return []Finding{{LevelWarn, "sandbox", "off: commands run with all the rights of the user", "set sandbox.enabled to true"}}
	}
	report := h.box.SandboxReport()
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
	why := strings.Join(report.Why, " ")
	if report.Backend == "" {
		return []Finding{{LevelWarn, "sandbox", "none: commands run with all the rights of the user. " + why, "see guard/sandbox/profiles/README.md for containers and Ubuntu"}}
	}
	f := Finding{LevelOK, "sandbox", fmt.Sprintf("%s: %s", report.Backend, strings.Join(holds, ", ")), ""}
	if len(lacks) > 0 {
		f.Level, f.Remedy = LevelWarn, why
		f.Text += "; not held: " + strings.Join(lacks, ", ")
	}
	return []Finding{f}
}

// examineShell runs a command where commands run.
func (h *Host) examineShell(ctx context.Context) Finding {
	if _, err := h.lookUp(builtin.Bash.Name); err != nil {
		return Finding{LevelOK, "shell", "not looked for: Bash is not served", ""}
	}
	version, path, err := h.box.TryShell(ctx, LocalPrincipal, h.policy(LocalPrincipal))
	if err != nil {
		return Finding{LevelFail, "shell", err.Error(), "if bash is missing install it, or serve without it (--tools); else see the sandbox line"}
	}
	return Finding{LevelOK, "shell", fmt.Sprintf("bash %s, PATH %s", version, path), ""}
}

func (h *Host) examineTools() Finding {
	var names []string
	for _, d := range h.Tools(Local()) {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return Finding{LevelFail, "tools", "none is served", "see the rules"}
	}
	return Finding{LevelOK, "tools", strings.Join(names, ", "), ""}
}
