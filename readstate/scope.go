package readstate

import (
	"bytes"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// maxParts bounds the pages remembered of one file: 128 pages of 2,000 lines. The first shown are forgotten first.
const maxParts = 128

// A Scope is what one conversation has read. Paths are real and absolute: the caller resolves symbolic links. Callers
// record successful reads only.
type Scope struct {
	store *Store
	key   string
	exact bool
}

// scope is the state of a [Scope], which many may share.
type scope struct {
	key   string
	exact bool
	used  time.Time // guarded by Store.mu

	loadOnce sync.Once
	mu       sync.Mutex
	files    map[string]record
}

// record is what was seen of one file. Records are replaced, never changed, so that copies of the map can share their
// parts.
type record struct {
	version version
	content *content // of a whole file that is kept, or was
	whole   bool
	parts   []Part    // in the order shown; none when whole
	seen    time.Time // orders the records of several processes
	// elsewhere is set when the file has changed outside the pages that were shown.
	elsewhere bool
	excerpt   bool // parts are excerpts, not pages that were asked for
	gone      bool // forgotten; replaces a record that another process may still have on disk
}

// MarkRead records that all of a file was shown, or that the scope wrote it. v is the version of content; if its hash
// is missing, it is computed when needed. content, which may come in pieces, is copied if it is kept; it may be left
// out if v is Hashed.
func (sc *Scope) MarkRead(path string, v version, content ...[]byte) {
	sc.sawWhole(path, v, false, content)
}

func (sc *Scope) sawWhole(path string, v version, elsewhere bool, content [][]byte) {
	r := record{version: v, whole: true, elsewhere: elsewhere}
	if v.Hashed {
		r.content = sc.store.kept.hashed(v.Hash, content...)
	} else if r.content = sc.store.kept.put(content...); r.content == nil {
		r.version.Hash, r.version.Hashed = HashOf(content...), true
	}
	sc.replace(path, func(old record) record {
		r.version = r.version.like(old.version)
		return r
	})
}

// Changed is MarkRead for a file that the scope changed in one place. elsewhere says that the file may have changed
// in other places, which the scope has not seen.
func (sc *Scope) Changed(path string, v version, elsewhere bool, content ...[]byte) {
	sc.sawWhole(path, v, elsewhere, content)
}

// MarkPartRead records that a page of a file was shown, as its bytes in the file from p.Start on; p.End and p.Hash
// are set from them. Pages add up while the version is the same: by hash if v is Hashed and an earlier page was too,
// else by stat. A page of another version discards the earlier pages; the caller may record those again that Check
// still found in place.
func (sc *Scope) MarkPartRead(path string, v version, p Part, shown []byte) {
	sc.sawPart(path, v, p, shown, false)
}

// MarkExcerptRead is MarkPartRead for lines that an error showed. While nothing else of the file was shown,
// [Status.Excerpt] reports it.
func (sc *Scope) MarkExcerptRead(path string, v version, p Part, shown []byte) {
	sc.sawPart(path, v, p, shown, true)
}

func (sc *Scope) sawPart(path string, v version, p Part, shown []byte, excerpt bool) {
	if p.Start < 0 {
		return
	}
	p.End = p.Start + int64(len(shown))
	p.Hash = HashOf(shown)
	sc.store.kept.shown(p.Hash, shown)
	sc.replace(path, func(old record) record {
		if v.Hashed {
			old = sc.store.kept.ensureHash(old)
		}
		if old.gone || !old.version.same(v) {
			return record{version: v, parts: []Part{p}, excerpt: excerpt}
		}
		if old.version.Hashed {
			v.Hash, v.Hashed = old.version.Hash, true
		}
		v = v.like(old.version)
		if old.whole {
			return record{version: v, content: old.content, whole: true}
		}
		return record{version: v, parts: withPart(old.parts, p), excerpt: old.excerpt && excerpt}
	})
}

// withPart returns a copy of parts with p last, in place of an earlier showing of the same bytes.
func withPart(parts []Part, p Part) []Part {
	parts = slices.DeleteFunc(slices.Clone(parts), func(q Part) bool { return q.Start == p.Start && q.End == p.End })
	parts = append(parts, p)
	return parts[max(0, len(parts)-maxParts):]
}

// Charset returns the known encoding of a file in a version, by its stat; "" if it is not known.
func (sc *Scope) Charset(path string, v version) string {
	st := sc.store.enter(sc.key, sc.exact)
	st.mu.Lock()
	defer st.mu.Unlock()
	return v.like(st.files[path].version).Charset
}

// Check compares what the scope has seen with a file whose stat is current (nil if there is none) and whose content
// is content. The bytes decide: the caller reads them under the lock under which it will write.
func (sc *Scope) Check(path string, current fs.FileInfo, content []byte) Status {
	st := sc.store.enter(sc.key, sc.exact)
	st.mu.Lock()
	r, ok := st.files[path]
	st.mu.Unlock()
	if !ok || r.gone {
		return Status{}
	}
	standing := sc.compare(r, content)
	standing.Charset = r.version.Charset
	if standing.State == Current && current != nil {
		now := VersionOf(current)
		standing.Elsewhere = r.elsewhere || !r.whole && !standing.Whole && !r.stands(now, content)
		sc.refresh(st, path, r, now, standing.Elsewhere)
	}
	return standing
}

// stands reports whether the whole file is unchanged since a page of it was shown.
func (r record) stands(now version, content []byte) bool {
	if r.version.Hashed {
		return HashOf(content) == r.version.Hash
	}
	return r.version.untouched(now)
}

// compare is Check without the bookkeeping.
func (sc *Scope) compare(r record, content []byte) Status {
	if r.whole {
		old := sc.store.kept.touch(r.content)
		hash := sc.store.kept.ensureHash(r).version.Hash
		if old == nil {
			old = sc.store.kept.find(hash)
		}
		if old == nil && hash == HashOf(nil) {
			old = []byte{} // an empty content needs no keeping
		}
		st := Status{State: stale, Whole: true, Old: old}
		// Comparing with the kept bytes gives the same answer as hashing, and is faster.
		if old != nil && bytes.Equal(old, content) || old == nil && hash == HashOf(content) {
			st.State, st.Hash, st.Hashed = Current, hash, true
		}
		return st
	}
	st := Status{State: Current, Excerpt: r.excerpt}
	for _, p := range r.parts {
		if p.inPlace(content) {
			st.Parts = append(st.Parts, p)
			continue
		}
		st.State = stale
		st.Changed = append(st.Changed, changedPart{Part: p, Old: sc.store.kept.find(p.Hash)})
	}
	st.Whole = st.State == Current && cover(st.Parts, int64(len(content)))
	return st
}

// refresh stores the new stat of a file that was touched but not changed where it was shown, so that the next page of
// it still counts as the same version.
func (sc *Scope) refresh(st *scope, path string, checked record, current version, elsewhere bool) {
	if checked.version.untouched(current) {
		return
	}
	st.mu.Lock()
	r, ok := st.files[path]
	if ok && r.seen.Equal(checked.seen) {
		r.version, r.elsewhere = r.version.withStat(current), elsewhere
		st.files[path] = r
	}
	st.mu.Unlock()
	sc.store.changed(st)
}

// Forget makes a file count as never read.
func (sc *Scope) Forget(path string) {
	sc.replace(path, func(record) record { return record{gone: true} })
}

// Follow copies what was read of the files below one directory to the files of the same names below another. As
// always, their content decides.
func (sc *Scope) Follow(from, to string) {
	st := sc.store.enter(sc.key, sc.exact)
	st.mu.Lock()
	files := maps.Clone(st.files)
	st.mu.Unlock()
	for path, r := range files {
		if below, err := filepath.Rel(from, path); err == nil && filepath.IsLocal(below) && !r.gone {
			sc.replace(filepath.Join(to, below), func(record) record { return r })
		}
	}
}

// replace replaces a record by the result of next. A record that does not exist is passed as gone.
func (sc *Scope) replace(path string, next func(old record) record) {
	st := sc.store.enter(sc.key, sc.exact)
	st.mu.Lock()
	old, ok := st.files[path]
	if !ok {
		old.gone = true
	}
	r := next(old)
	r.seen = time.Now().Round(0) // without the monotonic reading, which other processes do not share
	if r.gone && !st.exact {
		delete(st.files, path)
	} else {
		st.files[path] = r
	}
	if r.content != old.content {
		sc.store.kept.replaced(old.content, r.content)
	}
	trim(st.files, sc.store.cfg.MaxFiles)
	st.mu.Unlock()
	sc.store.changed(st)
}

// snapshot returns a copy of the records, with their hashes.
func (st *scope) snapshot(kept *contents) map[string]record {
	st.mu.Lock()
	files := maps.Clone(st.files)
	st.mu.Unlock()
	for path, r := range files {
		files[path] = kept.ensureHash(r)
	}
	return files
}

// adopt replaces records of the scope by newer ones.
func (st *scope) adopt(files map[string]record, limit int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	mergeInto(st.files, files)
	trim(st.files, limit)
}

// mergeInto replaces records in files by newer ones of others.
func mergeInto(files, others map[string]record) {
	for path, theirs := range others {
		if mine, ok := files[path]; !ok || theirs.seen.After(mine.seen) {
			files[path] = theirs
		}
	}
}

// trim forgets the files not seen for the longest time if there are more than limit, and an eighth of the limit with
// them, so that a full scope does not sort its records at every read.
func trim(files map[string]record, limit int) {
	if len(files) <= limit {
		return
	}
	oldestFirst := func(a, b string) int { return files[a].seen.Compare(files[b].seen) }
	paths := slices.SortedFunc(maps.Keys(files), oldestFirst)
	for _, path := range paths[:len(files)-limit+limit/8] {
		delete(files, path)
	}
}
