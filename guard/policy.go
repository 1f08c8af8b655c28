package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/settings"
)

// A Config configures a [Policy].
type Config struct {
	// Roots are the workspace roots, absolute and existing.
	Roots []string
	// ExplicitRoots says that the user named the roots: then the root directory
	// and the home directory itself are accepted.
	ExplicitRoots bool
	// Copy is the worktree that the roots lie in, CopyOf the work tree that it was made of, and Originals the roots of the
	// workspace that it stands for. Rules on a file in CopyOf apply to its copy too. Files in Originals can be read as in
	// a root; files in Originals and CopyOf cannot be written. Empty: the roots are not a copy.
	Copy, CopyOf string
	Originals    []string
	// Others are directories that hold files of other callers: no tool reads or writes what lies there and not in the
	// boundary.
	Others []string
	// Home is the user's home directory. Empty: "~" is not expanded.
	Home string
	// StateDir is the host's own directory, masked for all but [Caller.Own].
	StateDir string
	// Scratch is the directory for the temporary files and caches of the caller's commands. It belongs to the boundary;
	// commands may read everything in it. Its siblings belong to other callers, and commands cannot reach them. Empty:
	// there is none.
	Scratch string
	// Private are directories that contained commands of the caller see in place of the host's. Files in them belong to
	// the boundary. Nil: there are none.
	Private privatedir.Set
	// RuleFiles are further files and directories that the host obeys, such as settings and certificates. No tool can
	// write them.
	RuleFiles []string
	// OwnFiles are files that the host writes itself, in any directory, such as the audit log. No tool can read or write
	// them, or their rotated versions (audit.jsonl.1).
	OwnFiles []string
	// Settings hold the rules. Nil: there are none, and the mode is default.
	Settings *settings.Settings
	// HostCommands are the command lines that the host runs outside of any sandbox, without those of Settings: the files
	// of the boundary that they name are protected. Nil: there are none.
	HostCommands []HostCommand
	// Hooks says that this is the policy of contained hooks: they can write the files that their texts name as outputs.
	Hooks bool
	// Contain returns the containment of Bash commands. It is slow, so it is called once, when the first command is
	// judged; files do not need it. Nil: nothing contains them.
	Contain func() Containment
	// ExecGate returns why the programs that commands start are not judged when they start, nil if they are. If they are,
	// a command whose text does not name all of them needs no approval. Like Contain it is called once, on first use. Nil:
	// they are not.
	ExecGate func() error
	// Planted reports whether the link that Lstat has found at a path was put there by a command that runs, and whether
	// it stands in the place of another one: see [settle.Keeper.Planted]. Nil: there are no such links.
	Planted func(path string, link fs.FileInfo) (planted, replaces bool)
}

// A Caller describes the principal that calls are judged for.
type Caller struct {
	// Remote says that the caller is not at the machine: commands that would run uncontained need approval.
	Remote bool
	// Own are directories in the host's state that this caller may read, such as
	// its stored results, although the state itself is masked. Absolute.
	Own []string
}

// A Policy is an immutable snapshot of the rules, bound to a caller. A call uses one policy. It is safe for concurrent
// use. The zero Policy is not usable; create one with [New].
type Policy struct {
	data   *policyData
	caller Caller
	hidden *hiddenFiles
	// refused is the reason why the policy refuses everything, or nil.
	refused error
}

// policyData is the part of a policy that all callers share.
type policyData struct {
	manyNames manyNames // the mounts of bounds that give one file several names
	roots     []pathname.Place
	bounds    []pathname.Place // roots and additional directories
	home      pathname.Place
	// scratch is the real path of Config.Scratch, "" if there is none.
	scratch string
	// private are those of Config.Private that no rule replaces by the host's directories for commands.
	private privatedir.Set

	inside           pathname.Places // bounds
	ofOthers         pathname.Places // Config.Others
	originals        pathname.Places // CopyOf, Originals and, in a worktree, the additional directories
	oldRoots         pathname.Places // those that are readable: all but CopyOf
	criticalRoots    pathname.Places // bounds and the home directory
	state            pathname.Places
	secrets          pathname.Places
	ownFilesWritable bool // files of the host itself lie where commands write
	hostCommands     []HostCommand
	hostFiles        pathname.Places // of the workspace, that hooks and hostCommands run
	hookOutputFiles  []string        // see [Config.Hooks]
	// controlNames are the names of the files that the host obeys or writes: see [control].
	controlNames   []string
	planted        func(path string, link fs.FileInfo) (planted, replaces bool) // see [Config.Planted]
	stateDir       string
	allReadsDenied bool         // every Read is denied
	execGate       func() error // see [Config.ExecGate]
	execs          bool         // the settings do not turn exec judging off

	deny, ask, allow ruleList
	excluded         *rules.Commands // sandbox.excludedCommands
	mode             string
	sandbox          settings.Sandbox
	web              webData
	agents           bool
	files            commandFiles
	environment      []string         // of commands: env of the settings
	passed           []settings.Entry // bash.env.pass
	portRecords      string
	containment      func() Containment
	broken           []error
	warnings         []string

	links *linkIndex
	tag   string
	plan  func() *policyData // the same in plan mode
}

