package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// refresh reads a file if it may have changed, and reports whether its content in force has changed.
func (s *reloader) refresh(f *file, now time.Time) bool {
	seen, err := s.versionOf(f, now)
	waiting := !f.gone.IsZero()
	if f.fileVersion.proves(seen) && !waiting {
		return false
	}
	text, info, err := s.content(f, seen, err)
	if isShortage(err) && s.begun && f.err == nil {
		s.warnOnce(f.file, err)
		return false
	}
	switch {
	case absent(err) && !f.required:
		return s.vanish(f, now)
	case err != nil && f.servers:
		return s.vanish(f, now)
	case err != nil:
		return s.fail(f, &parseError{File: f.file, Err: readFailure(err)})
	}
	f.gone = time.Time{}
	if f.err == nil && f.stale == nil && !waiting && f.text != nil && bytes.Equal(text, f.text) {
		return false
	}
	// A file that is being written may be empty.
	written := now.Sub(info.ModTime()).Abs() < racyWindow
	if len(bytes.TrimSpace(text)) == 0 && !f.servers && (written || s.begun && f.layer != nil) {
		return s.fail(f, &parseError{File: f.file, Err: errors.New("the file is empty")})
	}
	next, err := parse(f.source, s.words, text)
	if err != nil && f.servers {
		next, err = newLayer(f.source), nil
		next.warnings = []warning{{File: f.file, Text: "its servers are left out: the file cannot be read as JSON"}}
	}
	if err != nil && f.workspace != "" {
		return s.void(f, err)
	}
	if err != nil {
		return s.fail(f, err)
	}
	if !f.kind.inWorkspace() && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		next.warnings = append(next.warnings, warning{File: f.file, Text: "every user of this machine can write this file: " +
			"run chmod o-w on it"})
	}
	f.text = text
	s.expose(f)
	s.accept(f, next)
	return true
}

// expose determines whether the links of a user's or administrator's file lead through a root, as with files that are
// kept in a repository. No tool or command can write the file, but not every sandbox protects a link while a command
// runs. Therefore the content in force stays, and later content applies only if it tightens.
func (s *reloader) expose(f *file) {
	inRoot := func(path string) bool {
		return slices.ContainsFunc(s.cfg.Roots, func(root string) bool {
			return pathname.Within(pathname.Slashed(path), pathname.Slashed(canonical(root)))
		})
	}
	if f.tightenOnly() || inRoot(f.file) {
		return
	}
	// A path that cannot be followed was not read.
	_, _ = realpath.Trace(f.file, func(path string) (fs.FileInfo, error) {
		f.exposed = f.exposed || inRoot(path)
		return os.Lstat(path)
	})
	if !f.exposed || !s.begun {
		return
	}
	if f.layer == nil {
		f.layer = newLayer(f.source)
	}
	f.approved, f.fresh = itemsOf(f.layer.loosening(s.words)), false
}

// versionOf returns the version of a file.
func (s *reloader) versionOf(f *file, now time.Time) (fileVersion, error) {
	name := s.standing(f)
	if name == "" || name == f.file && f.dir.stillAbsent(s.reading) {
		return absentVersion(now), fs.ErrNotExist
	}
	seen, err := statVersion(name, now)
	if err == nil && f.workspace != "" && s.cfg.Withheld != nil && s.cfg.Withheld(f.file) {
		return absentVersion(now), fs.ErrNotExist
	}
	return seen, err
}

// standing returns the name by which a file is read now; "" if the file counts as missing.
func (s *reloader) standing(f *file) string {
	if f.workspace == "" || s.cfg.Settled == nil {
		return f.file
	}
	return s.cfg.Settled(f.file)
}

// content reads a file whose version and fault were just determined, and records the version. For a file that could
// not be read it records the fault, which proves nothing: the file is checked again the next time.
func (s *reloader) content(f *file, seen fileVersion, err error) (text []byte, info os.FileInfo, _ error) {
	f.fileVersion = seen
	switch {
	case absent(err):
		f.dir.look(s.reading)
		if e := brokenLink(f.file, f.dir.path); e != nil {
			f.fileVersion = fileVersion{at: seen.at, err: e.Error()}
			return nil, nil, e
		}
	case err == nil:
		if text, info, err = s.regular(s.standing(f)); err != nil {
			f.fileVersion = fileVersion{at: seen.at, err: err.Error()}
		}
	}
	return text, info, err
}

func readFailure(err error) error {
	if absent(err) {
		return errors.New("the file does not exist, but was named by --settings")
	}
	if path := new(fs.PathError); errors.As(err, &path) {
		return fmt.Errorf("cannot be read: %w", path.Err)
	}
	return err
}

// fail records that a file exists and cannot be used. Its earlier content
// stays in force.
func (s *reloader) fail(f *file, err error) bool {
	f.gone = time.Time{}
	if f.layer == nil && s.begun && f.err == nil {
		f.layer = newLayer(f.source) // it appeared later, so it has no last good content
	}
	if f.layer == nil {
		was := f.err
		f.err = err
		return was == nil || was.Error() != err.Error()
	}
	return f.setStale(err, "the file's last good content stays in force")
}

// void records that the content of a workspace file cannot be parsed. Such a file stops no call. It loosens nothing;
// what its last good content forbids stays forbidden.
func (s *reloader) void(f *file, err error) bool {
	f.gone = time.Time{}
	next := newLayer(f.source)
	if f.layer != nil {
		next = f.view().succeed(s.words, next)
		next.warnings = nil // without the warning about removed rules: the warning below says more
	}
	f.layer, f.err = next, nil
	return f.setStale(err, "the file does not count until it can be read; only deny and ask rules that were read from it "+
		"before stay in force")
}

// setStale sets the warning that a file cannot be used, and reports whether it is a new one.
func (f *file) setStale(err error, inForce string) bool {
	w := warning{File: f.file, Text: err.Error() + "; " + inForce}
	if p := new(parseError); errors.As(err, &p) {
		w.Line, w.Column, w.Text = p.Line, p.Column, p.Err.Error()+"; "+inForce
	}
	was := f.stale
	f.stale = &w
	return was == nil || *was != w
}

// vanish ends the effect of a deleted file.
func (s *reloader) vanish(f *file, now time.Time) bool {
	empty := newLayer(f.source)
	hadText := f.text != nil
	switch {
	case f.layer == nil:
		f.gone = time.Time{}
		changed := f.err != nil
		s.accept(f, empty)
		return changed
	case !hadText && f.gone.IsZero() && f.stale == nil:
		return false
	case f.tightenOnly():
		f.text = nil
		s.accept(f, empty)
		return true
	case f.gone.IsZero():
		f.gone, f.text, f.stale = now, nil, nil
		f.layer = f.view().succeed(s.words, empty)
		s.dueBy(now.Add(vanishGrace))
		return true
	case now.Sub(f.gone) < vanishGrace:
		s.dueBy(f.gone.Add(vanishGrace))
		return false
	}
	f.gone = time.Time{}
	s.accept(f, empty)
	return true
}

// accept puts the content of a file in force.
func (s *reloader) accept(f *file, next *layer) {
	switch {
	case f.layer == nil:
		f.fresh = true
	case f.tightenOnly():
		next = f.view().succeed(s.words, next)
	}
	f.layer, f.err, f.stale = next, nil, nil
}
