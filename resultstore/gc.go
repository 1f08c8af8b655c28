package resultstore

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// youngest is the age below which no result is removed: its path was just returned.
const youngest = time.Minute

// maxResults bounds the files of a directory, so that a stat of each before one is added takes milliseconds (7 ms for
// 2,000).
const maxResults = 2000

// Files whose names do not match are not touched, whatever directory was configured.
var (
	dirNames    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	resultNames = regexp.MustCompile(`^[0-9A-Za-z-]{1,32}-[A-Z2-7]{26}\.txt$`)
)

// result is a stored file.
type result struct {
	path string // below the home
	size int64
	time time.Time // of the last write
}

// tidyEvery is how often files over the age limit are looked for while no results are stored, which takes 4 ms for a
// thousand of them, or a sixteenth of that age if that is less.
const tidyEvery = time.Hour

// gc recovers from dead owners and removes files over the age limit, unless that was done recently. It retries what
// cannot be removed the next time, since a failure must not prevent new results from being stored. Callers hold the
// lock.
func (h *rootDir) gc(maxAge time.Duration) {
	h.recover()
	if !statedir.TidyDue(h.dir, min(tidyEvery, maxAge/16)) {
		return
	}
	entries, _ := h.entries(".")
	for _, e := range entries {
		if !e.IsDir() || !dirNames.MatchString(e.Name()) {
			continue
		}
		_, _ = h.evict(e.Name(), maxAge, remains{math.MaxInt64, math.MaxInt})
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > maxAge {
			_ = h.root.Remove(e.Name()) // fails, as it should, unless the directory is empty
		}
	}
	_ = statedir.NoteTidied(h.dir) // at worst it is tidied again
}

// recover removes the unfinished files of owners that have ended. Callers hold the lock.
func (h *rootDir) recover() {
	_, _ = statedir.Owned(filepath.Join(h.dir, openName), h.removeUnfinished)
}

// removeUnfinished removes the files of a dead owner: each file before its mark, the directory of the marks last.
func (h *rootDir) removeUnfinished(owner string) error {
	marks, err := h.entries(openName + "/" + owner)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, m := range marks {
		if dir, name, _ := strings.Cut(m.Name(), "."); dirNames.MatchString(dir) && resultNames.MatchString(name) {
			if err := h.removeIfThere(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		if err := h.removeIfThere(filepath.Join(openName, owner, m.Name())); err != nil {
			return err
		}
	}
	return h.removeIfThere(filepath.Join(openName, owner))
}

func (h *rootDir) removeIfThere(path string) error {
	if err := h.root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// entries lists a directory. Another kind of file in its place counts as empty: opening a pipe would block.
func (h *rootDir) entries(dir string) ([]fs.DirEntry, error) {
	info, err := h.root.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil, err
	}
	return fs.ReadDir(h.root.FS(), filepath.ToSlash(dir))
}

// evict removes from a directory the files over the age limit and then the oldest until at most most remains. Files
// that are young, unfinished or cannot be removed stay, so more may remain; it returns what does. Callers hold the
// lock.
func (h *rootDir) evict(dir string, maxAge time.Duration, most remains) (left remains, err error) {
	// Files first, marks second: a listed file that has no mark then was finished before.
	results, err := h.list(dir)
	if err != nil {
		return remains{}, err
	}
	unfinished, err := h.unfinished()
	if err != nil {
		return remains{}, err
	}
	for _, r := range results {
		left.bytes += r.size
	}
	left.files = len(results)
	slices.SortFunc(results, func(a, b result) int { return a.time.Compare(b.time) })
	for _, r := range results {
		age := time.Since(r.time)
		over := age > maxAge || left.bytes > most.bytes || left.files > most.files
		if !over || age < youngest {
			continue
		}
		if !unfinished[filepath.ToSlash(r.path)] && h.removeIfThere(r.path) == nil {
			left.bytes -= r.size
			left.files--
		}
	}
	return left, nil
}

// list returns the files of a directory, none when there is no such directory.
func (h *rootDir) list(dir string) ([]result, error) {
	entries, err := h.entries(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	results := make([]result, 0, len(entries))
	for _, e := range entries {
		if !resultNames.MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // an error: removed meanwhile
			results = append(results, result{filepath.Join(dir, e.Name()), info.Size(), info.ModTime()})
		}
	}
	return results, err
}

// unfinished returns the paths, with slashes, of the files that have a mark of any owner.
func (h *rootDir) unfinished() (map[string]bool, error) {
	marked := make(map[string]bool)
	owners, err := h.entries(openName)
	for _, o := range owners {
		if !o.IsDir() {
			continue
		}
		marks, err := h.entries(openName + "/" + o.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, m := range marks {
			marked[strings.Replace(m.Name(), ".", "/", 1)] = true
		}
	}
	return marked, err
}
