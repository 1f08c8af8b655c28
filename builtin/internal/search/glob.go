package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/builtin/internal/text"
)

// ErrGlob is wrapped by errors about a Glob pattern.
var ErrGlob = errors.New("invalid glob")

// Glob lists the files whose paths match a pattern, newest first. A literal directory at the start of the pattern is
// searched even if ignore files exclude it. If no file matches, Glob tries again with brackets as ordinary
// characters, and then for names that look like the pattern.
func (e *Engine) Glob(ctx context.Context, q GlobQuery) (*GlobResult, error) {
	r, err := e.glob(ctx, q)
	for _, as := range readings {
		if !as.may(q, r, err) {
			continue
		}
		named, failed := e.glob(ctx, as.read(q))
		switch {
		case failed == nil && named.Total > 0:
			named.Notes = append(named.Notes, as.note)
			return named, nil
		case failed == nil && named.IgnoredFiles > 0 && (r == nil || r.IgnoredFiles == 0):
			return named, nil
		}
	}
	return r, err
}

func (e *Engine) glob(ctx context.Context, q GlobQuery) (*GlobResult, error) {
	want, err := q.compile()
	if err != nil {
		return nil, err
	}
	e.cache.gate.enter()
	defer e.cache.gate.leave()
	limited, cancel := deadline(ctx, q.Timeout)
	defer cancel()
	scope, err := q.narrow(want)
	if err != nil || scope.Path == "" {
		return &GlobResult{Notes: want.throughLink(q)}, err
	}
	sel := &selection{noIgnore: q.NoIgnore}
	l, err := e.list(limited, scope, sel)
	if err != nil {
		return nil, err
	}
	defer l.close()
	w := newPathSet(want, l.within(q.Path))
	paths := l.paths()
	found, total := l.pick(limited, e.config.Workers, max(q.Limit, 0), paths, w)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &GlobResult{Total: total, Shown: len(found), TimedOut: limited.Err() != nil}
	r.show(l, paths, found)
	nothing := r.Total == 0 && !r.TimedOut
	ignored := func(f file) bool { return w.match(f.rel()) }
	r.IgnoredFiles, r.IgnoredMore = l.countIgnored(limited, sel, e.config.MaxIgnored, nothing, ignored)
	l.tell(anywhere)
	r.Notes = r.notes(l, q)
	if note := w.linkNotes(l, want, l.within(q.Path), nothing); note != "" {
		r.Notes = append(r.Notes, note)
	}
	return r, nil
}

// show writes the found files into the result. paths may be nil.
func (r *GlobResult) show(l *listing, paths *paths, found []byMtime) {
	r.Paths = make([]string, len(found))
	size := 0
	for i, a := range found {
		if paths != nil { // the paths are packed in memory: reading them causes fewer cache misses
			r.Paths[i] = l.shown + paths.at(int(a.number))
		} else {
			r.Paths[i] = l.printed(l.files[a.number])
		}
		size += len(r.Paths[i]) + 1
	}
	var out strings.Builder
	out.Grow(size)
	for _, path := range r.Paths {
		out.WriteString(printable(path))
		out.WriteByte('\n')
	}
	r.Text = validText(out.String())
}

// compile reads the pattern, relative to Path.
func (q *GlobQuery) compile() (*fileName, error) {
	if q.Pattern == "" {
		return nil, fmt.Errorf("%w: the pattern is empty; pass ** for all files", ErrGlob)
	}
	p := filepath.ToSlash(q.Pattern)
	top := withSlash(filepath.ToSlash(q.called(filepath.Clean(q.Path))))
	if strings.HasPrefix(p, "/") || filepath.IsAbs(q.Pattern) {
		rest, ok := strings.CutPrefix(p, top)
		if !ok {
			return nil, fmt.Errorf("%w %q: it does not lie within %s; pass its directory as path", ErrGlob, q.Pattern,
				q.called(q.Path))
		}
		p = rest
	} else if !strings.Contains(p, "/") {
		p = "**/" + p
	}
	p = strings.TrimPrefix(p, "./")
	if q.brackets {
		p = escapeBrackets(p)
	}
	if q.alike {
		p = text.LookAlike(p)
	}
	if strings.HasSuffix(p, "/") {
		p += "**"
	}
	if slices.Contains(strings.Split(p, "/"), "..") {
		return nil, fmt.Errorf("%w %q: `..` leads outside; pass the directory as path", ErrGlob, q.Pattern)
	}
	want, err := glob.Compile(p, glob.Options{}) // better errors than doublestar's, and limited expansion
	if err != nil {
		if _, plain := glob.Compile(filepath.ToSlash(q.Pattern), glob.Options{}); plain != nil {
			err = plain // positions in this error refer to the pattern as it was written
		}
		return nil, fmt.Errorf("%w %q: %w", ErrGlob, q.Pattern, err)
	}
	return &fileName{Pattern: want, text: p, alike: q.alike}, nil
}

