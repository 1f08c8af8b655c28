package builtin

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/memory"
	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/builtin/internal/search"
	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/builtin/internal/task"
	"github.com/toolhost/toolhost/builtin/internal/web"
	"github.com/toolhost/toolhost/builtin/internal/worktree"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/statedir"
)

// A Runtime has what the tools of one host share: the search engine, the shells, and the journal of files that are
// being written in place. [OpenRuntime] creates one. Close ends all its commands.
type Runtime struct {
	search      *search.Engine
	shell       hostShell
	tasks       task.Table
	plans       plans
	locks       atomicfile.Locks
	temps       atomicfile.Temps
	history     *journal.Journal
	checkpoints *checkpoints
	settling    sync.Mutex // held while the commands of killed hosts are settled
	log         *slog.Logger
	questions   openQuestions
	// decoding limits how many documents are converted concurrently, see convert: each may take up to
	// document.MaxDecoded bytes.
	decoding *semaphore.Weighted
	// cache is the directory for results that are slow to compute. Commands cannot access it. "" if there is none.
	cache string
	pdf   document.Compiler
	// journal is the directory for the old content of a file while it is written in place. "" without a state directory.
	journal   string
	baseline  *baseline.Keeper
	worktrees worktree.Room // zero without a state directory
	entered   entered
	web       *web.Client
	// sandboxes contain commands, if this machine supports it.
	sandboxes *sandboxpool.Pool
	// probe returns what this machine can contain. The first call tests it.
	probe func() sandbox.Report
	// admitted makes the note that Bash is not contained appear once.
	admitted sync.Once
	// private is RuntimeConfig.Private.
	private *privatedir.Store
	// closing keeps probe from beginning a test.
	closing atomic.Bool
}

// A RuntimeConfig configures [OpenRuntime].
type RuntimeConfig struct {
	// StateDir is the state directory of the host, or "".
	StateDir string
	// Scratch is the directory with one directory per principal, for the temporary files and caches of contained commands.
	// Without it nothing is contained.
	Scratch string
	// Private manages the private directories of contained commands, which replace those of the host. The runtime closes
	// it. It may be nil.
	Private *privatedir.Store
	// Seatbelt lets the sandbox of macOS contain commands.
	Seatbelt bool
	// Search says what is cached for searches. The zero value caches lists of files and no contents.
	Search settings.Search
	// Baseline removes what commands must not leave. The runtime closes it. Nil means one without a state directory.
	Baseline *baseline.Keeper
	// CommandWait is how long the first command waits until its workspace has been read, so that its changes can be
	// undone. Zero means 2 s.
	CommandWait time.Duration
	// Version is sent to web servers.
	Version string
	// Log receives what was repaired after a crash. It must not be nil.
	Log *slog.Logger
}

// convert waits until a document of that many bytes may be converted: two at once, and a large one alone. The caller
// calls release.
func (b *Runtime) convert(ctx context.Context, size int64) (release func(), err error) {
	const large = 16 << 20 // bytes; a notebook or picture takes several times as much memory
	weight := int64(1)
	if size > large {
		weight = imagesAtOnce
	}
	if err := b.decoding.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { b.decoding.Release(weight) }, nil
}

// imagesAtOnce is how many small documents are converted concurrently.
const imagesAtOnce = 2

// OpenRuntime opens a runtime, and repairs files that a killed host has left incomplete. [Runtime.Warm] or the first
// command starts what commands need.
func OpenRuntime(cfg RuntimeConfig) (*Runtime, error) {
	if cfg.Baseline == nil {
		cfg.Baseline = baseline.Open("", cfg.Log)
	}
	box := &Runtime{
		baseline: cfg.Baseline,
		search:   openSearch(cfg.Search), log: cfg.Log,
		web:      web.NewClient("toolhost/" + cmp.Or(cfg.Version, "0")),
		decoding: semaphore.NewWeighted(imagesAtOnce),
		private:  cfg.Private,
	}
	var overlays string
	if cfg.StateDir != "" {
		box.journal = filepath.Join(cfg.StateDir, journalName)
		if err := os.MkdirAll(box.journal, 0o700); err != nil {
			box.journal = ""
		} else {
			box.recover(cfg.Log)
		}
		if err := removeSavedIndexes(cfg.StateDir); err != nil {
			cfg.Log.Warn("cannot remove the search indexes of an earlier version", "error", err)
		}
		box.cache, overlays = filepath.Join(cfg.StateDir, "cache"), filepath.Join(cfg.StateDir, "overlays")
		box.worktrees = Worktrees(cfg.StateDir)
	}
	box.sandboxes = sandboxpool.New(cfg.Log, cfg.Baseline, overlays)
	if err := box.openHistory(cfg.StateDir); err != nil { // after the repair: it reads files
		return nil, errors.Join(err, box.search.Close())
	}
	box.checkpoints = openCheckpoints(box.history, cfg.CommandWait)
	box.probe = sync.OnceValue(func() sandbox.Report {
		if box.closing.Load() {
			return sandbox.Report{Why: []string{"the host is closing"}}
		}
		return probe(cfg)
	})
	return box, nil
}

