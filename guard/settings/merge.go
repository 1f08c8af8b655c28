package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/guard/sshagent"
)

// items is a set of loosening content, each as "key: value".
type items map[string]bool

// intersect returns what is in both sets.
func (a items) intersect(b items) items {
	both := items{}
	for item := range a {
		if b[item] {
			both[item] = true
		}
	}
	return both
}

func item(name, text string) string { return name + ": " + text }

// listItem names an entry of a list that loosens. A list with carve-outs is one
// item: without its "!" entries, or in another order, it would loosen more.
func (l *layer) listItem(k *key, e Entry) string {
	list := l.lists[k.name]
	if !slices.ContainsFunc(list, carvesOut) {
		return item(k.name, e.Text)
	}
	var all []string
	for _, e := range list {
		all = append(all, strconv.Quote(e.Text))
	}
	return item(k.name, strings.Join(all, ", "))
}

// hookItem formats a group as JSON, without fields that are not set.
func hookItem(event string, group HookMatcher) string {
	type hook struct {
		Hook
		Seconds float64 `json:"timeout"`
	}
	written := struct {
		Matcher string `json:"matcher,omitempty"`
		Hooks   []hook `json:"hooks"`
	}{Matcher: group.Matcher}
	for _, h := range group.Hooks {
		written.Hooks = append(written.Hooks, hook{h, h.Timeout.Seconds()})
	}
	text, err := json.Marshal(written)
	if err != nil {
		// Strings and numbers always marshal; never let two groups share a name.
		return item("hooks."+event, group.Source.Where()+" "+err.Error())
	}
	return item("hooks."+event, string(text))
}

// itemsOf returns the set of the texts of the entries.
func itemsOf(entries []Entry) items { return items(nil).union(entries) }

func (a items) union(entries []Entry) items {
	if a == nil {
		a = items{}
	}
	for _, e := range entries {
		a[e.Text] = true
	}
	return a
}

