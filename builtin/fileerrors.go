package builtin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"

	"github.com/toolhost/toolhost/builtin/internal/search"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
)

// This file holds the errors of Read for files that cannot be shown as text. Each error names the next step.

// processSecrets are files of /proc that look regular and show the memory, the environment or the open files of another
// process.
var processSecrets = regexp.MustCompile(`^/proc/([^/]+/)+(environ|fd|fdinfo|mem|map_files|maps|root|cwd|exe|auxv|stack)(/|$)`)

// kernelStreams are files that look regular and are the memory of the machine, or block until the kernel has new data.
var kernelStreams = regexp.MustCompile(`^/proc/(kcore|kmsg|vmcore|kpage[^/]*)$|^/sys/kernel/(debug/)?tracing/(.*/)?trace_pipe(_raw)?$`)

// refuseSpecial refuses special files before they are opened, because opening a device can have effects. It checks
// the name only; the opened file is checked again.
func refuseSpecial(path guard.Path) error {
	inProc := strings.HasPrefix(path.Real(), "/proc/")
	if inProc && processSecrets.MatchString(path.Real()) {
		return fmt.Errorf("%s shows data of a running process: tools do not read it", path)
	}
	if (inProc || strings.HasPrefix(path.Real(), "/sys/kernel/")) && kernelStreams.MatchString(path.Real()) {
		return fmt.Errorf("%s is a stream of the kernel: tools read only regular files", path)
	}
	if path.Regular() {
		return nil // the open reports the error
	}
	info, err := os.Lstat(path.Location())
	if err != nil || info.IsDir() || info.Mode().IsRegular() {
		return nil // the open reports the error
	}
	return special(path, info.Mode())
}

func special(path guard.Path, mode fs.FileMode) error {
	kind := "special file"
	switch {
	case mode&fs.ModeDevice != 0:
		kind = "device"
	case mode&fs.ModeNamedPipe != 0:
		kind = "named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	}
	return fmt.Errorf("%s is a %s: tools read and write only regular files, because this one could block forever", path,
		kind)
}

// shownEntries is how many names of a directory an error shows.
const shownEntries = 20

// directory returns the error for a Read of a directory, with its first entries.
func directory(policy *guard.Policy, path guard.Path, f *os.File) error {
	entries, err := f.ReadDir(-1)
	if err != nil && len(entries) == 0 {
		return fmt.Errorf("%s is a directory, and it cannot be listed: %w", path, err)
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(path.Real(), e.Name())
		if path.Own() {
			name = policy.Commands().Private().Named(filepath.Join(path.Location(), e.Name()))
		}
		if name == "" || policy.Hidden(name, e.IsDir()) {
			continue
		}
		name = e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	more := ""
	if len(names) > shownEntries {
		more = fmt.Sprintf("\n… and %d more", len(names)-shownEntries)
		names = names[:shownEntries]
	}
	if len(names) == 0 {
		return fmt.Errorf("%s is an empty directory", path)
	}
	return fmt.Errorf("%s is a directory. Use Glob to list it, or Read one of its files:\n%s%s", path,
		strings.Join(names, "\n"), more)
}

// Limits of the search for a name like a missing one.
const (
	shownNames  = 5
	nameTimeout = 300 * time.Millisecond
	nameEdits   = 3 // the most letters by which a name may differ, and no more than a third of them
)

// missing returns the error for a file that does not exist, with similar names.
func missing(ctx context.Context, env *Env, path guard.Path) error {
	if info, err := os.Lstat(path.String()); err == nil && !path.Own() && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link to %s, which does not exist", path, path.Real())
	}
	names := notes(sameTail(env, path))
	for _, name := range nearest(env.Policy, path) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range elsewhere(ctx, env, path) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	shown := strings.ReplaceAll(path.Real(), string(utf8.RuneError), "")
	if i := slices.IndexFunc(names, func(name string) bool {
		return !utf8.ValidString(name) && strings.ToValidUTF8(name, "") == shown
	}); i >= 0 {
		return fmt.Errorf("%s does not exist: the file has a name that is not UTF-8 (%q), which a call cannot contain. "+
			"Rename it with Bash, such as with mv -- pattern* new-name", path, names[i])
	}
	if len(names) == 0 {
		return fmt.Errorf("%s does not exist. Use Glob to find the file", path)
	}
	if len(names) > shownNames {
		names = names[:shownNames]
	}
	for i, name := range names {
		if text.LookAlike(filepath.Base(name)) == text.LookAlike(filepath.Base(path.Real())) {
			names[i] = text.Escaped(name)
		}
	}
	return fmt.Errorf("%s does not exist. Did you mean:\n%s", path, strings.Join(names, "\n"))
}

// inFile explains the error for a path below a file. It returns other errors unchanged.
func inFile(path guard.Path, err error) error {
	if path.Own() {
		return err
	}
	for dir := filepath.Dir(path.Real()); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, statErr := os.Lstat(dir); statErr == nil && !info.IsDir() {
			return fmt.Errorf("%s is a file, not a directory", dir)
		}
	}
	return err
}

