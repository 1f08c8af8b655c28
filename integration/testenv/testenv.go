// Package testenv skips tests on machines that lack what they test with.
package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// NeedsNotifications skips a test where this process cannot watch files, such as when all instances of inotify are taken.
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

// otherUser is any user that is not root.
const otherUser = 65534

// NeedsUsers skips a test where this process cannot give a file to another user: it is not root, or root of a namespace with one user.
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
	return os.Chown(name, otherUser, otherUser) == nil
}
