package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/builtin/internal/text"
)

// ripgrep searches the bytes of a file, whatever its encoding; only UTF-16 with a byte-order mark is decoded. Where
// that finds nothing, the files in other encodings are searched as Read shows them.

// maxOthers is how many files in other encodings are remembered in a search, and decoded. Each costs about a
// millisecond.
const maxOthers = 500

// others are files that may be text in another encoding than UTF-8, in which a search has found nothing.
type others struct {
	mu      sync.Mutex
	files   []file
	binary  map[string]bool // the paths of those that count as binary
	foreign int             // how many files, also beyond maxOthers, are not in UTF-8
	first   string          // the first of these, by its path
}

func (o *others) add(f file, foreign, binary bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rel := f.rel()
	if foreign {
		o.foreign++
		if o.first == "" || comparePaths(rel, o.first) < 0 {
			o.first = rel
		}
	}
	if len(o.files) == maxOthers {
		return
	}
	o.files = append(o.files, f)
	if binary {
		if o.binary == nil {
			o.binary = map[string]bool{}
		}
		o.binary[rel] = true
	}
}

// unmatched notes a file without a match, if it may be text in another encoding.
func (s *search) unmatched(o *output) {
	switch {
	case s.charsets != nil:
	case !o.whole && bytes.IndexByte(o.text[:min(len(o.text), wideHead)], 0) >= 0:
		s.others.add(o.file, false, false)
	case s.names && !utf8.Valid(o.text):
		s.others.add(o.file, true, false)
	}
}

// wideHead is how many bytes at the start of a text are searched for a NUL byte: in UTF-16 and UTF-32 there is one
// among them, unless they hold no ASCII character.
const wideHead = 512

// namesForeign reports whether a pattern names characters outside of ASCII, whose bytes differ between encodings.
func namesForeign(pattern string) bool {
	return strings.ContainsFunc(pattern, func(c rune) bool { return c > '~' }) ||
		slices.ContainsFunc([]string{`\u`, `\U`, `\x`, `\p`, `\P`},
			func(s string) bool { return strings.Contains(pattern, s) })
}

// addBinary counts a file that is not searched as text because it is binary.
func (s *search) addBinary(f file) {
	s.binary.Add(1)
	if s.charsets == nil {
		s.others.add(f, false, true)
	}
}

// charsets are the encodings that files were decoded from.
type charsets struct {
	mu    sync.Mutex
	names []string
	files int
}

func (c *charsets) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files++
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
		slices.Sort(c.names)
	}
}

// orForeign returns the search itself if it has found something, or if no file may be in another encoding. Otherwise
// it searches those files, or the single file that the query names, and returns that search.
func (s *search) orForeign(ctx context.Context) *search {
	if s.list.direct && len(s.others.files) == 0 {
		s.others.files = s.files
	}
	if s.page.total() > 0 || len(s.others.files) == 0 || ctx.Err() != nil {
		return s
	}
	decoding := newSearch(s.config, s.query, s.pattern, s.list)
	decoding.files, decoding.charsets = s.files, &charsets{}
	decoding.others.binary = s.others.binary
	decoding.tooLarge.Store(s.tooLarge.Load())
	decoding.binary.Store(s.binary.Load())
	s.list.age, s.list.stores = 0, false
	s.list.files = s.others.files
	slices.SortFunc(s.list.files, func(a, b file) int { return comparePaths(a.rel(), b.rel()) })
	decoding.run(ctx)
	return decoding
}

// foreign searches an open file as Read shows it, unless it is in UTF-8 or binary.
func (w *worker) foreign(f file, h walk.Handle, c *chunk) error {
	s := w.search
	head := make([]byte, text.SniffLen)
	n, err := h.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if text.IsBinary(head[:n]) {
		return nil
	}
	raw, err := s.reader().read(h, w.buf)
	if err != nil {
		return err
	}
	decoded := text.Decode(raw)
	if decoded.Charset() == "utf-8" {
		return nil
	}
	if s.others.binary[f.rel()] {
		s.binary.Add(-1)
	}
	w.out = output{file: f, text: []byte(decoded.String()), chunk: c, handle: h}
	w.text()
	if w.out.matches > 0 {
		s.charsets.add(decoded.Charset())
	}
	return nil
}

// foreignNotes say which files were decoded, or were not.
func (s *search) foreignNotes(r *GrepResult) []string {
	switch {
	case s.charsets != nil && s.charsets.files > 0:
		return []string{fmt.Sprintf("No file in UTF-8 matches; found in %s.", strings.Join(s.charsets.names, ", "))}
	case s.charsets == nil && s.others.foreign > 0 && r.Files > 0:
		return []string{fmt.Sprintf("%s not decoded, such as %s, whose encoding is not UTF-8: search it by its path.",
			files(s.others.foreign), s.list.shown+s.others.first)}
	}
	return nil
}
