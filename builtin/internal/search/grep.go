package search

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
)

// Grep searches file contents. Errors are of the query (a *pattern.Error, an
// unknown type, a path that is gone) or ctx's; files that cannot be read are
// counted, not errors.
func (e *Engine) Grep(ctx context.Context, q GrepQuery) (*GrepResult, error) {
	p, err := pattern.Compile(q.Pattern, pattern.Options{IgnoreCase: q.IgnoreCase, Multiline: q.Multiline})
	if err != nil {
		return nil, err
	}
	sel, err := q.selection()
	if err != nil {
		return nil, err
	}
	q.Limit, q.Offset = min(max(q.Limit, 0), maxEntries), min(max(q.Offset, 0), maxEntries)
	q.Before, q.After = max(q.Before, 0), max(q.After, 0)
	e.cache.gate.enter()
	defer e.cache.gate.leave()
	limited, cancel := deadline(ctx, q.Timeout)
	defer cancel()
	l, err := e.list(limited, q.Scope, sel)
	if err != nil {
		return nil, err
	}
	defer l.close()
	l.overrides = sel.overrides
	s := newSearch(e.config, &q, p, l)
	s.runAll(limited)
	s = s.orForeign(limited)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	seen := s.seen()
	l.tell(seen)
	r := s.result()
	r.TimedOut = limited.Err() != nil
	nothing := r.Matches == 0 && !r.TimedOut
	r.IgnoredFiles, r.IgnoredMore = l.countIgnored(limited, sel, e.config.MaxIgnored, nothing,
		func(f file) bool { return seen(f.rel()) })
	r.Notes = s.notes(r)
	return r, nil
}

func deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func (q *GrepQuery) selection() (*selection, error) {
	globs, err := ignore.NewOverrides(q.Globs)
	if err != nil {
		return nil, err
	}
	types, err := glob.Select(q.Types)
	if err != nil {
		return nil, err
	}
	return &selection{overrides: globs, types: types, noIgnore: q.NoIgnore, globs: q.Globs, typeNames: q.Types}, nil
}

// search is one query under way: workers take files in path order, chunk by
// chunk, and add what they find to the page, which puts it back in order and
// stops them once it is full.
type search struct {
	config  Config
	query   *GrepQuery
	pattern *pattern.Pattern
	list    *listing
	stop    atomic.Bool // the page is full, or the time is up
	next    atomic.Int64
	page    page
	files   []file // files of the listing; list.files holds those that are searched now
	counts
	names    bool // see namesForeign
	others   others
	charsets *charsets // nil: files are searched without decoding them
}

// counts counts the files that were not searched, or only in part.
type counts struct{ binary, tooLarge atomic.Int64 }

func newSearch(c Config, q *GrepQuery, p *pattern.Pattern, l *listing) *search {
	s := &search{config: c, query: q, pattern: p, list: l, files: l.files, names: namesForeign(q.Pattern)}
	s.page = page{limit: q.Limit, offset: q.Offset, maxText: c.MaxText, byTime: q.Mode == FilesWithMatches,
		context: q.contextual()}
	s.page.room.L = &s.page.mu
	s.page.waiting = map[int]*chunk{}
	return s
}

// headed reports whether the path is printed once, above the lines: when the query names a single file.
func (s *search) headed() bool { return s.list.direct && s.query.Mode == Content }

// contextual reports whether the result has groups of lines separated by `--`.
func (q *GrepQuery) contextual() bool { return q.Mode == Content && q.Before+q.After > 0 }

// chunkFiles is how many files a worker takes at once.
const chunkFiles = 16

// maxEntries is greater than any number of entries, and twice it does not overflow an int32.
const maxEntries = math.MaxInt32 / 4

