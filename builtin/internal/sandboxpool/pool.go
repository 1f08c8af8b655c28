// Package sandboxpool manages the sandboxes in which the commands of each principal run, with warm shells. It keeps
// denied files covered in them, also when another program creates or replaces such a file while a command runs.
package sandboxpool

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/settle"
	"github.com/toolhost/toolhost/guard/sshagent"
	"github.com/toolhost/toolhost/guard/statedir"
)

// A Sandbox runs the commands of one principal under one snapshot of the rules. It has warm shells.
type Sandbox struct {
	key    string // of Acquire; "" for an agent
	policy *guard.Policy
	paths  guard.SandboxPaths

	mu sync.Mutex // guards the fields down to failed, and watch; never held together with the lock of the pool
	covered
	own     []string               // see [guard.Commands.OwnOfHome]
	held    []string               // hooks of repositories, which commands must not write, besides those of paths
	guarded []sandbox.Guarded      // files that no mount protects
	ssh     *sshagent.Agent        // of commands; or nil
	copied  map[string]fs.FileInfo // files of which commands have copies, as they were then
	shared  bool                   // it has no private directories
	discard bool                   // what commands change is dropped
	failed  bool                   // a denied file could not be covered again

	cell    *Cell           // nil but for a server
	session *settle.Session // of a server that sees the workspace, or of an agent; or nil
	box     *sandbox.Sandbox
	told    sync.Once      // for [Sandbox.DiscardNote]
	locks   []*flock.Flock // of layers
	overlay *statedir.Mark // of overlays; or nil
	scratch []string       // the variables that point into the directory for temporary files
	runner  *shell.Runner  // nil in a bare sandbox

	refusals refusals

	watch    watches       // of where covered files lie
	followed chan struct{} // closed when the watch is no longer followed

	ports *ports          // nil if no ports are published
	life  context.Context // of the sandbox
	end   context.CancelFunc

	users   int
	used    time.Time // when the last command began
	idle    bool      // out of use for good: no command has used it for long
	retired bool      // closed by its last user

	once  sync.Once // for close
	ended error     // the error of close
}

// covered are the files that a sandbox hides or protects with mounts.
type covered struct {
	looked        time.Time
	deniedAtMount map[string]*coveredFile // denied files as they were when they were covered
	fixed         map[string]*coveredFile // protected and masked files as they were when mounts were put on them
	// mounted are the writable directories: the sandbox holds the old one where a repository was cloned again.
	mounted coveredFiles
	absent  []string    // protected paths that did not exist, so that no mount protects them
	denied  deniedFiles // files that rules deny
}

// A Pool has the sandboxes of all principals.
type Pool struct {
	log        *slog.Logger
	baseline   *baseline.Keeper
	overlayDir string // of what commands write in caches of the host, see caches; "" if there is none
	tidying    sync.Once

	start func(context.Context, *guard.Policy, kind) (*Sandbox, error) // startSandbox, but in tests
	life  context.Context                                              // of the pool
	stop  context.CancelFunc                                           // ends life

	mu       sync.Mutex // held briefly: no sandbox starts and no directory is scanned under it
	open     map[string]*Sandbox
	starts   map[*start]bool
	retired  map[*Sandbox]bool // out of use, but not ended yet
	closed   bool
	starting sync.WaitGroup // of starts
	ends     sync.WaitGroup // of sandboxes that are ended in the background
	// unwatched are the watches of sandboxes that have ended.
	unwatched sync.WaitGroup
}

// New returns a Pool that logs its errors to log. The keeper removes what commands must not leave. What they write in
// caches of the host lies below overlayDir, in the state directory; "" if there is none.
func New(log *slog.Logger, keeper *baseline.Keeper, overlayDir string) *Pool {
	cs := &Pool{log: log, baseline: keeper, overlayDir: overlayDir, open: map[string]*Sandbox{}}
	cs.starts, cs.retired = map[*start]bool{}, map[*Sandbox]bool{}
	cs.start = cs.startSandbox
	cs.life, cs.stop = context.WithCancel(context.Background())
	return cs
}

// lookAgain is how old the list of protected paths may be. Denied files are listed before every command.
const lookAgain = 10 * time.Second

// Limits of sandboxes. Each is some processes and mounts.
const (
	// maxSandboxes limits the sandboxes. Above it, the longest idle one is ended.
	maxSandboxes = 64
	// sandboxIdle is how long an idle sandbox is kept.
	sandboxIdle = 30 * time.Minute
)

