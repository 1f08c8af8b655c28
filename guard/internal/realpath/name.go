package realpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// MaxLength is the longest name that is resolved, in bytes: PATH_MAX of Linux, the
// longest of the systems we run on.
const MaxLength = 4096

// Check refuses names that can only be mistakes or attacks. White space around a name
// is one of these, unless there is a file of that very name in dir.
func Check(dir, name string) error {
	trimmed := strings.TrimSpace(name)
	err := CheckKept(name)
	switch {
	case err != nil || trimmed == name:
		return err
	case hasName(dir, name):
		return CheckKept(trimmed)
	}
	return fmt.Errorf("the path %q begins or ends with white space, and no file has that name: leave the white space out",
		name)
}

// CheckKept is Check for a name that a file has had, white space included.
func CheckKept(name string) error {
	switch {
	case name == "":
		return errors.New("the path is empty; give an absolute path or one relative to the workspace root")
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the path %q contains a NUL character; no file has such a name", name)
	case len(name) > MaxLength:
		return fmt.Errorf("the path has %d bytes, more than the %d a path may have", len(name), MaxLength)
	}
	return checkSystemName(name)
}

// hasName reports whether something has that name, blanks included, in dir.
func hasName(dir, name string) bool {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return Exists(name) && runtime.GOOS != "windows" // Windows drops blanks
}

// Exists reports whether something has a name, be it a link that leads nowhere.
func Exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
