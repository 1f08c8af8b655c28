package realpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkSystemName refuses the names by which Windows reaches something else
// than they say: devices, alternate streams, and trailing dots and spaces, which
// it drops.
func checkSystemName(name string) error {
	if strings.HasPrefix(name, `\\?\`) || strings.HasPrefix(name, `\\.\`) || strings.HasPrefix(name, `//?/`) ||
		strings.HasPrefix(name, `//./`) {
		return fmt.Errorf("the path %q is in the device name space; give an ordinary path", name)
	}
	volume := filepath.VolumeName(name)
	rest := name[len(volume):]
	if len(volume) == 2 && (rest == "" || !os.IsPathSeparator(rest[0])) {
		return fmt.Errorf("the path %q is relative to some directory of the drive %s; give an absolute path, as in %s\\%s",
			name, volume, volume, rest)
	}
	for element := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
		if element == "." || element == ".." {
			continue
		}
		if strings.Contains(element, ":") || strings.TrimRight(element, ". ") != element || !filepath.IsLocal(element) {
			return fmt.Errorf("the path %q has the element %q, which Windows takes for something else", name, element)
		}
	}
	return nil
}

// SystemName returns the path that Windows means by a name. A name that begins with a slash is on the drive of dir,
// except for /c/x: that is C:\x to bash on Windows, and to models that have seen much of it.
func SystemName(dir, name string) string {
	if !os.IsPathSeparator(name[0]) || filepath.VolumeName(name) != "" {
		return name
	}
	if len(name) > 1 && name[0] == '/' && isLetter(name[1]) && (len(name) == 2 || name[2] == '/') {
		return name[1:2] + ":\\" + name[min(len(name), 3):]
	}
	return filepath.VolumeName(dir) + name
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Follow resolves the nearest existing ancestor, short names included, and
// appends the rest.
func Follow(name string) (string, Resolved, error) {
	name = filepath.Clean(name)
	existing, rest := name, ""
	for {
		real, err := filepath.EvalSymlinks(existing)
		if err == nil {
			full := filepath.Join(real, rest)
			info, err := os.Lstat(full)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return full, foundBy(info), err
		}
		parent := filepath.Dir(existing)
		if !errors.Is(err, fs.ErrNotExist) || parent == existing {
			return "", Resolved{}, err
		}
		if _, lerr := os.Lstat(existing); lerr == nil {
			return "", Resolved{}, errors.New("it is a link that leads nowhere")
		}
		rest, existing = filepath.Join(filepath.Base(existing), rest), parent
	}
}

// FollowFrom is Follow for a name relative to at, which has no links.
func FollowFrom(at, name string) (string, Resolved, error) {
	return Follow(at + `\` + name)
}

// FollowThrough is Follow: no caller means other files by a name than the system does.
func FollowThrough(name string, _ func(name string) string) (string, Resolved, error) {
	return Follow(name)
}

// Trace is like Follow, but also calls lstat for the path that it returns. It does not for what is on the way.
func Trace(name string, lstat func(path string) (fs.FileInfo, error)) (string, error) {
	end, _, err := Follow(name)
	if err == nil {
		_, _ = lstat(end) // the caller keeps what it finds
	}
	return end, err
}
