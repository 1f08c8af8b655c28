package mcpserver

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A toolset holds the tools of a host. It serves an immutable snapshot, which a change replaces as a whole.
type toolset struct {
	own     []*builtin.Def // of this host, ordered by name
	extra   map[string]*ExtraTool
	runtime *builtin.Runtime
	session bool // see [Config.SessionArgument]
	search  searchMode
	// agentDirs returns the directories of the definitions of agents.
	agentDirs func() []string
	// skills returns the skills that a caller with these rules may read.
	skills func(auth.Identity, *guard.Policy) builtin.Skills

	replacing sync.Mutex
	snapshot  atomic.Pointer[snapshot]
}

// A snapshot is the set of tools that a host serves at one time. It is immutable.
type snapshot struct {
	foreignSet
	all    []*builtin.Def // the tools of this host by name, then those of other servers by name
	byName map[string]resolved
	shown  map[*builtin.Def]mcp.Tool // as clients see them
	// searched says that clients without a preference find the tools of other servers with ToolSearch. loaded holds the
	// tools that are listed nevertheless.
	searched bool
	// tooLong says that the known tools of other servers have exceeded a list since the configuration changed.
	tooLong bool
	loaded  map[*builtin.Def]bool

	indexed   sync.Once
	toolIndex *toolIndex // see index
}

// index returns the index of the tools. It is created on first use.
func (s *snapshot) index() *toolIndex {
	s.indexed.Do(func() { s.toolIndex = newToolIndex(s.all, s.Servers) })
	return s.toolIndex
}

// A foreignSet holds the tools of other servers.
type foreignSet struct {
	// Servers are all configured servers, running or not.
	Servers []foreignServer
	// Tools are their known tools. Their names are unique.
	Tools []*builtin.Def
	// Prompts and Resources change when clients see other prompts and resources of the servers.
	Prompts, Resources string
	// PromptNames are the names of all prompts that the servers offer.
	PromptNames []string
	// Configured says that a person has changed the set of servers. Only such a change lets a list that was cut short
	// grow again.
	Configured bool
}

// A foreignServer is another server.
type foreignServer struct {
	// Name is the part of its tools' names between mcp__ and __.
	Name string
	// Purpose describes the server in one line. It is empty if nothing is known.
	Purpose string
	// Unknown says that it has not been asked for its tools yet.
	Unknown bool
	// Down is the reason why the server cannot be called at present, or empty.
	Down string
}

// unsure reports whether the server may have unknown tools: a call of one fails with the reason.
func (s foreignServer) unsure() bool { return s.Unknown || s.Down != "" }

// A resolved is the result of looking up the tool name of a call.
type resolved struct {
	def   *builtin.Def // nil: no tool is served under that name
	extra *ExtraTool   // the tool of the extension, or nil
	// name is the name of the tool that handles the call.
	name string
	// err says why no tool is served and, if known, what to call instead.
	err error
	// inside is the call inside a ToolCall, nil for a direct call.
	inside *innerCall
}

// called returns the tool name of a call that was sent under this name.
func (r resolved) called(name string) string {
	switch {
	case r.err == nil:
		return r.def.Name // the call may use an alias
	case r.inside != nil && r.inside.name != "":
		return r.inside.name
	}
	return name
}

// foreign reports whether the tool belongs to another server.
func (r resolved) foreign() bool { return r.def != nil && r.def.Server != "" }

// handler returns the name of the call's handler in the library.
func (r resolved) handler() string {
	if r.foreign() || r.inside != nil || strings.HasPrefix(r.name, "mcp__") {
		return foreignHandler
	}
	return r.name
}

// newToolset returns the tools that were asked for by name, or all tools, together with the custom tools and those of
// the extension.
func newToolset(cfg Config) (*toolset, error) {
	t := &toolset{extra: map[string]*ExtraTool{}, session: cfg.SessionArgument, search: searchMode(cfg.ToolSearch)}
	for _, d := range builtin.All() {
		if len(cfg.Tools) == 0 && !d.OptIn || slices.Contains(cfg.Tools, d.Name) {
			t.own = append(t.own, d)
		}
	}
	t.own = append(t.own, cfg.CustomTools...)
	for i := range cfg.Extension.Tools {
		extra := &cfg.Extension.Tools[i]
		d, err := extra.def()
		if err != nil {
			return nil, err
		}
		t.own, t.extra[d.Name] = append(t.own, d), extra
	}
	search, err := toolSearchTool(t)
	if err != nil {
		return nil, err
	}
	t.own = append(t.own, search, toolCallTool())
	slices.SortFunc(t.own, byName)
	return t, t.replace(foreignSet{Configured: true})
}

