package builtin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/builtin/internal/memory"
	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/builtin/internal/search"
	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/builtin/internal/web"
	"github.com/toolhost/toolhost/builtin/internal/worktree"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/settings"
)

// A Runtime holds what the tools of one host share: the search engine, the shells, and the journal of files
// that are being written in place. Use [OpenRuntime], and close it: what its shells run ends with it.
type Runtime struct {
	search      *search.Engine
	shell       hostShell
	tasks       *shell.Tasks
	agents      agentTable
	locks       atomicfile.Locks
	temps       atomicfile.Temps
	history     *history.Store
	checkpoints *checkpoints
	log         *slog.Logger
	questions   openQuestions
	// decoding bounds how many images are decoded at once: each may take up to document.MaxDecoded bytes.
	decoding *semaphore.Weighted
	// cache is where what is costly to make is kept, out of the reach of commands; "" where nothing can be.
	cache string
	// journal is where content is saved while a file is written in place; "" where nothing can be kept.
	journal   string
	baseline  *baseline.Keeper
	worktrees worktree.Room // zero without a state directory
	entered   entered
	web       *web.Client
	// sandboxes contain commands, where this machine can.
	sandboxes *sandboxpool.Pool
	// probe says what this machine can contain; the first call finds that out.
	probe func() sandbox.Report
	// admitted is where it is said once that Bash is not contained.
	admitted sync.Once
	// private is that of the configuration.
	private *privatedir.Store
	// work is what Close waits for.
	work work
}

// A RuntimeConfig says where the runtime keeps what must outlive the process.
type RuntimeConfig struct {
	// StateDir is the host's state directory; "" when nothing can be kept.
	StateDir string
	// Scratch is the directory in which each principal has one for the temporary files and caches of contained
	// commands; "": nothing is contained.
	Scratch string
	// Private keeps the directories that contained commands have of their own in the place of the host's; it is closed with the
	// runtime. Nil: they have none.
	Private *privatedir.Store
	// Root, if it has been searched before, is prepared for a search from the start; "": none is.
	Root string
	// Search is what is kept for searches. The zero value keeps lists of files and no contents.
	Search settings.Search
	// Baseline takes away what commands must not leave; the runtime closes it. Nil: one that keeps nothing in the state directory.
	Baseline *baseline.Keeper
	// CommandWait is how long a command waits until its workspace has been read, so that what it changes can be taken back; zero: 50 ms.
	CommandWait time.Duration
	// Version is sent to web servers.
	Version string
	// Log receives what was repaired after a crash. It must not be nil.
	Log *slog.Logger
}

// imagesAtOnce is how many images are decoded at once.
const imagesAtOnce = 2

// OpenRuntime repairs what a killed host left half done. What commands need is started by [Runtime.Warm], or by the first.
func OpenRuntime(cfg RuntimeConfig) (*Runtime, error) {
	if cfg.Baseline == nil {
		cfg.Baseline = baseline.Open("", cfg.Log)
	}
	box := &Runtime{
		baseline: cfg.Baseline,
		search:   openSearch(cfg.StateDir, cfg.Search), log: cfg.Log,
		web:       web.NewClient("toolhost/" + cmp.Or(cfg.Version, "0")),
		decoding:  semaphore.NewWeighted(imagesAtOnce),
		sandboxes: sandboxpool.New(cfg.Log, cfg.Baseline), private: cfg.Private, checkpoints: openCheckpoints(cfg.StateDir, cfg.CommandWait),
	}
	if cfg.Root != "" && runtime.GOMAXPROCS(0) > 1 { // one processor has enough to do
		box.search.Warm(cfg.Root)
	}
	if cfg.StateDir != "" {
		box.journal = filepath.Join(cfg.StateDir, journalName)
		if err := os.MkdirAll(box.journal, 0o700); err != nil {
			box.journal = ""
		} else {
			box.recover(cfg.Log)
		}
		box.cache = filepath.Join(cfg.StateDir, "cache")
		box.worktrees = Worktrees(cfg.StateDir)
	}
	if err := box.openHistory(cfg.StateDir); err != nil { // after what a crash tore has been repaired: it looks at files
		return nil, errors.Join(err, box.search.Close())
	}
	box.tasks = shell.NewTasks(shell.TaskLimits{})
	box.probe = sync.OnceValue(func() sandbox.Report {
		if !box.work.begin() {
			return sandbox.Report{Why: []string{"the host is closing"}}
		}
		defer box.work.end()
		return probe(cfg.Scratch)
	})
	return box, nil
}

