package search

import (
	"cmp"
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

	"toolhost/builtin/internal/search/glob"
	"toolhost/builtin/internal/search/walk"
)

// ErrGlob is wrapped by errors about a Glob pattern.
var ErrGlob = errors.New("invalid glob")

// Glob lists the files whose paths match a pattern, newest first. A literal
// directory at the start of the pattern is searched whatever ignore files say
// of it.
func (e *Engine) Glob(ctx context.Context, q GlobQuery) (*GlobResult, error) {
	want, err := q.compile()
	if err != nil {
		return nil, err
	}
	e.keeper.gate.enter()
	defer e.keeper.gate.leave()
	limited, cancel := deadline(ctx, q.Timeout)
	defer cancel()
	scope, err := q.narrow(want)
	if err != nil || scope.Path == "" {
		return &GlobResult{}, err
	}
	sel := &selection{noIgnore: q.NoIgnore}
	l, err := e.list(limited, scope, sel)
	if err != nil {
		return nil, err
	}
	defer l.close()
	relative := l.within(q.Path)
	w := &wanted{match: func(rel string) bool { return want.Match(relative(rel)) }, names: newNameSet(want.NameEnds())}
	found, total := l.pick(limited, e.config.Workers, max(q.Limit, 0), w)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &GlobResult{Total: total, TimedOut: limited.Err() != nil}
	var text strings.Builder
	for _, f := range found {
		r.Paths = append(r.Paths, l.printed(f.file))
		text.WriteString(printable(l.printed(f.file)) + "\n")
	}
	r.Text, r.Shown = validText(text.String()), len(found)
	nothing := r.Total == 0 && !r.TimedOut
	ignored := func(f file) bool { return w.match(f.rel()) }
	r.IgnoredFiles, r.IgnoredMore = l.countIgnored(limited, sel, e.config.MaxIgnored, nothing, ignored)
	r.Unreadable = l.troubles.count
	r.Notes = r.notes(l, q)
	return r, nil
}

// compile reads the pattern, relative to Path.
func (q *GlobQuery) compile() (*fileName, error) {
	if q.Pattern == "" {
		return nil, fmt.Errorf("%w: the pattern is empty; pass ** for all files", ErrGlob)
	}
	p := filepath.ToSlash(q.Pattern)
	top := withSlash(filepath.ToSlash(filepath.Clean(q.Path)))
	if strings.HasPrefix(p, "/") || filepath.IsAbs(q.Pattern) {
		rest, ok := strings.CutPrefix(p, top)
		if !ok {
			return nil, fmt.Errorf("%w %q: it does not lie within %s; pass its directory as path", ErrGlob, q.Pattern, q.Path)
		}
		p = rest
	} else if !strings.Contains(p, "/") {
		p = "**/" + p
	}
	p = strings.TrimPrefix(p, "./")
	if strings.HasSuffix(p, "/") {
		p += "**"
	}
	if slices.Contains(strings.Split(p, "/"), "..") {
		return nil, fmt.Errorf("%w %q: `..` leads outside; pass the directory as path", ErrGlob, q.Pattern)
	}
	want, err := glob.Compile(p, glob.Options{}) // says best what is wrong, and bounds what a pattern may stand for
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrGlob, q.Pattern, err)
	}
	return &fileName{Pattern: want, text: p}, nil
}

// A fileName is what a Glob asks for: a pattern of doublestar. The shapes that nearly all patterns have, such as
// `**/*.go`, mean the same to the matcher of ignore files, which compares a suffix and is done.
type fileName struct {
	*glob.Pattern
	text string
}

// Match reports whether the path, with slashes, is asked for.
func (n *fileName) Match(path string) bool {
	if n.Simple() {
		return n.Pattern.Match(path)
	}
	return doublestar.MatchUnvalidated(n.text, path) // glob.Compile has validated it
}

// narrow returns the scope of the literal directory that the pattern starts
// with; one without a path when there is nothing.
func (q *GlobQuery) narrow(want *fileName) (Scope, error) {
	scope := q.Scope
	info, err := os.Lstat(scope.Path)
	if err != nil || !info.IsDir() {
		return scope, nil // list tells what is wrong
	}
	for name := range strings.SplitSeq(want.Dir(), "/") {
		if name == "" {
			continue
		}
		scope.Path = filepath.Join(scope.Path, name)
		info, err := os.Lstat(scope.Path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !walk.IsGone(err):
			return scope, fmt.Errorf("%w %s: %s", ErrScope, scope.Path, reason(err))
		case err != nil || !info.IsDir() || scope.hides(scope.Path, true):
			return Scope{}, nil
		}
	}
	return scope, nil
}