// A ruleList is the rules of one kind with their action.
type ruleList struct {
	*rules.List
	action Action
}

// New makes a policy. It refuses roots that would put the whole machine or home
// directory inside the boundary unless they were named explicitly. Bad entries in
// the settings are not errors but [Policy.Warnings].
func New(cfg Config) (*Policy, error) {
	set := cfg.Settings
	if set == nil {
		set = &settings.Settings{}
	}
	if err := cfg.checkPaths(); err != nil {
		return nil, err
	}
	c := &rules.Compiler{}
	if cfg.Home != "" {
		c.Home = c.Place(cfg.Home)
	}
	if err := cfg.placeRoots(c); err != nil {
		return nil, err
	}
	if c.Bounds = slices.Clone(c.Roots); cfg.CopyOf == "" { // in a worktree, only the copy is writable
		c.Bounds = append(c.Bounds, additional(c, set.AdditionalDirectories)...)
	}
	if cfg.Scratch != "" {
		c.Bounds = append(c.Bounds, c.Place(cfg.Scratch))
	}
	bounds := c.Bounds
	originals, readable := cfg.originals(c, set.AdditionalDirectories)
	if err := cfg.checkCopy(c); err != nil {
		return nil, err
	}
	denySpelling, allowSpelling := spellings(bounds)
	k := &policyData{
		roots: c.Roots, bounds: bounds, home: c.Home, scratch: realOf(c, cfg.Scratch),
		originals: pathname.PlacesOf(pathname.Exact, originals...),
		oldRoots:  pathname.PlacesOf(pathname.Exact, readable...),
		inside:    pathname.PlacesOf(pathname.Exact, bounds...),
		criticalRoots: pathname.PlacesOf(pathname.Folded,
			slices.Concat(bounds, originals, []pathname.Place{c.Home})...),
		mode: modeOf(set), sandbox: set.Sandbox, execGate: execGateOf(set, cfg.ExecGate),
		execs: set.Bash.ExecGate != settings.Off, containment: containmentOf(cfg), broken: set.Broken,
		deny:  ruleList{c.Compile(rules.Deny, set.Deny, denySpelling), Deny},
		ask:   ruleList{c.Compile(rules.Ask, set.Ask, denySpelling), Ask},
		allow: ruleList{c.Compile(rules.Allow, set.Allow, allowSpelling), Allow},
	}
	k.ofOthers = pathname.PlacesOf(pathname.Folded, placesFor(c, cfg.Others)...)
	if err := k.findManyNames(bounds); err != nil {
		return nil, err
	}
	k.web, k.agents = newWebData(c, set), set.Agent.Runner.Text != ""
	k.excluded = c.Excluded(set.Sandbox.ExcludedCommands)
	k.files = newCommandFiles(c, set.Sandbox, denySpelling)
	if cfg.CopyOf == "" && !set.Sandbox.GitDirDenied {
		k.addGit(realOf(c, cfg.StateDir))
	}
	k.environment, k.passed = environmentOf(set), set.Bash.EnvPass
	if cfg.StateDir != "" {
		k.portRecords = filepath.Join(cfg.StateDir, "ports")
	}
	k.resolveMasks(c, cfg, denySpelling)
	if cfg.Hooks {
		k.hookOutputFiles = k.hookOutputs(set)
		k.files.writable = append(k.files.writable, k.hookOutputFiles...)
	}
	k.private = cfg.Private.Without(append(k.outermost(), k.files.writable...))
	distrust(k)
	k.hostCommands = append(searchCommands(set.Web.Search, k.home.Real), cfg.HostCommands...)
	k.holdHostFiles(set, denySpelling)
	k.links = &linkIndex{Inside: outermostOf(append(k.outermost(), placesOf(originals)...)), Outside: k.deniedOutside,
		Rules: k.linkRules}
	k.allReadsDenied = k.deny.Blind()
	k.warnings = append(k.warnings, k.warningsOf(set, c)...)
	k.tag = hiddenTag(k, set)
	k.plan = sync.OnceValue(func() *policyData {
		planned := *k
		planned.mode = settings.ModePlan
		return &planned
	})
	return &Policy{data: k, hidden: &hiddenFiles{data: k}}, nil
}

