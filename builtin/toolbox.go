package builtin

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"toolhost/builtin/internal/atomicfile"
	"toolhost/builtin/internal/search"
	"toolhost/builtin/internal/shell"
)

// A Toolbox holds what the tools of one host share: the search engine, the shells, and the journal of files
// that are being written in place. Use [OpenToolbox], and close it: what its shells run ends with it.
type Toolbox struct {
	search *search.Engine
	shell  *shell.Runner
	locks  atomicfile.Locks
	// journal is where content is saved while a file is written in place; "" where nothing can be kept.
	journal string
	// admitted is where it is said once that Bash is not contained.
	admitted sync.Once
}

// A ToolboxConfig says where the toolbox keeps what must outlive the process.
type ToolboxConfig struct {
	// StateDir is the host's state directory; "" when nothing can be kept.
	StateDir string
	// Log receives what was mended after a crash. It must not be nil.
	Log *slog.Logger
}

// OpenToolbox mends what a killed host left half done, and starts the first shells.
func OpenToolbox(cfg ToolboxConfig) (*Toolbox, error) {
	box := &Toolbox{search: search.New(search.Config{})}
	if cfg.StateDir != "" {
		box.journal = filepath.Join(cfg.StateDir, "journal")
		if err := os.MkdirAll(box.journal, 0o700); err != nil {
			box.journal = ""
		} else {
			box.recover(cfg.Log)
		}
	}
	runner, err := shell.New(shell.Config{})
	if err != nil {
		return nil, errors.Join(err, box.search.Close())
	}
	box.shell = runner
	return box, nil
}

// recover mends what a host that was killed left behind, and says what it did.
func (b *Toolbox) recover(log *slog.Logger) {
	report, err := atomicfile.Recover(context.Background(), b.journal)
	if err != nil {
		log.Warn("files of an earlier run could not be mended", "error", err)
	}
	for _, path := range report.Restored {
		log.Warn("an interrupted write was undone", "file", path)
	}
	for path, saved := range report.Saved {
		log.Warn("a file was torn by an interrupted write and has been changed since; its old content was saved", "file", path, "saved", saved)
	}
}

// Close ends every command that runs and everything it started.
func (b *Toolbox) Close() error {
	return errors.Join(b.shell.Close(), b.search.Close())
}

// Reexec turns this process into a part of a host when its arguments say so, and then does not return. A
// program that opens a toolbox calls it first in main.
func Reexec(args []string) { shell.RunSupervisor(args) }