// dated is a file with the time of its last change.
type dated struct {
	file
	mtime time.Time
}

// pick returns the newest files that match, at most limit unless that is 0,
// and how many match; equal times go by path.
func (l *listing) pick(ctx context.Context, workers, limit int, want *wanted) (found []dated, total int) {
	paths := l.paths()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var next atomic.Int64
	const size = 2048
	work := func() {
		own, matched := newest{limit: limit}, 0
		for ctx.Err() == nil {
			from := (int(next.Add(1)) - 1) * size
			if from >= len(l.files) {
				break
			}
			matched += l.date(from, min(from+size, len(l.files)), paths, want, &own)
		}
		mu.Lock()
		defer mu.Unlock()
		found, total = append(found, own.files...), total+matched
	}
	for range min(workers, (len(l.files)+size-1)/size) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	slices.SortFunc(found, newestFirst)
	if limit > 0 {
		found = found[:min(len(found), limit)]
	}
	return found, total
}

// newest gathers the newest of many files, or all of them if limit is 0.
type newest struct {
	limit int
	files []dated // sorted if limited
}

// add takes a file. Files come in path order, so of two of the same time the first
// stays.
func (n *newest) add(f dated) {
	if n.limit == 0 {
		n.files = append(n.files, f)
		return
	}
	if k := len(n.files); k == n.limit {
		if !f.mtime.After(n.files[k-1].mtime) {
			return
		}
		n.files = n.files[:k-1]
	}
	i, _ := slices.BinarySearchFunc(n.files, f, newestFirst)
	n.files = slices.Insert(n.files, i, f)
}

func newestFirst(a, b dated) int {
	return cmp.Or(b.mtime.Compare(a.mtime), cmp.Compare(a.number, b.number))
}

// date adds those of the files from one number to another that match, and returns
// how many do.
func (l *listing) date(from, to int, paths *paths, want *wanted, into *newest) (n int) {
	for i := from; i < to; i++ {
		if paths != nil && !want.names.has(paths.names[i]) {
			continue
		}
		f := l.files[i]
		if !want.match(paths.at(l, i)) {
			continue
		}
		mtime, err := l.dateOf(i, f)
		switch {
		case err != nil && !walk.IsGone(err):
			l.troubles.add(l.printed(f), err)
		case err == nil:
			into.add(dated{f, mtime})
			n++
		}
	}
	return n
}

// dates are when the files of a listing were changed, as far as that was asked for
// and events tell of changes: in nanoseconds since 1970, 0 where it is not known.
// They hold as long as no event has come.
type dates struct {
	changes uint64 // the tree's
	at      []atomic.Int64
}

// dateOf is modified for the file with that number.
func (l *listing) dateOf(i int, f file) (time.Time, error) {
	if l.dates == nil {
		return l.modified(f)
	}
	if at := l.dates.at[i].Load(); at != 0 {
		return time.Unix(0, at), nil
	}
	if k := l.sure(f); k != nil {
		l.dates.at[i].Store(k.stamp.Change)
	}
	return l.modified(f)
}

// sure returns what is known of a file, if it surely holds.
func (l *listing) sure(f file) *known {
	if l.stocked == 0 {
		return nil
	}
	k := f.kept.known.Load()
	if k == nil || k.age != l.stocked || k.version != f.kept.version.Load() || !k.sure(f.kept) {
		return nil
	}
	return k
}

// modified is when a file was changed; the error is walk.ErrNotRegular if it is
// no file.
func (l *listing) modified(f file) (time.Time, error) {
	if k := l.sure(f); k != nil {
		return k.modified()
	}
	info, err := l.root.Stat(f.rel())
	if err == nil && info.Kind != walk.File {
		err = walk.ErrNotRegular
	}
	return info.MTime, err
}

// comparePaths orders by path elements: a directory's files stand where its
// name does.
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

// notes tell what is not shown.
func (r *GlobResult) notes(l *listing, q GlobQuery) []string {
	var out []string
	if r.Total == 0 && r.IgnoredFiles > 0 {
		out = append(out, fmt.Sprintf("0 files; %s not listed: pass the ignored directory or file as path, or use find in Bash.",
			ignoredText(r.IgnoredFiles, r.IgnoredMore)))
	}
	out = append(out, l.notes()...)
	if r.TimedOut {
		out = append(out, fmt.Sprintf("The time was up after %s: the list is partial. Search a smaller path.", q.Timeout))
	}
	if r.Shown < r.Total {
		out = append(out, fmt.Sprintf("Shown: the %d newest of %d files. Narrow the pattern or the path.", r.Shown, r.Total))
	}
	return out
}
