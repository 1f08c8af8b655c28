//go:build unix

package shell

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestEnvironmentReachesNothing runs bash with the variables that would make it do
// something else than it was told.
func TestEnvironmentReachesNothing(t *testing.T) {
	rc := filepath.Join(t.TempDir(), "rc")
	if err := os.WriteFile(rc, []byte("echo rc ran\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{InheritPath: true, Env: append(os.Environ(),
		"BASH_ENV="+rc, "ENV="+rc, "BASH_FUNC_ls%%=() { echo function; }", "BASH_FUNC_/bin/echo%%=() { builtin echo function; }", "SHELLOPTS=xtrace:braceexpand", "PS4=$(echo ps4 >&2)",
		"BASHOPTS=extglob", "PROMPT_COMMAND=echo prompt", "TOOLHOST_TOKEN=secret")})
	got := run(t, r, Command{Text: `type -t ls; env | grep -c -e TOKEN -e BASH_ENV; shopt -q extglob; /bin/echo $?`})
	if got.Text != "file\n0\n1\n" {
		t.Errorf("got %q", got.Text)
	}
}

// TestLoginPathDoesNotHold: commands do not wait longer than PathWait.
func TestLoginPathDoesNotHold(t *testing.T) {
	sh := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(sh, []byte("#!/bin/bash\nsleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{Env: []string{"PATH=/usr/bin:/bin", "SHELL=" + sh}, PathTimeout: time.Hour,
		PathWait: 10 * time.Millisecond})
	if got := run(t, r, Command{Text: "echo on"}); got.Text != "on\n" {
		t.Errorf("got %+v", got)
	}
}