// journalName is the directory below the state directory for [Runtime].journal.
const journalName = "journal"

// openHistory opens the history of changes. Without a usable directory nothing is recorded, and the result of each
// change says so.
func (b *Runtime) openHistory(state string) (err error) {
	cfg := journal.Config{Log: b.log, Torn: func(path string) bool { return atomicfile.Torn(b.journal, path) }}
	if state != "" {
		cfg.Dir = filepath.Join(state, "history")
	}
	if b.history, err = journal.Open(cfg); err != nil && state != "" {
		b.log.Warn("cannot open the history: changes cannot be undone", "error", err)
		cfg.Dir = ""
		b.history, err = journal.Open(cfg)
	}
	return err
}

// probeTime limits the test of what this machine can contain, which takes about 20 ms.
const probeTime = 10 * time.Second

// probe tests what this machine can contain.
func probe(cfg RuntimeConfig) sandbox.Report {
	if cfg.Scratch == "" {
		return sandbox.Report{Why: []string{"there is no directory for temporary files"}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	return sandbox.Probe(ctx, cfg.Seatbelt)
}

// Containment returns what contains the commands of this host. The first call tests it, in about 20 ms.
func (b *Runtime) Containment() guard.Containment {
	r := b.probe()
	return guard.Containment{
		Writes: r.Enforces.Writes && r.Enforces.Processes, Denies: r.Enforces.Denies && r.Enforces.Processes,
		Name: string(r.Backend), Why: r.Text(),
	}
}

// Warm starts the sandbox and the shells of a principal before its first command, and begins to read the roots if the
// changes of commands are kept.
func (b *Runtime) Warm(ctx context.Context, principal string, policy *guard.Policy, keepChanges bool) error {
	if keepChanges {
		b.readRoots(&Env{Principal: principal, Policy: policy})
	}
	b.recover(b.log) // again: a process that a killed host has just started may have held its locks at the first time
	sweepWorktrees(ctx, b.worktrees, b.log)
	if b.SandboxReport().Backend != sandbox.Namespaces {
		if err := supervise.Harden(); err != nil { // namespaces do not need it, and could not start after it
			b.log.Warn("cannot protect this process from being traced by commands", "error", err)
		}
	}
	if !policy.Commands().Containment().Writes {
		_, err := b.shell.get(policy)
		return err
	}
	if b.sandboxes.Has(principal) || policy.Commands().Discard() {
		return nil // a command has started it, or each plan has its own
	}
	c, err := b.sandboxes.Acquire(ctx, principal, policy)
	if err != nil {
		return err
	}
	b.sandboxes.Release(c)
	return nil
}

// recover repairs files that a killed host has left incomplete, and logs what it did.
func (b *Runtime) recover(log *slog.Logger) {
	report, err := atomicfile.Recover(context.Background(), b.journal)
	if err != nil {
		log.Warn("cannot repair files of an earlier run", "error", err)
	}
	for _, path := range report.Restored {
		log.Warn("an interrupted write was undone", "file", path)
	}
	for path, saved := range report.Saved {
		log.Warn("a file was torn by an interrupted write and has been changed since; its old content was saved",
			"file", path, "saved", saved)
	}
}

// SandboxReport returns what this machine can contain. The first call tests it, in about 20 ms.
func (b *Runtime) SandboxReport() sandbox.Report {
	return b.probe()
}

// TryShell runs a command where a principal's commands run, and returns the shell's version and PATH.
func (b *Runtime) TryShell(ctx context.Context, principal string, policy *guard.Policy) (version, path string,
	err error) {
	where, err := place(ctx, &Env{Runtime: b, Principal: principal, Policy: policy}, guard.Exec{})
	if err != nil {
		return "", "", err
	}
	defer where.leave()
	r, err := where.runner.Run(ctx, shell.Command{Text: `echo "$BASH_VERSION"; echo "$PATH"`, Dir: policy.Roots()[0]})
	if err != nil {
		return "", "", err
	}
	version, path, _ = strings.Cut(strings.TrimSpace(r.Text), "\n")
	return version, path, nil
}

// Close ends all commands with their descendants.
func (b *Runtime) Close() error {
	b.tasks.Close(agentKind, callKind) // commands end with what they run on
	b.closing.Store(true)
	b.probe() // waits for a test that runs
	defer b.temps.Close()
	b.pdf.Close()
	err := b.sandboxes.Close()
	unwatched := make(chan error) // ending a watch is slow in the kernel, so end all concurrently
	go func() { unwatched <- b.checkpoints.close() }()
	go func() { unwatched <- b.baseline.Close() }()
	err = errors.Join(err, b.private.Close(), b.shell.close(), b.entered.close(), <-unwatched, <-unwatched)
	b.sandboxes.Unwatch()
	return errors.Join(err, b.history.Close(), b.search.Close())
}

// ForgetSandbox ends the sandbox of a principal that has ended.
func (b *Runtime) ForgetSandbox(principal string) { b.sandboxes.Forget(principal) }

// StartHook starts the process of a hook under a supervisor, which ends its descendants with it.
func StartHook(s hook.Spec) (hook.Process, error) {
	p, err := supervise.Start(supervise.Spec{Argv: s.Argv, Dir: s.Dir, Env: s.Env, Files: s.Files})
	if err != nil {
		return nil, err
	}
	return supervised{p}, nil
}

// A supervised process implements hook.Process.
type supervised struct{ supervise.Process }

// Wait tells how the process ended.
func (p supervised) Wait() (exitCode int, err error) {
	s, err := p.Process.Wait()
	return s.ExitCode, err
}

// Kill ends the process and everything it started.
func (p supervised) Kill() (refused []string, err error) {
	_, err = p.Process.Kill()
	return nil, err
}

// InCall reports whether this process descends from a command or task of a host. If [ownprocess.InCommand] is not
// supported, it uses the environment, which a command can change.
func InCall() bool { return ownprocess.InCommand() || os.Getenv(supervise.CallVariable) != "" }

// Prepare sets the memory limit of this process by the limits of the system, and marks inherited descriptors
// close-on-exec. A program that opens a runtime calls it once in main. The error names a limit that is too low.
func Prepare() error { return errors.Join(memory.Bound(), supervise.CloseInherited()) }

// openSearch makes the engine of Glob and Grep.
func openSearch(s settings.Search) *search.Engine {
	const mebi = 1 << 20
	cfg := search.Config{MaxMemory: memory.Most(int64(s.Memory) * mebi), MaxFile: memory.Most(search.DefaultMaxFile),
		MaxRoots: s.Roots, Idle: s.Idle}
	if !s.Index {
		cfg.MaxMemory = -1
	}
	return search.New(cfg)
}

// removeSavedIndexes removes the indexes of contents that earlier versions saved in the state directory, which may be
// shared with other programs: only files of their names go, and the directory if nothing else is in it.
func removeSavedIndexes(stateDir string) error {
	dir := filepath.Join(stateDir, "search")
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() { // a link is not followed
		return nil
	}
	err = statedir.SweepDir(dir, statedir.Limits{}, func(e fs.DirEntry) statedir.Kind {
		if ext := filepath.Ext(e.Name()); e.Type().IsRegular() &&
			(ext == ".idx" || ext == ".new" || e.Name() == "lock") {
			return statedir.Unfinished
		}
		return statedir.Foreign
	})
	_ = os.Remove(dir) // it fails if something else is in it
	return err
}

// SearchStats describes the index of one root.
type SearchStats = search.Stats

// SearchStats tells what is kept of a root, by its real path, for searches. It starts nothing.
func (b *Runtime) SearchStats(root string) SearchStats { return b.search.Stats(root) }