// Runner returns the runner of commands in the sandbox.
func (c *Sandbox) Runner() *shell.Runner { return c.runner }

// Denies reports whether the sandbox enforces denied reads, in addition to the writable paths.
func (c *Sandbox) Denies() bool { return c.policy.Commands().Containment().Denies }

// Has reports whether a principal has a sandbox.
func (cs *Pool) Has(principal string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.open[principal] != nil
}

// stale returns a principal with a sandbox that has been idle too long, or if there are too many, the longest.
// Otherwise it returns "". The caller holds the lock.
func (cs *Pool) stale(mine string) string {
	oldest := ""
	for principal, c := range cs.open {
		if principal != mine && c.users == 0 && (oldest == "" || c.used.Before(cs.open[oldest].used)) {
			oldest = principal
		}
	}
	if oldest == "" || len(cs.open) <= maxSandboxes && time.Since(cs.open[oldest].used) < sandboxIdle {
		return ""
	}
	return oldest
}

// Release ends the use of a sandbox by a command.
func (cs *Pool) Release(c *Sandbox) {
	if c.session == nil {
		cs.baseline.End(c.dirs())
	}
	cs.leave(c)
}

// use counts a user of a sandbox. The caller holds the lock.
func (cs *Pool) use(c *Sandbox) {
	c.used = time.Now()
	if c.users++; c.users == 1 {
		c.ports.begin()
	}
}

// leave is the opposite of use. The last user ends a retired sandbox. The caller does not hold the lock.
func (cs *Pool) leave(c *Sandbox) {
	cs.mu.Lock()
	if c.users--; c.users == 0 {
		c.ports.end()
	}
	last := c.retired && c.users == 0
	cs.mu.Unlock()
	if last {
		cs.end(c)
	}
}

// Discard retires a sandbox that has died.
func (cs *Pool) Discard(principal string, c *Sandbox) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c != nil && cs.open[principal] == c {
		cs.evict(principal)
	}
}

// evict retires a sandbox, which ends with its last command. The caller holds the lock.
func (cs *Pool) evict(key string) {
	c := cs.open[key]
	delete(cs.open, key)
	c.retired, cs.retired[c] = true, true
	if c.users == 0 {
		cs.ends.Go(func() { cs.end(c) })
	}
}

// end ends a retired sandbox.
func (cs *Pool) end(c *Sandbox) {
	defer func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		delete(cs.retired, c)
	}()
	if err := c.close(cs); err != nil {
		cs.log.Warn("a sandbox could not be ended cleanly", "error", err)
	}
	if c.idle {
		cs.clear(c)
	}
}

// close ends the processes in the sandbox, and the sandbox. It may be called again.
func (c *Sandbox) close(cs *Pool) error {
	c.once.Do(func() {
		c.end()
		if c.runner != nil {
			c.ended = c.runner.Close()
		}
		c.ended = errors.Join(c.ended, c.box.Close())
		cs.warn(c.EndSession())
		if c.watch.feed != nil {
			cs.unwatched.Go(func() {
				_ = c.watch.feed.Close() // the watches have ended anyway
				<-c.followed
			})
		}
		c.ports.wait()
		c.unlock()
	})
	return c.ended
}

// all returns the sandboxes that have not ended. The caller holds the lock.
func (cs *Pool) all() []*Sandbox {
	return slices.AppendSeq(slices.Collect(maps.Values(cs.open)), maps.Keys(cs.retired))
}

// Close ends all sandboxes with their processes, including those that are being started, and retired ones in which a
// task runs.
func (cs *Pool) Close() error {
	cs.mu.Lock()
	cs.closed = true
	all := cs.all()
	cs.open = nil
	cs.mu.Unlock()
	cs.stop()
	cs.starting.Wait() // each has closed what it started
	var errs []error
	for _, c := range all {
		errs = append(errs, c.close(cs))
	}
	cs.ends.Wait()
	return errors.Join(errs...)
}

// Unwatch waits until the file watches of ended sandboxes are closed. The kernel takes about 15 ms to end a watch.
func (cs *Pool) Unwatch() { cs.unwatched.Wait() }