// enterPlanMode is the tool that puts a conversation into plan mode.
const enterPlanMode = "EnterPlanMode"

// include adds tools of this host by name. It fails for an unknown name.
func (t *toolset) include(names []string) error {
	all := slices.Concat(builtin.All(), t.own)
	for _, name := range names {
		i := slices.IndexFunc(all, func(d *builtin.Def) bool { return d.Name == name || d.Name == alias.Tool(name) })
		if i < 0 {
			near := ""
			if names := (&snapshot{all: all}).nearest(name, 1, func(*builtin.Def) bool { return true }); len(names) > 0 {
				near = " (did you mean " + names[0] + "?)"
			}
			return fmt.Errorf("there is no tool %q%s", name, near)
		}
		if t.session && all[i].Name == enterPlanMode {
			return fmt.Errorf("%s cannot be served with the session argument: a model could leave the plan mode by choosing "+
				"another session", name)
		}
		if !slices.Contains(t.own, all[i]) {
			t.own = append(t.own, all[i])
		}
	}
	slices.SortFunc(t.own, byName)
	return t.replace(foreignSet{Configured: true})
}

func byName(a, b *builtin.Def) int { return strings.Compare(a.Name, b.Name) }

// replace installs a snapshot with these tools of other servers. The error also names the tools that are left out. A
// tool with a name that is taken does not affect the others.
func (t *toolset) replace(f foreignSet) (leftOut error) {
	t.replacing.Lock()
	defer t.replacing.Unlock()
	s := &snapshot{foreignSet: f, byName: map[string]resolved{}, shown: map[*builtin.Def]mcp.Tool{}}
	was := t.snapshot.Load()
	s.tooLong = f.long() || !f.Configured && was != nil && was.tooLong // a list in use must not change back and forth
	s.searched = t.search.needed(f, s.tooLong)
	s.Tools = nil
	for _, d := range slices.Concat(t.own, slices.SortedFunc(slices.Values(f.Tools), func(a, b *builtin.Def) int {
		return cmp.Or(len(a.Listed)-len(b.Listed), byName(a, b)) // complete names before those that were cut
	})) {
		switch err := t.add(s, d); {
		case err == nil && d.Server != "":
			s.Tools = append(s.Tools, d)
		case err != nil && d.Server == "":
			return err
		default:
			leftOut = errors.Join(leftOut, err)
		}
	}
	slices.SortFunc(s.Tools, byName)
	s.all, s.loaded = slices.Concat(t.own, s.Tools), alwaysLoaded(s.Tools)
	t.snapshot.Store(s)
	return leftOut
}

// add serves a tool in a snapshot, unless its name is taken.
func (t *toolset) add(s *snapshot, d *builtin.Def) error {
	r := resolved{def: d, name: d.Name}
	if d.Server == "" {
		r.extra = t.extra[d.Name]
	}
	shown, known := mcp.Tool{}, false
	if was := t.now(); was != nil && d.Server == "" {
		shown, known = was.shown[d]
	}
	if !known {
		var err error
		if shown, err = toMCP(t.shown(d)); err != nil {
			return err
		}
	}
	names := []string{d.Name}
	if d.Listed != "" {
		names = append(names, d.Listed)
	}
	for _, name := range names {
		if s.byName[name].def != nil {
			return fmt.Errorf("there are two tools with the name %q: rename one", name)
		}
	}
	for _, name := range names {
		s.byName[name] = r
	}
	s.shown[d] = shown
	return nil
}

// now returns the current snapshot.
func (t *toolset) now() *snapshot { return t.snapshot.Load() }

// resolve finds the tool that is served under a name or an alias.
func (t *toolset) resolve(name string) resolved {
	now := t.now()
	if r, ok := now.byName[name]; ok && r.def.Enabled(t.runtime) {
		return r
	}
	if r, ok := now.byName[alias.Tool(name)]; ok && r.def.Enabled(t.runtime) {
		return r
	}
	if s, ok := alias.Instead(name); ok {
		if r, ok := now.byName[s.Tool]; ok && r.def.Enabled(t.runtime) {
			return resolved{name: s.Tool, err: fmt.Errorf("%s is not served here: %s", name, s.How)}
		}
	}
	if name == "" {
		return resolved{err: fmt.Errorf("%w: the name is missing", errNoTool)}
	}
	return resolved{name: name, err: fmt.Errorf("%w: %s", errNoTool, clippedTo(name, maxNear))}
}

// has reports whether there is a tool of that name.
func (t *toolset) has(name string) bool { return t.now().byName[name].def != nil }

