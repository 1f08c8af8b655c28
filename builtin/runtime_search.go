package builtin

import (
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/memory"
	"github.com/toolhost/toolhost/builtin/internal/search"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
)

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