// A fileName is the compiled pattern of a Glob, in doublestar's syntax. Simple patterns such as `**/*.go`, which
// nearly all are, mean the same to the matcher of ignore files. That one is used for them, because it only compares a
// suffix.
type fileName struct {
	*glob.Pattern
	text string
	// alike says that paths match if they look like the pattern: see text.LookAlike.
	alike bool
	// link is the first symbolic link in the literal directories of the pattern.
	link string
}

// throughLink returns a note if the pattern leads through a symbolic link.
func (n *fileName) throughLink(q GlobQuery) []string {
	if n.link == "" {
		return nil
	}
	name := q.called(n.link)
	if rel, ok := relativeTo(q.Base, name); ok {
		name = strings.TrimSuffix(rel, "/")
	}
	return []string{linksText([]string{printable(name)}, 0)}
}

// Match reports whether the path, with slashes, matches.
func (n *fileName) Match(path string) bool {
	if n.alike {
		path = text.LookAlike(path)
	}
	if n.Simple() {
		return n.Pattern.Match(path)
	}
	return doublestar.MatchUnvalidated(n.text, path) // glob.Compile has validated it
}

// narrow returns the scope of the literal directory at the start of the pattern. The scope has no path if that
// directory does not exist, is hidden, or is reached through a link.
func (q *GlobQuery) narrow(want *fileName) (Scope, error) {
	scope := q.Scope
	if want.Dir() == "" || want.alike {
		return scope, nil
	}
	info, err := os.Lstat(scope.Path)
	if err != nil || !info.IsDir() {
		return scope, nil // list reports the error
	}
	for name := range strings.SplitSeq(want.Dir(), "/") {
		if name == "" {
			continue
		}
		scope.Path = filepath.Join(scope.Path, name)
		if scope.Name != "" {
			scope.Name = filepath.Join(scope.Name, name)
		}
		info, err := os.Lstat(scope.Path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !walk.IsGone(err):
			return scope, fmt.Errorf("%w %s: %s", ErrScope, scope.called(scope.Path), reason(err))
		case err != nil || scope.hides(scope.Path, true):
			return Scope{}, nil
		case info.Mode()&fs.ModeSymlink != 0:
			want.link = scope.Path
			return Scope{}, nil
		case !info.IsDir():
			return Scope{}, nil
		}
	}
	return scope, nil
}

// pick returns the newest files that match, at most limit unless that is 0, and how many
// match; equal times go by path. paths may be nil.
func (l *listing) pick(ctx context.Context, workers, limit int, paths *paths, want *pathSet) (found []byMtime,
	total int) {
	var mu sync.Mutex
	var others sync.WaitGroup
	var next atomic.Int64
	all := newestFiles{limit: limit}
	pieces := (len(l.files) + pieceFiles - 1) / pieceFiles
	work := func(help func()) {
		own := newestFiles{limit: limit}
		matched, begun := 0, time.Now()
		for ctx.Err() == nil {
			piece := int(next.Add(1)) - 1
			if piece >= pieces {
				break
			}
			matched += l.date(piece*pieceFiles, min((piece+1)*pieceFiles, len(l.files)), paths, want, &own)
			if help != nil && time.Since(begun) > alone {
				help()
				help = nil
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all.files, total = append(all.files, own.files...), total+matched
	}
	work(func() {
		for range min(workers, pieces) - 1 {
			others.Go(func() { work(nil) })
		}
	})
	others.Wait()
	return all.sorted(), total
}

// alone is how long one worker works before others are started. Starting a thread, whose processor has none of the
// data in its caches, takes about as long.
const alone = 200 * time.Microsecond

// pieceFiles is how many files a worker looks at at once.
const pieceFiles = 2048

// date adds to into the matching files with numbers in [from, to), and returns how many match.
func (l *listing) date(from, to int, paths *paths, want *pathSet, into *newestFiles) (n int) {
	var buffer [pieceFiles + 1]int32
	for _, i := range want.among(l, paths, from, to, buffer[:0]) {
		date, err := l.dateOf(int(i))
		switch {
		case err == nil:
			into.add(byMtime{date, i})
			n++
		case !walk.IsGone(err):
			l.errors.add(l.printed(l.files[i]), err)
		}
	}
	return n
}

// dateOf returns when a file was changed, in nanoseconds since 1970. The error is walk.ErrNotRegular if the path is
// no longer a regular file.
func (l *listing) dateOf(i int) (int64, error) {
	if l.dates != nil && l.dates[i] != 0 {
		return l.dates[i], nil
	}
	info, err := l.root.Stat(l.files[i].rel())
	if err == nil && info.Kind != walk.File {
		err = walk.ErrNotRegular
	}
	return info.Stamp.Change, err
}

// comparePaths orders paths element by element: the files in a directory come right after the directory's name would.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return int(a[i]) - int(b[i])
	}
	return len(a) - len(b)
}
