package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

const (
	owner    = 1234 // the user and group that a workspace belongs to
	stranger = 5678 // another user
)

// giveAway gives everything in a directory, and the directory, to owner.
func giveAway(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, owner, owner)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Commands of root work with the files of the owner of their workspace as root does, and with those of no one else.
func TestOwners(t *testing.T) {
	testenv.NeedsUsers(t)
	f := newFixture(t)
	write(t, f.ws+"/src/private", "private text\n")
	write(t, f.out+"/strange", secret)
	write(t, f.ws+"/strange", secret)
	giveAway(t, f.ws)
	for path, mode := range map[string]os.FileMode{"/ws/src": 0o700, "/ws/src/private": 0o600, "/ws/strange": 0o600,
		"/out/strange": 0o600} {
		if err := os.Chmod(f.base+path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{f.out + "/strange", f.ws + "/strange"} {
		if err := os.Lchown(path, stranger, stranger); err != nil {
			t.Fatal(err)
		}
	}
	s := f.start(t, Namespaces)
	if s == nil {
		t.Skip("no namespaces")
	}
	for _, c := range []struct{ name, script, want string }{
		{"read", "cat src/private", "private text\n"},
		{"seen with its number", "stat -c %u:%g src/private", "1234:1234\n"},
		{"written", "echo more >> src/private && tail -1 src/private", "more\n"},
		{"made, given away, changed", "echo x > src/new && chown 1234:1234 src/new && chmod 640 src/new && touch -d 2020-01-01 src/new && stat -c '%u %a %y' src/new | cut -c1-19", "1234 640 2020-01-01\n"},
		{"renamed and removed", "mv src/new src/old && rm src/old && ls src", "main.go\nprivate\n"},
		{"of a stranger", "cat \"$OUT/strange\" 2>&1", "Permission denied"},
		{"of a stranger in the workspace", "cat strange 2>&1", "Permission denied"},
		{"given to a stranger", "chown 5678 src/private 2>&1", "Invalid argument"},
		{"capabilities", "grep CapEff /proc/self/status", "000000000000000b\n"}, // chown, dac_override, fowner
		{"another user", "python3 -c 'import os; os.setuid(1234)' 2>&1", "Operation not permitted"},
		{"a mask", "cat .env 2>&1", "Permission denied"},
		{"a mask, directory", "ls secrets 2>&1", "Permission denied"},
		{"a mask, opened up", "chmod 777 .env 2>&1; chown 1234 .env 2>&1; cat .env 2>&1", "Permission denied"},
	} {
		r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", c.script)
		if !strings.Contains(r.output, c.want) {
			t.Errorf("%s: %q does not contain %q", c.name, r.output, c.want)
		}
	}
}
