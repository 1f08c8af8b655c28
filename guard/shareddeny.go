package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/guard/settings"
)

// A SharedDeny is a set of bare denies in settings files of Claude Code that remove tools from that client and from
// this host.
type SharedDeny struct {
	// Tools are the tools of this host that are not served because of them.
	Tools []string
	// Rules are the denies as written, Sources the places where they were written.
	Rules, Sources []string
	// File is the settings file whose rules.native can lift them for this host.
	File string
}

// maxSharedSources bounds the sources of rules that one text names.
const maxSharedSources = 3

// String says which tools are missing, and why.
func (d SharedDeny) String() string {
	sources := strings.Join(d.Sources[:min(len(d.Sources), maxSharedSources)], ", ")
	if more := len(d.Sources) - maxSharedSources; more > 0 {
		sources += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s not served: denied for Claude Code and for toolhost by %s",
		strings.Join(d.Tools, ", "), sources)
}

// Remedy says how to keep the tools.
func (d SharedDeny) Remedy() string {
	var names []string
	for _, r := range d.Rules {
		names = append(names, strconv.Quote(r))
	}
	return fmt.Sprintf(`to deny only Claude Code's own tools, put "rules": {"native": [%s]} into %s`,
		strings.Join(names, ", "), d.File)
}

// SharedDenies returns the bare denies of Claude Code's files that remove any of these tools, by the file that can
// lift them. where says where the settings come from.
func (p *Policy) SharedDenies(where settings.Config, tools []string) []SharedDeny {
	var all []SharedDeny
	for _, tool := range tools {
		r := p.data.deny.Named(tool)
		if r == nil || !r.Shared {
			continue
		}
		file := where.UserFile()
		if r.Managed {
			file = where.ManagedFile()
		}
		i := slices.IndexFunc(all, func(d SharedDeny) bool { return d.File == file })
		if i < 0 {
			i, all = len(all), append(all, SharedDeny{File: file})
		}
		d := &all[i]
		d.Tools = append(d.Tools, tool)
		if rule := strings.TrimSpace(r.Text); !slices.Contains(d.Rules, rule) {
			d.Rules = append(d.Rules, rule)
		}
		if !slices.Contains(d.Sources, r.Source) {
			d.Sources = append(d.Sources, r.Source)
		}
	}
	return all
}