// A viewer is a caller to which tools are listed.
type viewer struct {
	policy *guard.Policy
	who    auth.Identity
	list   string // [transport.ListSearch], [transport.ListAll], or empty: as the host decides
}

// listed returns the tools on the list of a caller: those that are enabled, within its rights, and not denied by name.
// Of the tools of other servers it returns all, or ToolSearch and ToolCall instead. The description of ToolSearch is
// that for this caller.
func (t *toolset) listed(now *snapshot, v viewer) (listed []*builtin.Def) {
	searched := v.list == transport.ListSearch || v.list == "" && now.searched
	visible := func(d *builtin.Def) bool { return t.visible(d, v.policy, v.who) }
	for _, d := range now.all {
		finds := d.Server == "" && (d.Name == toolSearchName || d.Name == toolCallName)
		if !visible(d) || finds && !searched || d.Server != "" && searched && !now.loaded[d] {
			continue
		}
		if finds && d.Name == toolSearchName {
			described := *d
			described.Doc, d = now.searchDoc(visible), &described
		}
		if d.Name == agentTool && d.Server == "" {
			described := *d
			types, _ := t.runtime.AgentTypes(t.agentDirs()) // the doctor reports faulty definitions
			described.Doc, d = d.Doc+types, &described
		}
		if d.Name == skillTool && d.Server == "" {
			described := *d
			described.Doc, d = d.Doc+t.skills(v.who, v.policy).Describe(), &described
		}
		listed = append(listed, d)
	}
	return listed
}

// visible reports whether a caller may know of a tool.
func (t *toolset) visible(d *builtin.Def, policy *guard.Policy, who auth.Identity) bool {
	ok, v := policy.ToolEnabled(d.Name)
	ok = ok || v.Rule == guard.RuleSettings // a call says why everything is refused, an empty list does not
	return ok && !d.Unlisted && d.Enabled(t.runtime) && d.Configured(policy) && who.Rights.Has(rightTo(d.Permission)) &&
		mayUse(who, serverIn(d.Name))
}

// serverIn returns the server in the name of a tool or prompt, or "".
func serverIn(name string) string {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return ""
	}
	server, _, _ := strings.Cut(rest, "__")
	return server
}

// digest returns a text that changes when clients see other tools.
func (t *toolset) digest(policy *guard.Policy) string {
	sum, now := sha256.New(), t.now()
	for _, d := range now.all {
		if !t.visible(d, policy, Local()) {
			continue
		}
		fmt.Fprintf(sum, "%q %q %t %s\n", d.Name, d.Doc, d.AlwaysLoad, d.RawSchema)
	}
	for _, s := range now.Servers { // the list does not depend on whether a server runs
		fmt.Fprintf(sum, "%q %q\n", s.Name, s.Purpose)
	}
	fmt.Fprint(sum, now.searched)
	return string(sum.Sum(nil))
}

// idleRules returns warnings about rules on tools of other servers, and about hooks, that match no known tool.
func (t *toolset) idleRules(policy *guard.Policy, set *settings.Settings) []string {
	now := t.now()
	known, served, unsure := names(now.Tools), []string{}, map[string]bool{}
	known = append(known, now.PromptNames...)
	for _, s := range now.Servers {
		known, served = append(known, foreignHandler+s.Name+"__"), append(served, s.Name)
		unsure[s.Name] = s.unsure() &&
			!slices.ContainsFunc(now.Tools, func(d *builtin.Def) bool { return d.Server == s.Name })
	}
	return append(policy.IdleRules(known, served, func(server string) bool { return unsure[server] }),
		t.idleHooks(set)...)
}

// idleHooks returns warnings about hooks whose matcher matches no tool by mistake.
func (t *toolset) idleHooks(set *settings.Settings) (warnings []string) {
	known := names(t.now().all)
	for _, event := range slices.Sorted(maps.Keys(set.Hooks)) {
		for _, group := range set.Hooks[event] {
			if remedy := hook.Idle(group.Matcher, known); remedy != "" {
				warnings = append(warnings, fmt.Sprintf("%s: hooks.%s: the matcher %q matches no tool, so that its hooks never "+
					"run: %s",
					group.Source.Where(), event, group.Matcher, remedy))
			}
		}
	}
	return warnings
}

// names returns the names of tools.
func names(tools []*builtin.Def) (names []string) {
	for _, d := range tools {
		names = append(names, d.Name)
	}
	return names
}

// rightTo returns the right that a tool requires of its caller.
func rightTo(p guard.Permission) auth.Rights {
	switch p {
	case guard.ToRead:
		return auth.Read
	case guard.ToWrite:
		return auth.Write
	}
	return auth.Exec
}
