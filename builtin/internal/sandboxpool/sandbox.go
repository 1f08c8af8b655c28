package sandboxpool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// warm starts shells in a sandbox, and has its ports published.
func (cs *Pool) warm(c *Sandbox) (err error) {
	c.publish = c.policy.Commands().Network().Publish
	c.runner, err = shell.New(shell.Config{
		Start: c.spawn, Env: append(shell.Inherited(c.policy.Commands().PassedVariables()), c.scratch...), Set: slices.Concat(c.policy.Commands().Environment(), c.box.Env()),
		Unset: c.policy.Commands().SecretVariables(), Execs: judgesExecs(c.policy),
	})
	return err
}

// start makes a sandbox for what the rules say now, with or without shells, for a server, or for an agent.
func (cs *Pool) start(ctx context.Context, policy *guard.Policy, shells bool, cell *Cell, agent *Agent) (_ *Sandbox, err error) {
	scratch := policy.Commands().Scratch()
	if scratch == "" {
		return nil, errors.New("there is no directory for the temporary files of commands: the cache directory of the user ($XDG_CACHE_HOME, or $HOME/.cache) must be writable")
	}
	for _, root := range policy.Roots() { // before the whole disk is walked for its rules
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("%q is the root of the file system; name the directories that are meant", root)
		}
	}
	env, err := makeScratch(scratch)
	if err != nil {
		return nil, fmt.Errorf("the directory for temporary files: %w", err)
	}
	for _, other := range slices.AppendSeq(slices.Collect(maps.Values(cs.open)), maps.Keys(cs.retired)) { // before anything is in it
		if other.policy.Commands().Scratch() != scratch {
			other.coverNew(scratch)
		}
	}
	c := &Sandbox{policy: policy, scratch: env, paths: policy.Commands().SandboxPaths(), looked: time.Now(), deniedAtMount: map[string]*coveredFile{},
		denied: deniedFiles{}, watch: watches{dirs: map[string]bool{}}, followed: make(chan struct{})}
	cs.baseline.Begin(c.dirs(), nil)
	defer func() {
		if err != nil {
			cs.baseline.End(c.dirs())
		}
	}()
	c.holdHooks(cs.baseline.Hooks())
	cell.confine(c)
	c.pin()
	c.denied.count(c.paths.Denied) // before their names are looked for
	c.denied.countMasked(c.paths.Masked)
	paths := c.paths
	looked, synced := make(chan *pipeLook, 1), make(chan struct{})
	go func() { looked <- lookForPipes(policy, paths, synced) }()
	private := cs.private(c)
	close(synced)
	layers, err := openLayers(c, agent)
	if err != nil {
		return nil, err
	}
	private = append(private, layers...)
	var programs []string
	if shells || agent != nil && agent.Execs {
		programs = policy.Commands().DeniedPrograms()
	}
	if c.box, err = startBox(ctx, c, private, programs, agent); err != nil {
		return nil, err
	}
	c.guarded = c.box.Guarded()
	cs.baseline.Guard(c.guarded)
	if err := c.hideFirst(<-looked); err != nil {
		return nil, errors.Join(err, c.box.Close())
	}
	if shells {
		if err = cs.warm(c); err != nil {
			return nil, errors.Join(err, c.box.Close())
		}
	}
	c.life, c.end = context.WithCancel(context.Background())
	if c.watch.watcher, err = fsnotify.NewWatcher(); err == nil {
		go follower{cs, c}.follow()
	}
	c.note(c.paths.Denied)
	c.watch.addFixed(c)
	c.watch.addDenied(c.denied)
	if fresh := c.denied.linked(); len(fresh) > 0 { // while the sandbox was started
		if err := c.deny(fresh...); err != nil {
			return nil, errors.Join(err, c.close(cs))
		}
	}
	return c, nil
}

// judgesExecs reports whether the programs that commands start are judged: a rule speaks of some, and this machine can.
func judgesExecs(policy *guard.Policy) bool {
	return policy.Commands().JudgesExecs() && sandbox.ExecGateWorks(sandbox.Backend(policy.Commands().Containment().Name)) == nil
}

// sameStarts is how often a sandbox is tried of the kind that this machine has been found to have, before another is: a start fails
// when a file that it covers is replaced meanwhile, and what would be started instead looks each file up for every command.
const sameStarts = 3

// startBox starts the sandbox. It has to hold what the verdict relied on: a start that fails for a passing reason
// ends in a weaker one.
func startBox(ctx context.Context, c *Sandbox, private []sandbox.Private, programs []string, agent *Agent) (box *sandbox.Sandbox, err error) {
	policy, paths := c.policy, c.paths
	rules := policy.Commands().Network()
	what := sandbox.Policy{
		Writable: paths.Writable, ReadOnly: slices.Concat(paths.ReadOnly, c.held), Pinned: paths.Control.Steps, Denied: paths.Denied,
		Masked: paths.Masked, Shown: paths.Shown, Programs: programs, Private: private,
		Network: sandbox.Network{AllowedDomains: rules.Allowed, DeniedDomains: rules.Denied, AllowPrivate: rules.Private, PortRecords: rules.PortRecords}, Sockets: rules.Sockets,
		Execs: judgesExecs(policy),
	}
	if agent != nil {
		what.Execs, what.Sockets, what.Network.Ask = agent.Execs, slices.Concat(what.Sockets, agent.Sockets), agent.AskHost
	}
	same := sandbox.Options{Backends: []sandbox.Backend{sandbox.Backend(policy.Commands().Containment().Name)}, Ahead: agent != nil}
	if c.cell != nil {
		what.Network.AllowedDomains, what.Execs, what.Sockets = c.cell.Domains, false, nil
		same.Resolve = c.cell.resolve
	}
	for range sameStarts {
		if box, err = sandbox.Start(ctx, what, same); err == nil {
			break
		}
	}
	if err != nil {
		box, err = sandbox.Start(ctx, what, sandbox.Options{Resolve: same.Resolve})
	}
	if err != nil {
		return nil, err
	}
	held := box.Report().Enforces
	if !held.Writes || !held.Processes || policy.Commands().Containment().Denies && !held.Denies {
		err := errors.New("the sandbox that could be started holds less than the rules count on: repeat the call")
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

// caches are the variables that point programs to their caches, and the directory of each below the scratch
// directory. What a build leaves there cannot reach what the user runs outside.
var caches = [][2]string{
	{"TMPDIR", "tmp"}, {"XDG_CACHE_HOME", "cache"}, {"GOCACHE", "cache/go-build"}, {"npm_config_cache", "cache/npm"},
	{"YARN_CACHE_FOLDER", "cache/yarn"}, {"PIP_CACHE_DIR", "cache/pip"}, {"CCACHE_DIR", "cache/ccache"},
}

// makeScratch makes the scratch directory, the user's alone, and returns the variables that point into it.
func makeScratch(dir string) ([]string, error) {
	var env []string
	for _, c := range caches {
		path := filepath.Join(dir, filepath.FromSlash(c[1]))
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		env = append(env, c[0]+"="+path)
	}
	return env, nil
}
