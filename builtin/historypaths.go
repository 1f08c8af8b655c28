package builtin

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/checkpoint"
	"github.com/toolhost/toolhost/builtin/internal/journal"
)

// HistoryBounds says how much the history keeps, and which of some roots it does not cover.
func HistoryBounds(roots []string) string {
	text := fmt.Sprintf("at most %.1f MiB a caller and a quarter of what is free without it, %d days, %d MiB a file; of "+
		"commands the first %d files of a workspace",
		float64(journal.DefaultQuota)/(1<<20), journal.DefaultMaxAge/(24*time.Hour), journal.DefaultMaxFile>>20,
		checkpoint.DefaultMaxFiles)
	for _, root := range outermost(roots) {
		if !tracked(root) {
			text += fmt.Sprintf("; of commands in %s nothing, because it is, or holds, the home directory", root)
		}
	}
	return text
}

// The functions of this file return the files that a query of the history concerns, for changes by any caller.
// They apply no rules: their result is used to find the rules that apply. Do not show it before those are applied.

// ChangedPaths returns the files of the changes that a filter finds and whose ids begin with id.
func ChangedPaths(stateDir string, f ChangeFilter, id string) (paths []string, err error) {
	store, err := openHistoryOf(stateDir)
	if err != nil {
		return nil, err
	}
	f.Principal = journal.AllPrincipals
	all, err := store.List(f)
	for _, c := range all {
		if strings.HasPrefix(c.ID, id) {
			paths = append(paths, c.Path)
		}
	}
	return withUnsettled(store, paths, err)
}

// PurgeHistory forgets the changes of all callers that began before a time, and returns how many calls these were.
func PurgeHistory(stateDir string, before time.Time) (calls int, err error) {
	store, err := openHistoryOf(stateDir)
	if err != nil {
		return 0, err
	}
	calls, err = journal.Purge(store, before)
	return calls, errors.Join(err, store.Close())
}

// UndonePaths returns the files that an undo would restore, or leave as they are.
func UndonePaths(stateDir string, sel UndoSelection) (paths []string, err error) {
	store, err := openHistoryOf(stateDir)
	if err != nil {
		return nil, err
	}
	sel.Principal = journal.AllPrincipals
	plan, err := store.PlanUndo(sel)
	if errors.Is(err, journal.ErrUnknown) { // it may be the entry of a killed command
		plan, err = new(journal.Undo), nil
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, f := range plan.Files {
		paths = append(paths, f.Path)
	}
	for _, r := range plan.Refused {
		paths = append(paths, r.Path)
	}
	return withUnsettled(store, paths, nil)
}

// withUnsettled adds the roots whose entries are not settled, so that the rules there are known, and closes the store.
func withUnsettled(store *journal.Journal, paths []string, err error) ([]string, error) {
	roots, unsettledErr := store.UnsettledRoots()
	for _, root := range roots {
		paths = append(paths, filepath.Join(root, "any"))
	}
	return distinct(paths), errors.Join(err, unsettledErr, store.Close())
}

func openHistoryOf(stateDir string) (*journal.Journal, error) {
	return journal.Open(journal.Config{Dir: filepath.Join(stateDir, "history"), Log: slog.New(slog.DiscardHandler),
		Torn: func(path string) bool { return atomicfile.Torn(filepath.Join(stateDir, journalName), path) }})
}

func distinct(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