// checkPaths returns an error if a path is not absolute.
func (cfg Config) checkPaths() error {
	for _, path := range slices.Concat([]string{cfg.StateDir, cfg.Home, cfg.Scratch}, cfg.RuleFiles, cfg.OwnFiles) {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("the path %q of the guard's configuration is not absolute", path)
		}
	}
	return nil
}

// environmentOf returns the variables that the settings give commands, as NAME=value in order.
func environmentOf(set *settings.Settings) (all []string) {
	for name, value := range set.Env {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// warningsOf returns what may not mean what the author of the settings intended.
func (k *policyData) warningsOf(set *settings.Settings, c *rules.Compiler) (all []string) {
	for _, w := range set.Warnings {
		all = append(all, w.String())
	}
	all = append(all, c.Warnings...)
	all = append(all, checkProgramHosts(set.Sandbox.Network.Programs)...)
	if set.Sandbox.OffByChoice && (k.deny.HasPaths() || k.files.any()) {
		all = append(all, "sandbox.enabled is false: rules on files hold for the names that stand in a command, not for "+
			"what its programs open")
	}
	return all
}

// Refusing returns a policy that refuses everything with err as the reason.
func (p *Policy) Refusing(err error) *Policy {
	return &Policy{data: p.data, hidden: &hiddenFiles{data: p.data}, refused: err}
}

// containmentOf returns a function that determines the containment once.
func containmentOf(cfg Config) func() Containment {
	if cfg.Contain == nil {
		return func() Containment { return Containment{} }
	}
	return sync.OnceValue(cfg.Contain)
}

// placeRoots adds the roots to what is compiled.
func (cfg Config) placeRoots(c *rules.Compiler) error {
	for _, dir := range cfg.Roots {
		if err := checkRoot(dir, cfg); err != nil {
			return err
		}
		c.Roots = append(c.Roots, c.Place(dir))
	}
	if len(c.Roots) == 0 {
		return errors.New("no workspace root: name the directories that the tools may work in")
	}
	return nil
}

// errExecGateOff is the reason if the settings turn the exec gate off.
var errExecGateOff = errors.New(`"bash": {"execGate": "off"} is set`)

// errNoExecGate is the reason if no exec gate was configured.
var errNoExecGate = errors.New("this host judges no programs when they start")

// execGateOf returns a function that determines once why programs are not judged when they start.
func execGateOf(set *settings.Settings, works func() error) func() error {
	switch {
	case set.Bash.ExecGate == settings.Off:
		return func() error { return errExecGateOff }
	case works == nil:
		return func() error { return errNoExecGate }
	}
	return sync.OnceValue(works)
}

// realOf returns the real path of a directory, "" for none.
func realOf(c *rules.Compiler, dir string) string {
	if dir == "" {
		return ""
	}
	return c.Place(dir).Real
}

// checkRoot refuses a root that is not a directory, or the whole machine or home directory.
func checkRoot(dir string, cfg Config) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("the root %q is not an absolute path", dir)
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the root %s does not exist: correct --root, or make the directory", dir)
	}
	if err != nil {
		return fmt.Errorf("the root cannot be used: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the root %s is not a directory", dir)
	}
	if cfg.ExplicitRoots {
		return nil
	}
	if filepath.Dir(dir) == filepath.Clean(dir) {
		return fmt.Errorf("the root %s is the whole machine; name a workspace, or this root explicitly", dir)
	}
	if home, err := os.Stat(cfg.Home); err == nil && os.SameFile(info, home) {
		return fmt.Errorf("the root %s is the whole home directory; name a workspace in it, or this root explicitly",
			dir)
	}
	return nil
}

// additional resolves additionalDirectories. A directory that does not exist yet counts once it is created.
func additional(c *rules.Compiler, entries []settings.Entry) []pathname.Place {
	var out []pathname.Place
	k := &policyData{home: c.Home}
	for _, e := range entries {
		base := pathOf(c.Roots[0])
		if e.Root != "" {
			root := c.Place(e.Root)
			base = Path{given: root.Given, real: root.Real}
		}
		name := strings.TrimSpace(e.Text)
		err := realpath.Check(base.real, name)
		var dir Path
		if err == nil {
			dir, err = k.resolve(base, name)
		}
		if err == nil {
			if err = rules.Redirected(pathname.Slashed(dir.given), pathname.Slashed(dir.real), c.Roots); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
		if err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: permissions.additionalDirectories: %v", e.Where(), err))
			continue
		}
		out = append(out, pathname.Place{Given: dir.given, Real: dir.real})
	}
	return out
}

