package clients

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Replacement is the settings by which a client no longer offers those of its own tools that toolhost has too.
type Replacement struct {
	// File is a path template of the table; empty: the file of the servers. Format is the format of File.
	File, Format string
	// Set has values by their keys, whose parts are separated by dots. Values of a list are added to the list. A value
	// with once set does not replace an existing one.
	Set object
	// Note tells the user more about the settings.
	Note string
}

// in returns the path of the replacement's file, and its format.
func (p Replacement) in(c Client, e Env) (string, format) {
	if p.File == "" {
		return c.UserFile(e), c.format()
	}
	return e.path(p.File), Client{Format: p.Format}.format()
}

// replacing returns the request with the directory for the backups of replacements.
func replacing(r Request) Request {
	r.Backups.Dir = filepath.Join(r.Backups.Dir, "replace")
	return r
}

// Replace switches the client's own tools off, so far as possible. There is a report for each file.
func (c Client) Replace(ctx context.Context, r Request) (reports []Report, err error) {
	c.ViaProgram = false
	for _, p := range c.Replaces {
		file, format := p.in(c, r.Env)
		if !r.DryRun {
			if err := makeDir(r, file); err != nil {
				return reports, err
			}
		}
		report, err := c.edit(ctx, replacing(r), file, func(_ Client, _ Request, t target) (target, Action, error) {
			raw, err := p.apply(format, t.raw)
			return target{path: t.path, exists: t.exists || raw != nil, raw: raw}, Updated, err
		})
		if err != nil {
			return reports, err
		}
		report.Replaced = true
		reports = append(reports, report)
	}
	return reports, nil
}

// chosen returns the settings by which the user has switched tools of the client off: the keys that Replace would
// set, with their present values. It only reads the files.
func (c Client) chosen(e Env) (own []Replacement, err error) {
	for _, p := range c.Replaces {
		file, format := p.in(c, e)
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		_, body := cutBOM(raw)
		decoded, err := format.decode(body)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", file, err)
		}
		copied := Replacement{File: p.File, Format: p.Format}
		for _, s := range p.Set {
			switch v := lookup(decoded, strings.Split(s.key, ".")).(type) {
			case string, bool:
				copied.Set = append(copied.Set, field{key: s.key, value: v})
			case []any:
				copied.Set = append(copied.Set, field{key: s.key, value: strs(v)})
			}
		}
		own = append(own, copied)
	}
	return own, nil
}

// apply returns raw with the settings that are not set yet.
func (p Replacement) apply(f format, raw []byte) ([]byte, error) {
	return p.each(f, raw, func(s field, _ []string, now any) any {
		list, ok := s.value.([]string)
		switch {
		case s.once && now != nil:
			return now
		case !ok:
			return s.value
		}
		merged := strs(now)
		for _, s := range list {
			if !slices.Contains(merged, s) {
				merged = append(merged, s)
			}
		}
		return merged
	})
}

// revert returns raw without what apply has set, so far as that is still there. before is the decoded file before
// apply.
func (p Replacement) revert(f format, raw []byte, before map[string]any) ([]byte, error) {
	return p.each(f, raw, func(s field, path []string, now any) any {
		was := lookup(before, path)
		list, ok := s.value.([]string)
		if !ok {
			if same(now, plain(s.value)) {
				return was
			}
			return now
		}
		if now == nil {
			return nil
		}
		kept := slices.DeleteFunc(strs(now),
			func(s string) bool { return slices.Contains(list, s) && !slices.Contains(strs(was), s) })
		if len(kept) == 0 && was == nil {
			return nil
		}
		return kept
	})
}

// each sets each key to the value that want returns, or removes it if that is nil.
func (p Replacement) each(f format, raw []byte, want func(s field, path []string, now any) any) ([]byte, error) {
	mark, body := cutBOM(raw)
	for _, s := range p.Set {
		before, err := f.decode(body)
		if err != nil {
			return nil, err
		}
		path := strings.Split(s.key, ".")
		now := lookup(before, path)
		value := want(s, path, now)
		list, isList := now.([]any)
		switch {
		case same(now, plain(value)):
			continue
		case isList && len(strs(now)) < len(list), now != nil && !isList && strs(value) != nil:
			return nil, byHand("%s is not a list of texts", s.key)
		case value == nil:
			body, err = f.remove(body, path)
		default:
			body, err = f.set(body, path, value)
		}
		if err == nil {
			err = checkEdit(f, before, body, path, plain(value))
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(mark, body), nil
}

// strs returns the strings of a list.
func strs(v any) (texts []string) {
	switch v := v.(type) {
	case []string:
		return slices.Clone(v)
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok {
				texts = append(texts, s)
			}
		}
	}
	return texts
}

// Restore reverts Replace. A file that nothing else has changed since gets its previous bytes.
func (c Client) Restore(ctx context.Context, r Request) (reports []Report, err error) {
	r, c.ViaProgram = replacing(r), false
	for _, p := range slices.Backward(c.Replaces) {
		file, format := p.in(c, r.Env)
		t, err := readTarget(file)
		if err != nil {
			return reports, err
		}
		dir := r.Backups.of(t.path)
		names, err := list(dir)
		if err != nil {
			return reports, err
		}
		if len(names) == 0 {
			continue
		}
		report, err := c.edit(ctx, r, file, func(_ Client, r Request, t target) (target, Action, error) {
			if was, ok, err := r.Backups.before(t, nil); ok || err != nil {
				return was, Removed, err
			}
			first, err := os.ReadFile(filepath.Join(dir, names[len(names)-1]))
			if err != nil {
				return t, "", err
			}
			_, body := cutBOM(first)
			before, err := format.decode(body)
			if err != nil {
				return t, "", err
			}
			raw, err := p.revert(format, t.raw, before)
			return target{path: t.path, exists: t.exists, raw: raw}, Removed, err
		})
		if err == nil && !r.DryRun {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			return reports, err
		}
		report.Backup, report.Replaced = "", true // the backup is not needed any more
		reports = append(reports, report)
	}
	return reports, nil
}
