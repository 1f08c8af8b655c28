package sandboxpool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/changes"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// warm starts shells in a sandbox.
func (c *Sandbox) warm() {
	c.runner = shell.New(shell.Config{
		Start: c.spawn, Env: append(shell.Inherited(c.policy.Commands().PassedVariables()), c.scratch...),
		Set:   slices.Concat(c.policy.Commands().Environment(), c.box.Env()),
		Unset: c.withheld(), Execs: judgesExecs(c.policy),
	})
}

// makeScratch makes the directory for temporary files.
func makeScratch(policy *guard.Policy) (string, error) {
	scratch := policy.Commands().Scratch()
	if scratch == "" {
		return "", errors.New("cannot create a directory for the temporary files of commands: the cache directory of the " +
			"user ($XDG_CACHE_HOME, or $HOME/.cache) or the temporary directory ($TMPDIR, or /tmp) must be writable")
	}
	for _, root := range policy.Roots() { // refused here, before SandboxPaths walks the whole disk
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("%q is the root of the file system: use more specific directories", root)
		}
	}
	if err := os.MkdirAll(filepath.Join(scratch, scratchTemporary), 0o700); err != nil {
		return "", fmt.Errorf("cannot create the directory for temporary files: %w", err)
	}
	return scratch, nil
}