// spellings returns how deny and ask rules, and how allow rules, compare names on the file systems of the boundary.
func spellings(bounds []pathname.Place) (denySpelling, allowSpelling pathname.Spelling) {
	some, all := false, true
	for _, b := range bounds {
		ignores := pathname.IgnoresCase(b.Given)
		some, all = some || ignores, all && ignores
	}
	denySpelling, allowSpelling = pathname.Composed, pathname.Exact
	if some || runtime.GOOS == "windows" {
		denySpelling = pathname.Folded
	}
	if all {
		allowSpelling = pathname.Folded
	}
	return denySpelling, allowSpelling
}

// resolveMasks resolves the built-in masks.
func (k *policyData) resolveMasks(c *rules.Compiler, cfg Config, s pathname.Spelling) {
	all := func(names []string) (out []pathname.Place) {
		for _, name := range names {
			if name != "" {
				out = append(out, c.Place(name))
			}
		}
		return out
	}
	own := all(cfg.OwnFiles)
	k.state = pathname.PlacesOf(s, append(all([]string{cfg.StateDir}), own...)...)
	secrets := homeSecrets(cfg.Home)
	for _, home := range ownerHomes(k.bounds) {
		secrets = append(secrets, homeSecrets(home)...)
	}
	secrets = append(secrets, k.files.values...)
	k.secrets = pathname.PlacesOf(s, all(secrets)...)
	k.controlNames, k.stateDir, k.planted = controlNames(cfg, k.bounds), cfg.StateDir, cfg.Planted
	k.ownFilesWritable = slices.ContainsFunc(own, func(p pathname.Place) bool {
		return k.inside.Hold(pathname.Slashed(p.Real)) || withinAny(p.Real, k.files.writable)
	})
}

// For returns the policy for one caller. It is cheap.
func (p *Policy) For(c Caller) *Policy {
	var own []pathname.Place
	for _, dir := range c.Own {
		if real, _, err := realpath.Follow(dir); err == nil {
			own = append(own, pathname.Place{Given: filepath.Clean(dir), Real: real})
		}
	}
	return &Policy{data: p.data, caller: c, hidden: &hiddenFiles{data: p.data,
		own: pathname.PlacesOf(pathname.Exact, own...)}, refused: p.refused}
}

// Commands returns the part of the policy on commands.
func (p *Policy) Commands() Commands { return Commands{p} }

// Roots returns the workspace roots as they were given.
func (p *Policy) Roots() []string {
	out := make([]string, len(p.data.roots))
	for i, r := range p.data.roots {
		out[i] = r.Given
	}
	return out
}

// HasOthers reports whether files of other callers lie around the roots, see [Config].
func (p *Policy) HasOthers() bool { return len(p.data.ofOthers.Names) > 0 }

// OfOthers reports whether a path outside of the roots belongs to other callers.
func (p *Policy) OfOthers(path Path) bool { return p.data.ofOthers.Hold(pathname.Slashed(path.Real())) }

// Warnings returns problems in the settings that a person should correct, each with file and line.
func (p *Policy) Warnings() []string { return slices.Clone(p.data.warnings) }

// Planning returns the same policy in plan mode.
func (p *Policy) Planning() *Policy {
	if p.data.mode == settings.ModePlan {
		return p
	}
	return &Policy{data: p.data.plan(), caller: p.caller, hidden: p.hidden, refused: p.refused}
}

// Mode returns the permission mode in force, [settings.ModeDefault] or another mode of that package.
func (p *Policy) Mode() string { return p.data.mode }

// hiddenTag identifies everything except the caller that affects [Policy.Hidden].
func hiddenTag(k *policyData, set *settings.Settings) string {
	h := sha256.New()
	for _, e := range set.Deny {
		fmt.Fprintf(h, "%q %q %q\n", e.Text, e.File, e.Root)
	}
	fmt.Fprintf(h, "%q %q %q %q %d", k.bounds, k.home, k.state.Names, k.secrets.Names, k.state.Spelling)
	for _, e := range set.Allow {
		if !strings.HasPrefix(e.Text, "Bash(") { // such a rule allows no Read
			fmt.Fprintf(h, "%q %q %q\n", e.Text, e.File, e.Root)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