// upToDate covers all denied files that exist now. It returns false if that requires a new sandbox, or if this one has
// died. The caller holds the lock of the sandbox.
func (c *Sandbox) upToDate(policy *guard.Policy) bool {
	if c.failed || c.copiesOutdated() || c.mounted.replaced() || c.discard && c.box.Refresh() != nil {
		return false
	}
	for _, path := range c.absent {
		if _, err := os.Lstat(path); err == nil {
			return false // a program outside has created it; a new sandbox can mount over it
		}
	}
	if !slices.Equal(policy.Commands().OwnOfHome(), c.own) {
		return false // a program outside has created a directory that is not settled
	}
	if !c.pinsIntact() || !c.sameControl() || c.show() != nil {
		return false
	}
	if !policy.Commands().DeniesFiles() && time.Since(c.looked) < lookAgain {
		return true
	}
	now := policy.Commands().SandboxPaths()
	c.looked = time.Now()
	if !slices.Equal(now.ReadOnly, c.paths.ReadOnly) || !slices.Equal(now.Writable, c.paths.Writable) ||
		!slices.Equal(now.Masked, c.paths.Masked) || !slices.Equal(now.Shown, c.paths.Shown) {
		return false
	}
	if c.wrongTarget(now) {
		return false
	}
	var fresh []string
	for _, path := range now.Denied {
		file, err := lookAt(path)
		if old := c.deniedAtMount[path]; err == nil && (old == nil || !old.same(file)) {
			fresh = append(fresh, path)
		}
	}
	c.denied.count(fresh)
	links := c.denied.linked()
	if len(fresh)+len(links) == 0 {
		return true
	}
	if err := c.deny(append(links, fresh...)...); err != nil {
		return false
	}
	c.note(fresh)
	return true
}

// wrongTarget reports whether a hidden path was replaced by a symbolic link to a file that is not hidden. Some
// sandboxes resolve each path again for every command.
func (c *Sandbox) wrongTarget(now guard.SandboxPaths) bool {
	stray := func(path string) bool {
		_, held := slices.BinarySearch(now.Denied, path)
		return !held && now.Harmless(path)
	}
	for path := range c.deniedAtMount {
		if stray(path) {
			return true
		}
	}
	return slices.ContainsFunc(c.paths.Denied, stray)
}

// coverNew hides the scratch directory of another principal.
func (c *Sandbox) coverNew(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deniedAtMount[path] != nil {
		return nil
	}
	if err := c.deny(path); err != nil {
		c.failed = true
		return err
	}
	c.note([]string{path})
	return nil
}

// deny hides files from later commands.
func (c *Sandbox) deny(paths ...string) error {
	defer c.refresh()
	return c.box.Deny(paths...)
}

// hold protects files that have replaced protected ones from later commands.
func (c *Sandbox) hold(path string) error {
	defer c.refresh()
	return c.box.Hold(path)
}

// refresh replaces the warm shells if the view of a command is fixed when its shell starts.
func (c *Sandbox) refresh() {
	if c.runner != nil && c.box.Report().Backend != sandbox.Namespaces {
		c.runner.Renew()
	}
}

// spawn starts a process in the sandbox for the runner of shells.
func (c *Sandbox) spawn(spec supervise.Spec) (supervise.Process, error) {
	p, err := c.box.Spawn(sandbox.Spec{Argv: spec.Argv, Dir: spec.Dir, Env: spec.Env, Files: spec.Files,
		Execs: spec.Execs, Hosts: spec.Hosts})
	if err != nil {
		return nil, err
	}
	return contained{p}, nil
}

// Spawn starts a process in the sandbox, with the variables of env and those of the sandbox. hosts judges its
// connections. The function that [Pool.Cleanup] returns removes what it must not leave.
func (c *Sandbox) Spawn(argv []string, dir string, env []string, files []*os.File,
	hosts *connectgate.Gate) (sandbox.Process, error) {
	secret, passed := c.policy.Commands().SecretVariables(), shell.Inherited(c.policy.Commands().PassedVariables())
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		ours := name == "PATH" || name == "CLAUDE_PROJECT_DIR"
		return slices.Contains(secret, name) || !ours && !slices.Contains(passed, entry)
	})
	return c.box.Spawn(sandbox.Spec{Argv: argv, Dir: dir, Env: slices.Concat(env, c.scratch, c.box.Env()), Files: files,
		Hosts: hosts})
}

// A contained process implements supervise.Process for a process in the sandbox.
type contained struct{ sandbox.Process }

// The runner asks for a Finisher: without it each command waits for the end of its shell.
var _ supervise.Finisher = contained{}

// Wait waits for the process and returns how it ended.
func (p contained) Wait() (supervise.Status, error) {
	s, err := p.Process.Wait()
	return supervise.Status(s), err
}