// startSandbox starts a sandbox under the current rules. Nothing of it is left after an error.
func (cs *Pool) startSandbox(ctx context.Context, policy *guard.Policy, kind kind) (_ *Sandbox, err error) {
	scratch, err := makeScratch(policy)
	if err != nil {
		return nil, err
	}
	cs.hideScratch(scratch) // before anything is in it
	c := &Sandbox{policy: policy,
		covered: covered{looked: time.Now(), deniedAtMount: map[string]*coveredFile{}, denied: deniedFiles{}},
		watch:   watches{byPath: map[string]*watched{}}, followed: make(chan struct{})}
	c.discard = kind.shells && policy.Commands().Discard()
	c.own = policy.Commands().OwnOfHome()
	c.paths = policy.Commands().SandboxPaths()
	if kind.cell.seesWorkspace() {
		cs.baseline.Begin(c.dirs(), nil)
		c.holdHooks(cs.baseline.Hooks(c.dirs()))
	}
	kind.cell.confine(c)
	defer func() {
		if err != nil {
			if cs.warn(c.EndSession()); c.session == nil {
				cs.baseline.End(c.dirs())
			}
			c.unlock()
		}
	}()
	c.pin()
	c.denied.count(c.paths.Denied) // before their names are looked for
	c.denied.countMasked(c.paths.Masked)
	private := cs.private(c)
	layers, err := openLayers(c, kind.agent)
	if err != nil {
		return nil, err
	}
	private = append(private, layers...)
	tools := newCaches(policy)
	var overlays []sandbox.Cache
	if !c.discard && (kind.shells || kind.agent != nil) { // not for hooks and servers: commands write there
		overlays = cs.overlays(c, tools, sockets(policy, kind.agent))
	}
	var programs []string
	if kind.shells || kind.agent != nil && kind.agent.Execs {
		programs = policy.Commands().DeniedPrograms()
	}
	if c.box, err = cs.openSession(c, kind.agent != nil, func(writes *sandbox.WriteGate) (*sandbox.Sandbox, error) {
		return startBox(ctx, c, private, overlays, programs, kind.agent, writes)
	}); err != nil {
		return nil, err
	}
	cs.guard(c)
	if c.scratch, err = tools.variables(scratch, c.box.Cached()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot create the directory for caches: %w", err), c.box.Close())
	}
	c.scratch = append(c.scratch, "TMPDIR="+c.temporary(private))
	if kind.shells {
		c.warm()
	}
	c.mu.Lock() // the follower uses it from now on
	defer c.mu.Unlock()
	c.life, c.end = context.WithCancel(context.Background())
	if !c.discard && (kind.shells || kind.agent != nil) && policy.Commands().Network().Publish {
		c.ports = &ports{life: c.life, publish: func(ctx context.Context) { c.box.Publish(ctx, cs.log) }}
	}
	if c.watch.feed, _ = changes.Open(maxWatches); c.watch.feed != nil {
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

// guard has the baseline take out what no mount holds.
func (cs *Pool) guard(c *Sandbox) {
	if !c.discard {
		guarded := c.box.Guarded()
		c.mu.Lock() // a session may read it
		c.guarded = guarded
		c.mu.Unlock()
		cs.baseline.Guard(guarded)
	}
	if c.session != nil { // the baseline counts it when it is active only
		cs.baseline.End(c.dirs())
	}
}

// judgesExecs reports whether the programs that commands start are judged: if there is a rule about them, and this
// machine supports it.
func judgesExecs(policy *guard.Policy) bool {
	return policy.Commands().JudgesExecs() &&
		sandbox.ExecGateWorks(sandbox.Backend(policy.Commands().Containment().Name)) == nil
}

// sameStarts is how often the start of the detected kind of sandbox is tried before another kind. A start fails if a
// covered file is replaced at the same time, and the other kind looks up each file for every command.
const sameStarts = 3

// startBox starts the sandbox, and checks that it enforces what the verdict relies on: after a temporary error a
// weaker kind may have been started.
func startBox(ctx context.Context, c *Sandbox, private []sandbox.Private, overlays []sandbox.Cache, programs []string,
	agent *Agent, writes *sandbox.WriteGate) (box *sandbox.Sandbox, err error) {
	policy, paths := c.policy, c.paths
	rules, scratch := policy.Commands().Network(), policy.Commands().Scratch()
	what := sandbox.Policy{
		Writable: paths.Writable, ReadOnly: slices.Concat(paths.ReadOnly, c.held), Pinned: paths.Control.Steps,
		Denied: paths.Denied,
		Masked: paths.Masked, Shown: paths.Shown, Programs: programs, Private: private, Caches: overlays,
		Network: sandbox.Network{AllowedDomains: rules.Allowed, DeniedDomains: rules.Denied,
			AllowPrivate: rules.Private, PortRecords: rules.PortRecords}, Sockets: sockets(policy, agent),
		Execs: judgesExecs(policy),
	}
	if agent != nil {
		if !slices.Contains(what.Writable, scratch) { // it lies in a root, where a layer may cover it
			what.Writable = append(slices.Clip(what.Writable), scratch)
		}
		what.Execs = agent.Execs
	}
	if c.discard {
		what.Overlay, what.Temporary = maxDiscarded, []string{scratch}
		for _, d := range private {
			what.Temporary = append(what.Temporary, d.Name)
		}
		what.Network.AllowedDomains, what.Sockets = nil, nil // a person is asked about each host anew
	}
	same := sandbox.Options{Backends: []sandbox.Backend{sandbox.Backend(policy.Commands().Containment().Name)},
		Ahead: agent != nil, Writes: writes}
	what.Masked = append(slices.Clip(what.Masked), scratches(overlays, scratch)...)
	if c.cell == nil && !c.discard {
		what.Network.Secrets = secrets(policy.Commands())
		c.copied = maskFiles(policy.Commands(), &what)
		c.logsIn(&what)
	}
	if c.cell != nil {
		what.Network.AllowedDomains, what.Execs, what.Sockets = c.cell.Domains, false, nil
		what.Network.Secrets = c.cell.Secrets
		same.Resolve = c.cell.resolve
	}
	for range sameStarts {
		if box, err = sandbox.Start(ctx, what, same); err == nil {
			break
		}
	}
	if err != nil {
		box, err = sandbox.Start(ctx, what, sandbox.Options{Resolve: same.Resolve, Writes: writes})
	}
	if err != nil {
		return nil, err
	}
	held := box.Report().Enforces
	if !held.Writes || !held.Processes || policy.Commands().Containment().Denies && !held.Denies {
		err := errors.New("the sandbox that was started enforces less than the rules require: repeat the call")
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

// temporary is the directory for temporary files where it is private to the caller. It is short: the path of a Unix
// socket has at most 107 bytes, and test programs make them deep below TMPDIR.
const temporary = "/tmp"

// temporary returns the directory in which commands make temporary files.
func (c *Sandbox) temporary(private []sandbox.Private) string {
	if c.box.Report().Backend == sandbox.Namespaces && holds(private, temporary) {
		return temporary
	}
	return filepath.Join(c.policy.Commands().Scratch(), scratchTemporary)
}

// sockets returns the sockets of the host that commands, or an agent, may connect to.
func sockets(policy *guard.Policy, agent *Agent) []string {
	list := policy.Commands().Network().Sockets
	if agent != nil {
		list = slices.Concat(list, agent.Sockets)
	}
	return list
}

// scratchTemporary is the directory for temporary files below the scratch directory.
const scratchTemporary = "tmp"

// holds reports whether a directory is one of the private ones.
func holds(private []sandbox.Private, dir string) bool {
	return slices.ContainsFunc(private, func(p sandbox.Private) bool { return p.Name == dir })
}
