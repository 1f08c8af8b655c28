// Package search is the engine of Grep and Glob: the files and lines that
// ripgrep 15 would find, found within the host.
//
// Semantics are ripgrep's, with `--hidden`, without `.git`, and with `--crlf`
// unless the pattern names carriage returns. Package builtin/internal/search/walk lists
// directories and opens files, builtin/internal/search/ignore and
// builtin/internal/search/glob choose the files, and builtin/internal/search/pattern
// reads Rust's regex syntax. This package finds the lines and renders the result.
//
// From the second wide query of a root on the engine keeps the list of its files, in
// memory only, and updates it by the events of the system instead of listing all
// directories again. An index of contents
// (builtin/internal/search/index) excludes files that cannot match. Neither changes an
// answer: a query sees every edit whose system call returned before it.
// Three kinds of changes are announced by no system and missed where contents are kept:
// stores through a mapping that is still open, and writes through a hard link
// from outside of the root that was made after the file was examined, or
// through a descriptor of a file that was made without a name (O_TMPFILE).
//
// The engine knows nothing of tools and settings: the caller has checked the
// path, and Scope.Hidden decides what does not exist.
package search

import (
	"cmp"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// Config holds the budgets of an Engine. The zero value of each field takes
// the default that it names.
type Config struct {
	// Workers is how many files are searched at once in one call; default: one
	// per processor.
	Workers int
	// MaxFile is the size in bytes beyond which a file is reported instead of searched.
	// A file is held in memory as a whole, once per worker. Default 256 MiB.
	MaxFile int64
	// MaxText is the size in bytes at which a result ends as if its Limit was
	// reached. Default 16 MiB.
	MaxText int
	// MaxLine is the length in bytes beyond which a line is clipped around its
	// match. Default 500; negative: never.
	MaxLine int
	// MaxIgnored is how many ignored files are counted before the note says
	// "more than"; directories that are ignored as a whole are listed only as
	// far as that. Default 2,000: about 2 ms of listing.
	MaxIgnored int
	// GlobalIgnore is the user's global excludes file. Default: what git uses,
	// core.excludesFile or git/ignore in the configuration directory.
	GlobalIgnore string
	// MaxKept is how many files the kept list of one root may have; a larger
	// tree is walked in each query. Default 400,000, about 100 MB; negative:
	// nothing is kept between queries.
	MaxKept int
	// MaxRoots is how many roots are kept at once. Default 4.
	MaxRoots int
	// MaxWatches is how many directories of one root are watched; the others
	// are examined in each query. Default 65,536: a third of what Linux allows
	// a user with some memory; each takes about 1 KiB of the kernel's.
	MaxWatches int
	// MaxMemory is how many bytes of indexes and, up to a twentieth, of contents are kept of all
	// roots together. Default 256 MiB; negative: none, only lists.
	MaxMemory int64
	// Idle is after what time without a query all that is kept of a root is
	// released. Default 30 minutes.
	Idle time.Duration
}

const (
	DefaultMaxFile    = 256 << 20
	defaultMaxText    = 16 << 20
	defaultMaxLine    = 500
	defaultMaxIgnored = 2000
	defaultMaxKept    = 400_000
	defaultMaxRoots   = 4
	defaultMaxWatches = 65_536
	defaultMaxMemory  = 256 << 20
	defaultIdle       = 30 * time.Minute
)

// Engine answers queries. It may be used by many goroutines at once.
type Engine struct {
	config Config
	cache  *treeCache
	texts  *textCache
	user   userFiles
}

// New returns an engine; Close it when done.
func New(c Config) *Engine {
	c.Workers = cmp.Or(max(c.Workers, 0), runtime.GOMAXPROCS(0))
	c.MaxFile = cmp.Or(c.MaxFile, DefaultMaxFile)
	c.MaxText = cmp.Or(c.MaxText, defaultMaxText)
	c.MaxLine = cmp.Or(c.MaxLine, defaultMaxLine)
	c.MaxIgnored = cmp.Or(c.MaxIgnored, defaultMaxIgnored)
	c.MaxKept = cmp.Or(c.MaxKept, defaultMaxKept)
	c.MaxRoots = cmp.Or(max(c.MaxRoots, 0), defaultMaxRoots)
	c.MaxWatches = cmp.Or(max(c.MaxWatches, 0), defaultMaxWatches)
	c.MaxMemory = cmp.Or(c.MaxMemory, defaultMaxMemory)
	c.Idle = cmp.Or(max(c.Idle, 0), defaultIdle)
	e := &Engine{config: c, texts: newTextCache(c.MaxMemory), user: userFiles{places: findExcludes()}}
	e.cache = newTreeCache(e)
	return e
}

// Close releases what the engine keeps: memory, watches, descriptors and the
// goroutines that work on it. Queries must have ended.
func (e *Engine) Close() error {
	e.cache.close()
	return nil
}

// Scope limits what may be searched.
type Scope struct {
	// Base is the absolute directory that printed paths and globs are relative
	// to: the working root. A path outside of it is printed whole.
	Base string
	// Path is the absolute file or directory to search: the real path (no
	// symbolic link in it), already judged.
	Path string
	// Name is what Path is called in results, in errors and in patterns; results are then not relative to Base. Hidden
	// and Asked still get paths on disk. No ignore files above such a directory apply, and nothing of it is kept between
	// queries. If Name is empty, Path is used.
	Name string
	// Hidden reports which files and directories do not exist: they appear
	// neither in results nor in counts nor in errors, and are never opened. It
	// is called by several goroutines, and answers the same of a path each time.
	// Nil: everything exists.
	Hidden func(real string, dir bool) bool
	// HiddenLink reports whether a file with several names is hidden under one of them. It gets the file's device, its
	// inode, and the time of its last change of any kind in nanoseconds since 1970, because the file at a name may be
	// another one than when Hidden learnt the names. It is called by several goroutines. Nil: none is hidden.
	HiddenLink func(device, inode uint64, status int64) bool
	// Asked reports a file whose contents are not to be shown here, though it exists. It
	// is called by several goroutines. Nil: there is none.
	Asked func(real string) bool
	// HiddenTag identifies the rules of Hidden: it must differ whenever an answer of Hidden may. Without a tag contents
	// are neither kept nor used.
	HiddenTag string
}

// called is the name of a path on disk, of Path or below it, in results and errors.
func (s *Scope) called(path string) string {
	if s.Name == "" {
		return path
	}
	return s.Name + strings.TrimPrefix(path, filepath.Clean(s.Path))
}

func (s *Scope) hides(real string, dir bool) bool {
	return s.Hidden != nil && s.Hidden(real, dir)
}

// hidesLink reports whether a file is hidden under another of its names.
func (s *Scope) hidesLink(stamp walk.Stamp) bool {
	return s.HiddenLink != nil && stamp.Links > 1 && s.HiddenLink(stamp.Device, stamp.Inode, stamp.Status)
}

// Mode is the kind of Grep's output.
type Mode uint8

const (
	FilesWithMatches Mode = iota // paths, newest first
	Content                      // lines, in path order
	Count                        // path:number of matching lines, in path order
)

// GrepQuery is one search.
type GrepQuery struct {
	Scope
	Pattern string
	// Globs choose files as ripgrep's --glob does: `!` excludes, the last match
	// wins, a match overrides ignore files.
	Globs []string
	// Types choose files by ripgrep's --type names.
	Types []string
	Mode  Mode
	// Before and After are the lines of context around a match (Content).
	Before, After int
	LineNumbers   bool
	// Only shows the matches instead of their lines, each match as an entry (Content).
	Only       bool
	IgnoreCase bool
	// Multiline lets a match span lines, and `.` match a newline unless the pattern says (?-s).
	Multiline bool
	// Limit is how many entries are shown (0: all), after the first Offset ones.
	// An entry is a path, or in Content mode a printed line or match.
	Limit, Offset int
	// NoIgnore searches ignored files too (never .git).
	NoIgnore bool
	// Timeout ends the search with what was found; 0: none.
	Timeout time.Duration
}

// GrepResult is the result of a Grep.
type GrepResult struct {
	// Text is the result as the model reads it, without the notes. Lines end in
	// a newline; it is empty when nothing matched.
	Text string
	// Files counts the files with a match; Matches counts the matching lines, or with Multiline or Only the matches. In
	// FilesWithMatches mode both count files. If the page was full, they count up to the page's last entry; in
	// FilesWithMatches mode up to 1,000 files, or up to the page's last entry if that is later.
	Files, Matches int
	// Shown is the number of entries in Text.
	Shown int
	// NextOffset is the Offset of the next page, 0 when there is none.
	NextOffset int
	// IgnoredFiles counts the files that the globs and types allow but ignore files leave out. If the page was full,
	// only those before its last entry count. Files in ignored directories count only if nothing matched.
	IgnoredFiles int
	// IgnoredMore says that there are more than IgnoredFiles.
	IgnoredMore bool
	// Binary counts the files that were not, or not wholly, searched because they are binary; Unreadable the files and
	// directories that could not be read; TooLarge the files larger than Config.MaxFile.
	Binary, Unreadable, TooLarge int
	// TimedOut says that the search ended early and the result is partial.
	TimedOut bool
	// Notes say what was left out and how to get it, one line each, for the
	// end of the result.
	Notes []string
}

// GlobQuery asks for the paths that match a pattern.
type GlobQuery struct {
	Scope
	// Pattern is matched against paths relative to Path; one without a slash
	// matches at any depth. It may be absolute, when it lies within Path.
	Pattern string
	// Limit is how many paths are shown; 0: all.
	Limit    int
	NoIgnore bool
	// Timeout ends the search with what was found; 0: none.
	Timeout time.Duration
	// brackets says that [ and ] are ordinary characters.
	brackets bool
	// alike says that a name matches if it looks like one that matches.
	alike bool
}

// GlobResult is the result of a Glob, newest first.
type GlobResult struct {
	// Text holds the paths, one a line.
	Text string
	// Paths are the same, in the same order.
	Paths []string
	// Total is how many files match; Shown, how many are in Text.
	Total, Shown int
	// IgnoredFiles, IgnoredMore, TimedOut, Notes: see GrepResult.
	IgnoredFiles int
	IgnoredMore  bool
	TimedOut     bool
	Notes        []string
}

// ErrScope is wrapped by errors about the scope: a path that is gone, is not
// absolute, or is neither a file nor a directory.
var ErrScope = errors.New("cannot search")
