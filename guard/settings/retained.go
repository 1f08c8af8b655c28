package settings

import (
	"slices"
	"strconv"
)

// retained joins an earlier and a later reading of a list that tightens, so that everything that either of them
// forbids stays forbidden. It also returns the entries that it kept.
//
// "!" patterns carve out of the entries before them. Unless the later list only appends entries, no order of the joined
// entries respects both lists, so the carve-outs are dropped.
func retained(before, after []Entry) (joined, kept []Entry) {
	carved := slices.ContainsFunc(before, carvesOut) || slices.ContainsFunc(after, carvesOut)
	if carved && extends(before, after) {
		return after, nil
	}
	joined = slices.Clone(after)
	if carved {
		joined = slices.DeleteFunc(joined, carvesOut)
	}
	for _, e := range before {
		stands := slices.ContainsFunc(joined,
			func(other Entry) bool { return other.Text == e.Text && (e.Object != "" || other.Object == "") })
		if !stands && !carvesOut(e) {
			e.Object = "" // the denial stays, and the mask does not
			joined, kept = append(joined, e), append(kept, e)
		}
	}
	return joined, kept
}

// extends reports whether after is before with plain entries appended.
func extends(before, after []Entry) bool {
	same := func(a, b Entry) bool { return a.Text == b.Text }
	return len(after) >= len(before) && slices.EqualFunc(before, after[:len(before)], same) &&
		!slices.ContainsFunc(after[len(before):], carvesOut)
}

// succeed returns what is in force of a file that a running server has read
// again: all that tightens in either reading. What loosens is kept as written
// now; whether it counts is decided by its own view.
func (v view) succeed(words *keySet, next *layer) *layer {
	next.holdHooks(v)
	for i := range words.keys {
		k := &words.keys[i]
		if k.form == formList {
			if !k.tightens {
				continue
			}
			joined, kept := retained(v.lists[k.name], next.lists[k.name])
			next.lists[k.name] = joined
			for _, e := range kept {
				next.keepWarning(k.name, e)
			}
			continue
		}
		now := next.scalars[k.name]
		for _, e := range append(slices.Clone(v.held[k.name]), v.scalars[k.name]) {
			if e.Text != "" && e.Text != now.Text && k.rank(e.Text) >= 0 {
				next.held[k.name] = append(next.held[k.name], e)
			}
		}
	}
	return next
}

// heldHook is a hook group that was taken out of a file.
type heldHook struct {
	event string
	group HookMatcher
}

func (l *layer) hasHook(event, name string) bool {
	return slices.ContainsFunc(l.hooks[event], func(g HookMatcher) bool { return hookItem(event, g) == name })
}

// holdHooks keeps the groups of an earlier reading that can refuse a call and
// were in force: taking one out loosens.
func (l *layer) holdHooks(before view) {
	l.heldHooks = before.heldHooks
	for _, event := range []string{PreToolUse, PermissionRequest} {
		for _, g := range before.hooks[event] {
			name := hookItem(event, g)
			held := slices.ContainsFunc(l.heldHooks,
				func(h heldHook) bool { return hookItem(h.event, h.group) == name })
			if !held && before.grants(name) && !l.hasHook(event, name) {
				l.heldHooks = append(slices.Clip(l.heldHooks), heldHook{event, g})
			}
		}
	}
	for _, h := range l.heldHooks {
		if !l.hasHook(h.event, hookItem(h.event, h.group)) {
			l.keepWarning("hooks."+h.event, h.group.Source)
		}
	}
}

func (l *layer) keepWarning(name string, e Entry) {
	l.warnings = append(l.warnings, warning{File: e.File, Text: name + ": " + strconv.Quote(e.Text) +
		" was taken out while the server runs; it stays in force until the server is started again"})
}
