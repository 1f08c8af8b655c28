package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// A toolset is the tools of a host.
type toolset struct {
	all     []*builtin.Def // ordered by name
	byName  map[string]resolved
	runtime *builtin.Runtime
	session bool // see [Config.SessionArgument]
}

// A resolved tool is what the name in a call stands for.
type resolved struct {
	def   *builtin.Def // nil: none is served under that name
	extra *ExtraTool   // the tool of the extension, nil if it is none
	// name is that of the tool whose handler answers the call.
	name string
	// err says why no tool is served, and what to call instead if that is known.
	err error
}

// newToolset returns the tools that were asked for by name, or all, with the custom ones and those of the extension.
func newToolset(cfg Config) (*toolset, error) {
	t := &toolset{byName: map[string]resolved{}, session: cfg.SessionArgument}
	for _, d := range slices.Concat(builtin.All(), cfg.CustomTools) {
		if len(cfg.Tools) > 0 && !slices.Contains(cfg.Tools, d.Name) && !slices.Contains(cfg.CustomTools, d) {
			continue
		}
		if err := t.add(d, nil); err != nil {
			return nil, err
		}
	}
	for i := range cfg.Extension.Tools {
		extra := &cfg.Extension.Tools[i]
		d, err := extra.def()
		if err == nil {
			err = t.add(d, extra)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(t.all, func(a, b *builtin.Def) int { return strings.Compare(a.Name, b.Name) })
	return t, nil
}

func (t *toolset) add(d *builtin.Def, extra *ExtraTool) error {
	if t.has(d.Name) {
		return fmt.Errorf("there are two tools with the name %q: rename one", d.Name)
	}
	t.all = append(t.all, d)
	t.byName[d.Name] = resolved{def: d, name: d.Name, extra: extra}
	return nil
}

// resolve finds the tool that is served under a name, or that the name stands for.
func (t *toolset) resolve(name string) resolved {
	if r, ok := t.byName[name]; ok && r.def.Enabled(t.runtime) {
		return r
	}
	if r, ok := t.byName[alias.Tool(name)]; ok && r.def.Enabled(t.runtime) {
		return r
	}
	if s, ok := alias.Instead(name); ok {
		if r, ok := t.byName[s.Tool]; ok && r.def.Enabled(t.runtime) {
			return resolved{name: s.Tool, err: fmt.Errorf("%s is not served here: %s", name, s.How)}
		}
	}
	if name == "" {
		return resolved{err: fmt.Errorf("%w: the call names none", errNoTool)}
	}
	near, distance := "", 1+len(name)/3
	for _, d := range t.all {
		if n := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(d.Name)); n <= distance && (near == "" || n < distance) {
			near, distance = " (did you mean "+d.Name+"?)", n
		}
	}
	return resolved{name: name, err: fmt.Errorf("%w: %s%s", errNoTool, name, near)}
}

// has reports whether there is a tool of that name.
func (t *toolset) has(name string) bool { return t.byName[name].def != nil }

// listed returns the tools on the list of a caller: those that are enabled, within its rights, and not denied by name.
func (t *toolset) listed(policy *guard.Policy, rights auth.Rights) (listed []*builtin.Def) {
	for _, d := range t.all {
		ok, v := policy.ToolEnabled(d.Name)
		ok = ok || v.Rule == guard.RuleSettings // a call says why everything is refused, an empty list does not
		if ok && d.Enabled(t.runtime) && rights.Has(rightTo(d.Permission)) {
			listed = append(listed, d)
		}
	}
	return listed
}

// names returns the names of tools.
func names(tools []*builtin.Def) (names []string) {
	for _, d := range tools {
		names = append(names, d.Name)
	}
	return names
}

// rightTo returns the right that the caller of a tool must hold.
func rightTo(p guard.Permission) auth.Rights {
	switch p {
	case guard.ToRead:
		return auth.Read
	case guard.ToWrite:
		return auth.Write
	}
	return auth.Exec
}