// nearest returns the names in the same directory that have the same stem or differ in few letters, most similar first.
func nearest(policy *guard.Policy, path guard.Path) []string {
	dir := filepath.Dir(path.Real())
	parent, base, err := path.OpenParent()
	if err != nil || policy.Hidden(dir, true) {
		return nil
	}
	defer parent.Close()
	entries, err := fs.ReadDir(parent.FS(), ".")
	if err != nil {
		return nil
	}
	type near struct {
		name     string
		distance int
	}
	var found []near
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	like := func(name string) string { return strings.ToLower(text.LookAlike(name)) }
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if path.Own() && policy.Commands().Private().Named(filepath.Join(filepath.Dir(path.Location()), e.Name())) == "" {
			continue
		}
		d := levenshtein.ComputeDistance(like(base), like(e.Name()))
		if stem != "" && strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())) == stem {
			d = min(d, 1)
		}
		if d <= min(nameEdits, (len(base)+1)/3) && !policy.Hidden(name, e.IsDir()) {
			found = append(found, near{name, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var names []string
	for _, f := range found {
		names = append(names, f.name)
	}
	return names
}

// elsewhere returns files with the same name in other directories of the root of the path, or directories if there
// are no files.
func elsewhere(ctx context.Context, env *Env, path guard.Path) []string {
	base := filepath.Base(path.Real())
	if names := inRoot(ctx, env, path, "**/"+escapeGlob(base), shownNames); len(names) > 0 {
		return names
	}
	var dirs []string
	within := string(filepath.Separator) + base + string(filepath.Separator)
	for _, name := range inRoot(ctx, env, path, "**/"+escapeGlob(base)+"/**", globLimit) {
		before, _, ok := strings.Cut(name, within)
		if dir := filepath.Join(before, base); ok && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// inRoot returns the files in the root of the path that match a pattern.
func inRoot(ctx context.Context, env *Env, path guard.Path, pattern string, limit int) []string {
	for _, root := range env.Policy.Roots() {
		if !isBelow(path.Real(), root) {
			continue
		}
		hidden, tag := env.Policy.Hiding()
		found, err := env.Runtime.search.Glob(ctx, search.GlobQuery{
			Scope:   search.Scope{Base: root, Path: root, Hidden: hidden, HiddenTag: tag},
			Pattern: pattern, Limit: limit, Timeout: nameTimeout,
		})
		if err != nil {
			return nil
		}
		var names []string
		for _, p := range found.Paths {
			if !filepath.IsAbs(p) {
				p = filepath.Join(root, p)
			}
			names = append(names, p)
		}
		return names
	}
	return nil
}

// isBelow reports whether path is dir or below it.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

var globMeta = regexp.MustCompile(`[\\*?\[\]{}]`)

func escapeGlob(name string) string { return globMeta.ReplaceAllString(name, `\$0`) }
