package search

import (
	"context"
	"math"
	"slices"

	"toolhost/builtin/internal/search/walk"
)

// While a saved index is checked, a page in path order needs only those files to be as
// they are known that come before its end: the tree is listed in that order, a part at a
// time, and each part is searched before the next one is listed. What is listed then was
// looked at behind the question, and what was listed before has been brought up to date
// behind it, so that no answer is older than it may be.

// ahead is a listing that is made so.
type ahead struct {
	listing *listing
	tree    *keptTree
	sel     *selection
	stack   []step // what leads to the place up to which files were taken
	lost    bool   // something has changed so that the listing cannot go on
}

// step is a directory of a listing, and how many of its children have been taken.
type step struct {
	*dir
	taken int
}

const (
	// leastPart and mostPart are how many directories are listed at once, which takes 1 and
	// 5 ms: between two parts workers end and begin, which takes .3 ms, and what is listed
	// behind the end of the page was not needed.
	leastPart = 64
	mostPart  = 256
)

// listAhead makes the listing one that is made while it is searched; false: that cannot be.
// It needs mu.
func (t *keptTree) listAhead(ctx context.Context, l *listing, sel *selection) bool {
	if !t.syncLinked(ctx, l.root) || t.earlier == nil || t.linked {
		return false
	}
	n := t.node(l.root, l.start)
	if n == nil {
		return false
	}
	stocked, learns := t.admit(&l.scope)
	if stocked == 0 || t.segments == nil {
		return false
	}
	l.kept, l.stocked, l.learns, l.room = t, stocked, learns, t.room
	l.ahead = &ahead{listing: l, tree: t, sel: sel, stack: []step{{dir: &dir{rel: n.rel, kept: n}}}}
	return true
}

// run searches the files while they are listed; false: they have to be listed anew, and
// searched then. All of them are the search's files then, as far as they were needed.
func (a *ahead) run(ctx context.Context, s *search) bool {
	t, l := a.tree, a.listing
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.earlier == nil || t.dead.Load() {
		return false
	}
	more := t.selected(l, s.pattern, required(s.pattern))
	if more == nil || more.age != l.stocked {
		return false
	}
	visited, next := 0, leastPart
	a.visitAll(ctx, a.stack[0].dir, t.engine.config.Workers, next, func(over bool) int {
		t.settle()
		a.lost = a.lost || t.dead.Load() || t.linked || t.age != more.age || t.adds != more.adds
		if a.lost {
			return 0
		}
		from := len(s.files)
		s.files = a.take(s.files)
		l.files = nil
		for _, f := range s.files[from:] {
			if more.wants(&f) {
				l.files = append(l.files, f)
			}
		}
		l.chosen = len(l.files) <= (len(s.files)-from)/few
		s.next.Store(0)
		s.page.next = 0
		if len(l.files) > 0 {
			t.mu.Unlock()
			s.run(ctx)
			t.mu.Lock()
		}
		if s.stop.Load() {
			return 0
		}
		visited += next
		next = max(leastPart, min(s.page.lacking(visited), visited/2, mostPart))
		return next
	})
	l.gen = t.gen
	return !a.lost
}

// lacking is how many directories more will fill the page, if they have as many entries as
// those so many that were searched.
func (p *page) lacking(searched int) int {
	if p.seen == 0 {
		return whole
	}
	return searched*(p.offset+p.limit+1-p.seen)/p.seen + 1
}

// visitAll visits a directory and all below it, in path order. After every so many, turn is
// called. The tree's mu is needed, but for what turn does.
func (a *ahead) visitAll(ctx context.Context, top *dir, workers, most int, turn func(over bool) (more int)) {
	t := a.tree
	lost := make([]bool, workers)
	buffers := make([]*walk.Buffer, workers)
	byPath := func(x, y *dir) int { return comparePaths(x.rel, y.rel) }
	walk.InOrder(workers, most, top, byPath, func(w int, d *dir) []*dir {
		if buffers[w] == nil {
			buffers[w] = new(walk.Buffer)
		}
		if lost[w] = lost[w] || d.kept.gone; lost[w] || ctx.Err() != nil {
			return nil
		}
		return t.visit(a.listing, d, a.sel, buffers[w])
	}, func(over bool) int {
		a.lost = slices.Contains(lost, true)
		return turn(over)
	})
}

// take appends the files up to the first directory that has not been visited, and gathers
// what is left out of those before.
func (a *ahead) take(files []file) []file {
	l := a.listing
	for len(a.stack) > 0 {
		s := &a.stack[len(a.stack)-1]
		switch {
		case s.children == nil:
			return files
		case s.taken == 0:
			l.pruned, l.omitted = append(l.pruned, s.left.pruned...), append(l.omitted, s.left.omitted...)
			if s.kept.err != nil {
				l.fail(s.dir, s.kept.err)
			}
		}
		for s.taken < len(s.children) && s.children[s.taken].dir == nil {
			c := s.children[s.taken]
			files = append(files, file{dir: s.dir, name: c.name, kept: c.kept, number: int32(len(files))})
			s.taken++
		}
		if s.taken == len(s.children) {
			a.stack = a.stack[:len(a.stack)-1]
			continue
		}
		s.taken++
		a.stack = append(a.stack, step{dir: s.children[s.taken-1].dir})
	}
	return files
}

// whole is how many directories a tree has at most.
const whole = math.MaxInt
