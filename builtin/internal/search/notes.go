package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// countIgnored counts the wanted files that ignore files left out, up to most; more says that there are more. Files
// in ignored directories are counted only if deep is set.
func (l *listing) countIgnored(ctx context.Context, sel *selection, most int, deep bool, wanted func(file) bool) (n int,
	more bool) {
	count := func(f file) {
		if wanted(f) {
			n++
		}
	}
	for _, f := range l.omitted {
		count(f)
	}
	if !deep {
		return min(n, most), n > most
	}
	visit, done := l.visitSkipped()
	defer done()
	buf := listBuffers.Get().(*walk.Buffer)
	defer listBuffers.Put(buf)
	descending := func(a, b *dir) int { return comparePaths(b.rel, a.rel) }
	free := &selection{overrides: sel.overrides, types: sel.types, noIgnore: true}
	var stack []*dir
	for _, d := range l.pruned { // a copy: other queries may share these directories
		stack = append(stack, &dir{rel: d.rel, node: d.node})
	}
	slices.SortFunc(stack, descending)
	work := 0
	for len(stack) > 0 && n <= most && work <= most && ctx.Err() == nil {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		dirs := visit(d, free, buf)
		for _, c := range d.children {
			if c.dir == nil {
				count(file{dir: d, name: c.name, entry: c.entry})
			}
		}
		slices.SortFunc(dirs, descending)
		stack = append(stack, dirs...)
		work += 1 + len(d.children)/16 // an entry costs less than opening a directory
	}
	return min(n, most), n > most || len(stack) > 0
}

// listBuffers are reused: they are large.
var listBuffers = sync.Pool{New: func() any { return new(walk.Buffer) }}

// mention records a path that could not be read without counting it.
func (t *errorList) mention(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large == "" || path < t.large {
		t.large = path
	}
}

func (s *search) notes(r *GrepResult) []string {
	q := s.query
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Shown == 0 {
		out = append(out, s.nothing(r)...)
	}
	if r.Binary > 0 && (r.Files == 0 || q.Mode != FilesWithMatches) {
		note("%s not searched to the end: binary.", files(r.Binary))
	}
	out = append(out, s.foreignNotes(r)...)
	if r.TooLarge > 0 {
		note("%s not searched, larger than %d MiB: %s.", files(r.TooLarge), s.config.MaxFile>>20, s.list.errors.large)
	}
	out = append(out, s.list.notes()...)
	if r.TimedOut {
		note("The time was up after %s: the results are partial. Search a smaller path, or pass a glob or type.",
			q.Timeout)
	}
	if r.NextOffset > 0 {
		if q.Mode == FilesWithMatches {
			than := ""
			if s.page.uncounted {
				than = "more than "
			}
			note("Shown: entries %d to %d of %s%d; go on with offset: %d.", q.Offset+1, q.Offset+r.Shown, than, r.Files,
				r.NextOffset)
		} else {
			note("Shown: entries %d to %d; there are more: go on with offset: %d.", q.Offset+1, q.Offset+r.Shown,
				r.NextOffset)
		}
	}
	return out
}

// nothing returns notes that explain an empty result.
func (s *search) nothing(r *GrepResult) []string {
	var out []string
	if r.Matches > 0 {
		return []string{fmt.Sprintf("No entries from offset %d on; there are %d.", s.query.Offset, s.page.total())}
	}
	if note := s.linkNotes(); note != "" {
		out = append(out, note)
	}
	if r.IgnoredFiles > 0 {
		out = append(out, fmt.Sprintf("0 matches; %s not searched: pass no_ignore.",
			ignoredText(r.IgnoredFiles, r.IgnoredMore)))
	}
	if len(s.files) == 0 && r.IgnoredFiles == 0 && !r.TimedOut {
		out = append(out, s.unchosen()...)
	}
	if once, changed := pattern.Unescape(s.query.Pattern); changed {
		out = append(out, "The pattern asks for a backslash in the text; if it was escaped twice, pass "+once)
	}
	return out
}

// unchosen says why no file was searched, if globs and types are the cause.
func (s *search) unchosen() []string {
	q := s.query
	chosen := slices.Clone(q.Globs)
	for _, t := range q.Types {
		chosen = append(chosen, "type "+t)
	}
	if len(chosen) == 0 {
		return nil
	}
	text := "No file was searched: none is chosen by " + strings.Join(chosen, ", ") + "."
	if i := slices.IndexFunc(q.Globs, func(g string) bool { return !strings.ContainsAny(g, "!*?[{.") }); i >= 0 {
		text += fmt.Sprintf(" What lies in a directory is chosen by %s/**, or by path.", strings.Trim(q.Globs[i], "/"))
	} else if slices.ContainsFunc(q.Globs, func(g string) bool { return strings.Contains(g, "[") }) {
		text += ` [ ] is a choice of characters: write \[ for the bracket itself.`
	}
	return []string{text}
}

// total returns how many entries were found.
func (p *page) total() int { return max(p.seen, len(p.found)) }

func ignoredText(n int, more bool) string {
	if more {
		return fmt.Sprintf("more than %d ignored files were", n)
	}
	if n == 1 {
		return "1 ignored file was"
	}
	return fmt.Sprintf("%d ignored files were", n)
}

func files(n int) string {
	if n == 1 {
		return "1 file was"
	}
	return fmt.Sprintf("%d files were", n)
}

// notes report what could not be read.
func (l *listing) notes() (out []string) {
	switch t := &l.errors; t.count {
	case 0:
	case 1:
		out = append(out, "1 file or directory could not be read: "+t.first+".")
	default:
		out = append(out, fmt.Sprintf("%d files or directories could not be read, the first: %s.", t.count, t.first))
	}
	if l.room.Short() {
		out = append(out, fmt.Sprintf("Some ignore files (.gitignore and the like) were not followed: all of them would "+
			"take more than %d MiB of memory.", ignore.MaxTree>>20))
	}
	return out
}
