// Package testenv skips tests on machines that lack what they test with.
package testenv

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/fsnotify/fsnotify"
)

// maxTemp is the longest temporary directory, in bytes, below which the tests can bind sockets: their addresses have
// 108 bytes.
const maxTemp = 40

// Plain removes from the environment what tests do not expect: a locale, of which a shell warns if it is not
// installed, a temporary directory that scripts cannot name without quotes or that is too long for sockets, and a
// python3 that is a script that looks for another one, which takes longer than most commands of the tests.
func Plain() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); name == "LANG" || name == "LANGUAGE" ||
			strings.HasPrefix(name, "LC_") {
			os.Unsetenv(name)
		}
	}
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-", r)
	}
	if dir := os.Getenv("TMPDIR"); len(dir) > maxTemp || strings.ContainsFunc(dir, odd) {
		os.Unsetenv("TMPDIR")
	}
	spreadTemp()
	plainPython()
}

// plainPython puts the directory of the interpreter first in PATH where python3 is a script.
func plainPython() {
	found, _ := exec.LookPath("python3")
	raw, err := os.ReadFile(found)
	if err != nil || !bytes.HasPrefix(raw, []byte("#!")) {
		return
	}
	out, err := exec.Command(found, "-c", "import sys; print(sys.executable)").Output()
	if program := strings.TrimSpace(string(out)); err == nil && filepath.IsAbs(program) {
		os.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
}

// NotShort skips a test with -short. What says what takes long: "starts a sandbox".
func NotShort(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: ", what)
	}
}

// NeedsNotifications skips a test where this process cannot watch files, such as when all instances of inotify are
// taken.
func NeedsNotifications(t testing.TB) {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		err = w.Add(t.TempDir())
	}
	if err != nil {
		t.Skip("watching files: ", err)
	}
}

// someUsers are two users that are not root: one of them is not this process's.
var someUsers = []int{65533, 65534}

// NeedsUsers skips a test where this process cannot give a file to another user: it is not root, or root of a
// namespace with one user.
func NeedsUsers(t testing.TB) {
	t.Helper()
	if !HasUsers(t) {
		t.Skip("this process cannot give a file to another user")
	}
}

// HasUsers reports whether this process can give a file to another user.
func HasUsers(t testing.TB) bool {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, user := range someUsers {
		if os.Chown(name, user, user) != nil {
			return false
		}
	}
	return true
}

// NeedsProgram skips a test where a program is not installed.
func NeedsProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(err)
	}
}
