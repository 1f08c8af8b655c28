package builtin

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/history"
)

// HistoryQuota is how many bytes the earlier contents of files that one principal changed may take.
const HistoryQuota = history.DefaultQuota

// Which files a look at the history is about, whoever changed them. No rule is asked: that serves to find out
// which rules apply, and nothing of it may be shown before they were asked.

// ChangedPaths returns the files of the changes that a filter finds and whose ids begin with id.
func ChangedPaths(stateDir string, f ChangeFilter, id string) (paths []string, err error) {
	store, err := openHistoryOf(stateDir)
	if err != nil {
		return nil, err
	}
	f.Principal = history.AllPrincipals
	all, err := store.List(f)
	for _, c := range all {
		if strings.HasPrefix(c.ID, id) {
			paths = append(paths, c.Path)
		}
	}
	return distinct(paths), errors.Join(err, store.Close())
}

// UndonePaths returns the files that an undo would restore, or leave as they are.
func UndonePaths(stateDir string, sel UndoSelection) (paths []string, err error) {
	store, err := openHistoryOf(stateDir)
	if err != nil {
		return nil, err
	}
	sel.Principal = history.AllPrincipals
	plan, err := store.PlanUndo(sel)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, f := range plan.Files {
		paths = append(paths, f.Path)
	}
	for _, r := range plan.Refused {
		paths = append(paths, r.Path)
	}
	return distinct(paths), store.Close()
}

func openHistoryOf(stateDir string) (*history.Store, error) {
	return history.Open(history.Config{Dir: filepath.Join(stateDir, "history"), Log: slog.New(slog.DiscardHandler),
		Torn: func(path string) bool { return atomicfile.Torn(filepath.Join(stateDir, journalName), path) }})
}

func distinct(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