// journalName is where in the state directory content is saved while a file is written in place.
const journalName = "journal"

// openHistory opens the journal of changes. Without a directory, or with one that cannot be used, nothing is
// journalled, and each change says so.
func (b *Runtime) openHistory(state string) (err error) {
	cfg := history.Config{Log: b.log, Torn: func(path string) bool { return atomicfile.Torn(b.journal, path) }}
	if state != "" {
		cfg.Dir = filepath.Join(state, "history")
	}
	if b.history, err = history.Open(cfg); err != nil && state != "" {
		b.log.Warn("changes are not journalled", "error", err)
		cfg.Dir = ""
		b.history, err = history.Open(cfg)
	}
	return err
}

// probeTime bounds the look at what this machine can contain, which takes some 20 ms.
const probeTime = 10 * time.Second

// probe finds out what this machine can contain.
func probe(scratch string) sandbox.Report {
	if scratch == "" {
		return sandbox.Report{Why: []string{"there is no directory for temporary files"}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	return sandbox.Probe(ctx)
}

// Containment says what holds the commands of this host. The first call finds that out, in some 20 ms.
func (b *Runtime) Containment() guard.Containment {
	r := b.probe()
	return guard.Containment{
		Writes: r.Enforces.Writes && r.Enforces.Processes, Denies: r.Enforces.Denies && r.Enforces.Processes,
		Name: string(r.Backend), Why: strings.Join(r.Why, " "),
	}
}

// Warm starts the sandbox and the shells of a principal ahead of its first command, and then looks at the roots
// ahead of the first search.
func (b *Runtime) Warm(ctx context.Context, principal string, policy *guard.Policy) error {
	defer b.warmSearch(policy)
	b.recover(b.log) // once more: a process that a killed host was just starting holds the locks of that host for a moment longer
	sweepWorktrees(ctx, b.worktrees, b.log)
	if b.SandboxReport().Backend != sandbox.Namespaces {
		if err := supervise.Harden(); err != nil { // namespaces need no such help, and would not start any more
			b.log.Warn("commands could reach into this process", "error", err)
		}
	}
	if !policy.Commands().Containment().Writes {
		_, err := b.shell.get(policy)
		return err
	}
	if b.sandboxes.Has(principal) {
		return nil // a command was faster
	}
	c, err := b.sandboxes.Acquire(ctx, principal, policy)
	if err != nil {
		return err
	}
	b.sandboxes.Release(c)
	return nil
}

// recover repairs what a killed host left, and says what it did.
func (b *Runtime) recover(log *slog.Logger) {
	report, err := atomicfile.Recover(context.Background(), b.journal)
	if err != nil {
		log.Warn("files of an earlier run could not be repaired", "error", err)
	}
	for _, path := range report.Restored {
		log.Warn("an interrupted write was undone", "file", path)
	}
	for path, saved := range report.Saved {
		log.Warn("a file was torn by an interrupted write and has been changed since; its old content was saved", "file", path, "saved", saved)
	}
}

// SandboxReport says what this machine can contain. The first call finds that out, in some 20 ms.
func (b *Runtime) SandboxReport() sandbox.Report {
	return b.probe()
}

// TryShell runs a command where a principal's commands run, and returns the shell's version and PATH.
func (b *Runtime) TryShell(ctx context.Context, principal string, policy *guard.Policy) (version, path string, err error) {
	where, err := place(ctx, &Env{Runtime: b, Principal: principal, Policy: policy}, bashInput{})
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

// Close ends every command that runs and everything it started.
func (b *Runtime) Close() error {
	b.agents.close()
	b.work.close()
	defer b.temps.Close()
	err := b.sandboxes.Close()
	unwatched := make(chan error) // the kernel takes its time to end a watch: that of all is the same
	go func() { unwatched <- b.checkpoints.close() }()
	go func() { unwatched <- b.baseline.Close() }()
	err = errors.Join(err, b.private.Close(), b.shell.close(), b.entered.close(), <-unwatched, <-unwatched)
	b.sandboxes.Unwatch()
	return errors.Join(err, b.history.Close(), b.search.Close())
}

// ForgetSandbox ends the sandbox of a principal that has ended.
func (b *Runtime) ForgetSandbox(principal string) { b.sandboxes.Forget(principal) }

// StartHook starts a hook's process under a supervisor, which ends with it everything that it started.
func StartHook(s hook.Spec) (hook.Process, error) {
	p, err := supervise.Start(supervise.Spec{Argv: s.Argv, Dir: s.Dir, Env: s.Env, Files: s.Files})
	if err != nil {
		return nil, err
	}
	return supervised{p}, nil
}

// A supervised process is one of the shell's as hooks know it.
type supervised struct{ supervise.Process }

// Wait tells how the process ended.
func (p supervised) Wait() (exitCode int, err error) {
	s, err := p.Process.Wait()
	return s.ExitCode, err
}

// Kill ends the process and everything it started.
func (p supervised) Kill() error {
	_, err := p.Process.Kill()
	return err
}

// Reexec turns this process into a part of a host when its arguments say so, and then does not return. A
// program that opens a runtime calls it first in main.
func Reexec(args []string) {
	sandbox.Init(args)
	document.Reexec(args)
	supervise.Run(args)
}

// InCall reports whether this process descends from a call of a host: from its command, or from a task that it left running. Where no
// mark is inherited ([sandbox.InCommand]) it goes by the environment, which a command can change.
func InCall() bool { return sandbox.InCommand() || os.Getenv(supervise.CallVariable) != "" }

// Prepare limits the memory of this process by what the system leaves it, and keeps what a launcher left open from the commands. A
// program that opens a runtime calls it once in main, after [Reexec]. The error names a limit under which the program cannot work.
func Prepare() error { return errors.Join(memory.Bound(), supervise.CloseInherited()) }

// openSearch makes the engine of Glob and Grep. Indexes are saved below the state directory, which no tool shows.
func openSearch(stateDir string, s settings.Search) *search.Engine {
	const mebi = 1 << 20
	cfg := search.Config{MaxMemory: memory.Most(int64(s.Memory) * mebi), MaxFile: memory.Most(search.DefaultMaxFile), MaxRoots: s.Roots, Idle: s.Idle, MaxDisk: int64(s.Disk) * mebi}
	if !s.Index {
		cfg.MaxMemory = -1
	}
	if s.Index && s.Persist && stateDir != "" {
		cfg.Dir = filepath.Join(stateDir, "search")
	}
	return search.New(cfg)
}

// warmSearch lets the lists of the roots be made, and saved indexes be loaded, ahead of the first search.
func (b *Runtime) warmSearch(policy *guard.Policy) {
	for _, root := range slices.Backward(policy.Roots()) { // the first is to count as used last
		b.search.Warm(root)
	}
}

// SearchStats is what is kept of one root for searches.
type SearchStats struct {
	// State is "walking" (nothing is kept), "listing" or "indexing" (under way), or "ready".
	State string
	// Files and Directories are in the kept list; Watches, of how many directories the system tells of changes.
	// The others are looked at in each search.
	Files, Directories, Watches int
	// Index is the size of the root's index in memory, Memory that of all that is kept of contents and indexes of
	// all roots, and Persisted that of the index on disk; in bytes.
	Index, Memory, Persisted int64
	// Unsaved is why the index could not be saved when that was last tried, or "".
	Unsaved string
}

// SearchStats tells what is kept of a root, by its real path, for searches. It starts nothing.
func (b *Runtime) SearchStats(root string) SearchStats {
	s := b.search.Stats(root)
	out := SearchStats{
		State: string(s.State), Files: s.Files, Directories: s.Directories, Watches: s.Watches,
		Index: s.Index, Memory: s.Memory, Persisted: s.Persisted,
	}
	if s.Unsaved != nil {
		out.Unsaved = s.Unsaved.Error()
	}
	return out
}