// loosening returns the entries of the layer that need trust if the layer is from a
// workspace. The Text of each entry is its item.
func (l *layer) loosening(words *keySet) []Entry {
	var found []Entry
	add := func(e Entry, item string) {
		e.Text = item
		if n := len(found); n == 0 || found[n-1].Text != item {
			found = append(found, e)
		}
	}
	for i := range words.keys {
		k := &words.keys[i]
		if e, ok := l.scalars[k.name]; ok && !k.tightest(e.Text) && k.countsFrom(l.source.kind) {
			add(e, item(k.name, e.Text))
		}
		if k.form == formList && !k.tightens && k.countsFrom(l.source.kind) {
			for _, e := range l.lists[k.name] {
				add(e, l.listItem(k, e))
			}
		}
	}
	for _, event := range slices.Sorted(maps.Keys(l.hooks)) {
		for _, g := range l.hooks[event] {
			add(g.Source, hookItem(event, g))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		add(l.env[name], item("env."+name, l.env[name].Text))
	}
	return found
}

// view is a layer, and the loosening content of it that applies.
type view struct {
	*layer
	free     bool  // everything counts
	approved items // otherwise only this counts
}

func (v view) grants(item string) bool { return v.free || v.approved[item] }

// grantsScalar reports whether the value may take effect even if it loosens.
func (v view) grantsScalar(k *key, e Entry) bool {
	return k.countsFrom(v.source.kind) && v.grants(item(k.name, e.Text))
}

// merger joins views, highest precedence first.
type merger struct {
	words *keySet
	views []view
	out   *Settings
}

func merge(words *keySet, views []view) *Settings {
	m := merger{words: words, views: views, out: &Settings{Hooks: map[string][]HookMatcher{}, Env: map[string]string{}}}
	for i := range words.keys {
		switch k := &words.keys[i]; {
		case k.form == formList:
			all := m.list(k)
			for _, e := range all {
				m.out.Values = append(m.out.Values, Value{k.name, e})
			}
			*k.list(m.out) = all
		case k.set != nil:
			e := m.scalar(k)
			if e.Text != "" {
				k.set(m.out, e)
			}
			if e.File != "" {
				m.out.Values = append(m.out.Values, Value{k.name, e})
			}
		}
	}
	m.hooks()
	m.env()
	m.finish()
	return m.out
}

func (m *merger) untrusted(e Entry, item string) {
	e.Text = item
	if n := len(m.out.Untrusted); n == 0 || m.out.Untrusted[n-1].Text != item || m.out.Untrusted[n-1].File != e.File {
		m.out.Untrusted = append(m.out.Untrusted, e)
	}
}

func (m *merger) warn(e Entry, format string, args ...any) {
	w := warning{File: e.File, Line: e.Line, Text: fmt.Sprintf(format, args...)}
	if e.Line > 0 {
		w.Column = 1
	}
	m.out.Warnings = append(m.out.Warnings, w)
}

// list joins the entries of all views.
func (m *merger) list(k *key) []Entry {
	only := m.managedOnly(k)
	var joined []Entry
	for _, v := range m.views {
		entries := v.lists[k.name]
		if only != "" && v.source.kind != Managed && len(entries) > 0 {
			m.warn(entries[0], "%s is left out: managed settings set %s", k.name, only)
			continue
		}
		if !k.tightens && !k.countsFrom(v.source.kind) && len(entries) > 0 {
			m.warn(entries[0], "%s counts from user and managed settings only. It is left out", k.name)
			continue
		}
		for _, e := range entries {
			if k.tightens || v.free || v.grants(v.listItem(k, e)) {
				joined = append(joined, e)
			} else {
				m.untrusted(e, v.listItem(k, e))
			}
		}
	}
	return joined
}

// managedOnly returns the key with which the administrator restricts a list to managed files, or "".
func (m *merger) managedOnly(k *key) string {
	name := map[string]string{keyAllow: keyManagedRules, keyDomains: keyManagedDomains, keyPrograms: keyManagedDomains,
		keyAllowRead: keyManagedReads}[k.name]
	if name != "" && m.scalar(m.words.byName[name]).Text == "true" {
		return name
	}
	return ""
}

// scalar returns the value in force: the highest value that may apply, or a stricter value of a higher source that
// may not loosen.
func (m *merger) scalar(k *key) Entry {
	if k.from == anySourceOnce {
		return m.anyScalar(k)
	}
	result, at := Entry{Text: k.def}, len(m.views)-1
	for i, v := range m.views {
		if e, ok := v.scalars[k.name]; ok && v.grantsScalar(k, e) {
			if result, at = m.permitted(k, e), i; result != e {
				m.warn(e, "%s is %q, which another setting forbids; %q is used instead", k.name, e.Text, result.Text)
			}
			break
		}
	}
	// From low to high, and only tighter: one more file cannot loosen.
	for ; at >= 0; at-- {
		v := m.views[at]
		for _, e := range v.held[k.name] {
			if e = meet(k, result, m.permitted(k, e)); k.tighter(result.Text, e.Text) {
				result = e
			}
		}
		e, ok := v.scalars[k.name]
		e = meet(k, result, e)
		switch {
		case !ok || v.grantsScalar(k, e) || e.Text == result.Text:
		case k.tighter(result.Text, e.Text):
			result = e
		case k.from == notWorkspace:
			m.warn(e, "%s: %q counts from user and managed settings only; %q stays", k.name, e.Text, result.Text)
		default:
			m.untrusted(e, item(k.name, e.Text))
		}
	}
	return result
}

// meet returns the entry. For a mode, it returns the strictest mode that is not looser than the entry and the result:
// acceptEdits runs uncontained commands of a local user, which auto does not, and auto asks about fewer changes.
func meet(k *key, result, e Entry) Entry {
	if k.name == keyMode && result.Text == ModeAuto && e.Text == ModeAcceptEdits {
		e.Text = ModeDefault
	}
	return e
}

// permitted returns the entry, or its replacement if another setting
// forbids it. It must be called before values are compared: an acceptEdits that
// tightens a forbidden bypassPermissions would loosen.
func (m *merger) permitted(k *key, e Entry) Entry {
	if k.name == keyMode && e.Text == ModeBypass && m.out.DisableBypass {
		e.Text = ModeDefault
	}
	return e
}

func (m *merger) anyScalar(k *key) Entry {
	for _, v := range m.views {
		if e, ok := v.scalars[k.name]; ok {
			return e
		}
		if held := v.held[k.name]; len(held) > 0 {
			return held[0]
		}
	}
	return Entry{}
}

func (m *merger) hooks() {
	only := m.scalar(m.words.byName[keyManagedHooks]).Text == "true"
	off := m.scalar(m.words.byName[keyNoHooks])
	for _, v := range m.views {
		managed := v.source.kind == Managed
		if only && !managed || off.Text == "true" && (!managed || off.Kind == Managed) {
			continue
		}
		for _, event := range slices.Sorted(maps.Keys(v.hooks)) {
			for _, group := range v.hooks[event] {
				if event == Classifier {
					m.classifier(v, group)
				} else if name := hookItem(event, group); v.grants(name) {
					m.addHooks(event, group)
				} else {
					m.untrusted(group.Source, name)
				}
			}
		}
		for _, h := range v.heldHooks {
			if !v.runs(h.event, h.group) {
				m.addHooks(h.event, h.group)
			}
		}
	}
}

// addHooks adds a group, with the properties that hooks have because of their source.
func (m *merger) addHooks(event string, group HookMatcher) {
	kind := group.Source.Kind
	strict := m.scalar(m.words.byName[keyOnFailure]).Text == OnFailureRefuse || kind == Managed &&
		m.managedScalar(keyOnFailure) != OnFailureAllow
	group.Hooks = slices.Clone(group.Hooks)
	for i := range group.Hooks {
		h := &group.Hooks[i]
		h.Strict = strict
		if h.Uncontained && kind.inWorkspace() {
			h.Uncontained = false
			m.warn(group.Source, `"contained": false counts from user and managed settings only; the hook runs contained`)
		}
	}
	m.out.Hooks[event] = append(m.out.Hooks[event], group)
}

// managedScalar returns the value in the highest managed file that has one, or "".
func (m *merger) managedScalar(name string) string {
	for _, v := range m.views {
		if e, ok := v.scalars[name]; ok && v.source.kind == Managed {
			return e.Text
		}
	}
	return ""
}

// classifier uses the classifier of the highest source that may name one.
func (m *merger) classifier(v view, group HookMatcher) {
	if v.source.kind != User && v.source.kind != Managed {
		m.warn(group.Source, "%s counts from user and managed settings only", Classifier)
	} else if m.out.Hooks[Classifier] == nil {
		m.out.Hooks[Classifier] = []HookMatcher{group}
	}
}

// runs reports whether the file has the group, and may run it.
func (v view) runs(event string, group HookMatcher) bool {
	name := hookItem(event, group)
	return v.grants(name) && v.hasHook(event, name)
}

func (m *merger) env() {
	for _, v := range m.views {
		for _, name := range slices.Sorted(maps.Keys(v.env)) {
			e := v.env[name]
			if full := item("env."+name, e.Text); !v.grants(full) {
				m.untrusted(e, full)
			} else if _, taken := m.out.Env[name]; !taken {
				m.out.Env[name] = e.Text
			}
		}
	}
}

// finish sets the values that depend on more than one key.
func (m *merger) finish() {
	m.native()
	s := m.out
	var allowed []string
	for _, e := range s.Sandbox.Network.AllowedDomains {
		allowed = append(allowed, e.Text)
	}
	c := &s.Sandbox.Credentials
	c.SSHAgent = slices.DeleteFunc(c.SSHAgent, func(e Entry) bool {
		_, err := sshagent.ParseDestination(e.Text)
		if err != nil {
			m.warn(e, "%v. It is skipped", err)
		}
		return err != nil
	})
	c.MaskedVars, c.MaskedFiles = m.masks("name", c.EnvVars, allowed), m.masks("path", c.Files, allowed)
	if s.Bash.DefaultTimeout > s.Bash.MaxTimeout {
		s.Bash.DefaultTimeout = s.Bash.MaxTimeout
	}
	if s.DefaultModeFrom.File == "" {
		s.DefaultModeFrom = Entry{}
	}
	s.Trusted = len(s.Untrusted) == 0
}
