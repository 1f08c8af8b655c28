//go:build slow && linux

package attack

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// secret notes a text that nothing may show from now on, and whose it is.
func (w *wild) secret(canary, of string) {
	w.secrets.mu.Lock()
	defer w.secrets.mu.Unlock()
	if w.secrets.forms == nil {
		w.secrets.forms = map[string]string{}
	}
	for _, form := range disguises(canary) {
		w.secrets.forms[form] = of
	}
}

// wildBegins are the forms of what every canary begins with.
var wildBegins = disguises(wildCanary)

// shown says whose secret is in a text, "" if none is.
func (w *wild) shown(text string) string {
	for _, t := range []string{text, dumped.ReplaceAllString(text, ""), unpacked(text)} {
		if !slices.ContainsFunc(wildBegins, func(form string) bool { return strings.Contains(t, form) }) {
			continue
		}
		w.secrets.mu.Lock()
		for form, of := range w.secrets.forms {
			if strings.Contains(t, form) {
				w.secrets.mu.Unlock()
				return of
			}
		}
		w.secrets.mu.Unlock()
	}
	return ""
}

var inBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}`)

// unpacked is what is compressed in a text, as it stands or in base64.
func unpacked(text string) string {
	var all strings.Builder
	for _, found := range inBase64.FindAllString(text, 20) {
		if raw, err := base64.StdEncoding.DecodeString(found); err == nil {
			all.WriteString(inflated(raw))
		}
	}
	all.WriteString(inflated([]byte(text)))
	return all.String()
}

func inflated(raw []byte) string {
	if r, err := gzip.NewReader(bytes.NewReader(raw)); err == nil {
		out, _ := io.ReadAll(io.LimitReader(r, 1<<20))
		return string(out)
	}
	if r, err := zlib.NewReader(bytes.NewReader(raw)); err == nil { // an object of git
		out, _ := io.ReadAll(io.LimitReader(r, 1<<20))
		return string(out)
	}
	return ""
}

// named says which denied name is in a text that was not told it.
func (w *wild) named(text, args string) string {
	for _, f := range w.files {
		if !f.unread {
			continue
		}
		told := func(id string) bool { // a rule that asks is named, and tells what it is about
			return strings.Contains(args, id) || slices.ContainsFunc(w.rules, func(r wildRule) bool { return strings.Contains(r.pattern, id) })
		}
		if id := regexp.MustCompile(`zq\d+`).FindString(filepath.Base(f.path)); id != "" &&
			strings.Contains(text, id) && !told(id) {
			return f.path
		}
	}
	return ""
}

// look goes through the disk and tells what is wrong with it.
func (w *wild) look() []string {
	var wrong []string
	own := map[string]bool{}
	for _, f := range w.files {
		if f.unread {
			own[f.path] = true
			for _, name := range f.more {
				own[name] = true
			}
		}
		if f.unread || f.unwritten {
			if what := f.changed(); what != "" {
				wrong = append(wrong, f.path+" "+what)
			}
		}
	}
	_ = filepath.WalkDir(w.top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || own[path] {
			return nil // what is gone meanwhile shows nothing
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		if of := w.shown(string(raw)); of != "" {
			wrong = append(wrong, fmt.Sprintf("%s holds what only %s may", path, of))
		}
		return nil
	})
	if text, err := os.ReadFile(filepath.Join(w.top, "outside", "o.txt")); err != nil ||
		!strings.HasPrefix(string(text), "outside\n"+wildCanary) || len(text) > 60 {
		wrong = append(wrong, fmt.Sprintf("what is outside of the roots was changed: %q %v", text, err))
	}
	return wrong
}

// changed says what has become of a file.
func (f *wildFile) changed() string {
	info, err := os.Lstat(f.path)
	if err != nil {
		return "is gone: " + err.Error()
	}
	text, err := os.ReadFile(f.path)
	switch {
	case err != nil:
		return "cannot be read: " + err.Error()
	case string(text) != f.text:
		return fmt.Sprintf("holds %.80q", text)
	case !os.SameFile(info, f.info):
		return "is another file"
	case info.Mode() != f.info.Mode():
		return fmt.Sprintf("has the mode %v, and had %v", info.Mode(), f.info.Mode())
	case info.Sys().(*syscall.Stat_t).Uid != f.info.Sys().(*syscall.Stat_t).Uid:
		return "has another owner"
	}
	return ""
}