// runAll searches the files of the listing that may have a match. For a page it searches them in batches, because the
// first batch may fill the page.
func (s *search) runAll(ctx context.Context) {
	var more *candidateIter
	if s.list.age != 0 {
		more = s.list.narrow(s.pattern, s.names, s.page.byTime && s.query.Limit > 0)
	}
	if more == nil {
		s.run(ctx)
		return
	}
	most, all := 0, len(s.list.files)
	newest := s.page.byTime && s.query.Limit > 0
	switch {
	case newest:
		most = min(s.page.most()+s.page.most()/2, all) // most files that are chosen match
	case s.query.Limit > 0:
		most = firstFiles
	}
	for !s.stop.Load() {
		s.list.files = more.next(most, newest)
		if len(s.list.files) == 0 {
			return
		}
		if s.page.byTime {
			s.page.found = slices.Grow(s.page.found, len(s.list.files))
		}
		s.list.chosen = len(s.list.files) <= all/few
		s.list.fits = s.list.chosen && s.list.fit(s.list.files)
		s.next.Store(0)
		s.page.next = 0
		s.run(ctx)
		if newest && s.page.newestFound(more.last) {
			return
		}
		most = min(most*moreFiles, all)
	}
}

const (
	// firstFiles is about how many files the first batch of a page has; each further batch has moreFiles times as many.
	firstFiles = 512
	moreFiles  = 8
)

// run searches the files of the listing.
func (s *search) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		s.stop.Store(true)
		s.page.abandon()
	})
	defer stop()
	if ctx.Err() != nil {
		s.stop.Store(true)
	}
	n := (len(s.list.files) + chunkFiles - 1) / chunkFiles
	var wg sync.WaitGroup
	s.work(n, func() {
		for range min(s.config.Workers, n) - 1 {
			wg.Go(func() { s.work(n, nil) })
		}
	})
	wg.Wait()
}

// work searches chunks until none of the n chunks is left. It calls help, unless nil, once if the work takes longer
// than alone.
func (s *search) work(n int, help func()) {
	w := newWorker(s)
	defer w.end()
	begun := time.Now()
	for !s.stop.Load() {
		i := int(s.next.Add(1)) - 1
		if i >= n {
			return
		}
		if s.page.add(i, w.chunk(i)) {
			s.stop.Store(true)
		}
		if help != nil && time.Since(begun) > alone && !s.stop.Load() {
			help()
			help = nil
		}
	}
}

func (w *worker) chunk(i int) *chunk {
	files := w.search.list.files
	files = files[i*chunkFiles : min((i+1)*chunkFiles, len(files))]
	c := chunks.Get().(*chunk)
	c.text, c.entries = c.text[:0], c.entries[:0]
	for _, f := range files {
		if w.search.stop.Load() {
			break
		}
		w.file(f, c)
	}
	return c
}

// anywhere accepts every path.
func anywhere(string) bool { return true }

// seen returns a function that reports whether the result covers a path. If the page was full, the result covers the
// paths before the last one it shows: later files may not have been searched.
func (s *search) seen() func(rel string) bool {
	if p := &s.page; !p.byTime && p.more && p.shown > 0 {
		last := s.files[p.last].rel()
		return func(rel string) bool { return comparePaths(rel, last) < 0 }
	}
	return anywhere
}

func (s *search) result() *GrepResult {
	p := &s.page
	r := &GrepResult{Binary: int(s.binary.Load()), TooLarge: int(s.tooLarge.Load()), Unreadable: s.list.errors.count}
	if p.byTime {
		p.finishByTime()
	}
	r.Text = validText(p.text.String())
	if s.headed() && r.Text != "" {
		r.Text = validText(printable(s.list.printed(s.files[0]))) + "\n" + r.Text
	}
	r.Files, r.Matches, r.Shown = p.files, p.matches, p.shown
	if p.more {
		r.NextOffset = s.query.Offset + p.shown
	}
	return r
}

// validText returns the text with invalid UTF-8 replaced.
func validText(text string) string {
	if utf8.ValidString(text) { // it looks at eight bytes at once, strings.ToValidUTF8 does not
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
