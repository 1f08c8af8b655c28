//go:build unix

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDerive(t *testing.T) {
	base := []string{
		"PATH=/usr/bin:.::/bin:bin", "HOME=/home/x", "LANG=C", "MINE=1", "EMPTY=",
		"BASH_ENV=/x", "ENV=/x", "BASH_FUNC_ls%%=() { echo; }", "BASH_FUNC_/bin/ls%%=() { echo; }", "PS4=$(id)", "SHELLOPTS=xtrace", "BASHOPTS=x",
		"PROMPT_COMMAND=id", "CDPATH=/", "GLOBIGNORE=*", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/lib", "TOOLHOST_TOKEN=secret",
		"FORCE_COLOR=1", "EDITOR=vi", "TERM=xterm", "SECRET_A=1", "nonsense", "=x", "N=a\x00b", "GIT_ASKPASS=/ask",
	}
	got := derive(base, nil)
	for _, want := range []string{
		"PATH=/usr/bin:/bin", "HOME=/home/x", "LANG=C", "MINE=1", "EMPTY=", "LD_LIBRARY_PATH=/lib", "SECRET_A=1",
		"EDITOR=false", "VISUAL=false", "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/ask",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, e := range got {
		name, _, _ := strings.Cut(e, "=")
		if matchAny(stripped, name) || name == "nonsense" || name == "N" {
			t.Errorf("%s came through", e)
		}
	}
	got = derive(base, []string{"PAGER=less", "MINE=2", "NEW=1", "BASH_ENV=/x", "PS4=x", "LD_PRELOAD=/x", "N=a\x00b",
		"=x", "PATH=/opt:."})
	for name, want := range map[string]string{"PAGER": "less", "MINE": "2", "NEW": "1", "BASH_ENV": "", "PS4": "",
		"LD_PRELOAD": "", "N": "", "PATH": "/opt"} {
		if is := lookup(got, name); is != want {
			t.Errorf("%s=%s was set, want %q", name, is, want)
		}
	}
	for set, want := range map[string]string{
		"/opt/bin:$PATH": "/opt/bin:/usr/bin:/bin", "${PATH}:$HOME/bin": "/usr/bin:/bin:/home/x/bin",
		"$NOWHERE/bin:/opt": "/opt", "${NOWHERE}:.": fallbackPath, "/a$/b:/c": "/a$/b:/c",
	} {
		if is := lookup(derive(base, []string{"PATH=" + set}), "PATH"); is != want {
			t.Errorf("PATH=%s gives %q, want %q", set, is, want)
		}
	}
	if path := lookup(derive(nil, nil), "PATH"); path != fallbackPath {
		t.Errorf("PATH of an empty environment: %q", path)
	}
	if lookup(derive(nil, nil), "HOME") == "" {
		t.Error("no HOME in an empty environment")
	}
}

func TestMergePath(t *testing.T) {
	for _, test := range []struct{ inherited, login, want string }{
		{"/usr/bin:/bin", "/opt/homebrew/bin:/usr/bin:/bin", "/opt/homebrew/bin:/usr/bin:/bin"},
		{"/venv/bin:/usr/bin", "/opt/bin:/usr/bin", "/venv/bin:/opt/bin:/usr/bin"},
		{"", "/a:/b:/a", "/a:/b"},
		{".:/a::b", "", "/a"},
		{"/a", ".:/b:", "/a:/b"},
	} {
		if got := mergePath(test.inherited, test.login); got != test.want {
			t.Errorf("mergePath(%q, %q) = %q, want %q", test.inherited, test.login, got, test.want)
		}
	}
}

func TestBarePath(t *testing.T) {
	for path, want := range map[string]bool{
		"": true, "/usr/bin:/bin": true, fallbackPath: true, "/usr/bin:/opt/homebrew/bin": false, "/root/.cargo/bin": false,
	} {
		if got := bare(path); got != want {
			t.Errorf("bare(%q) = %v", path, got)
		}
	}
}

func TestFindBash(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "bash")
	if err := os.WriteFile(mine, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if rootOnly(dir) {
		t.Errorf("%s can be written by everybody and was trusted", dir)
	}
	if got, err := findBash([]string{fmt.Sprintf("PATH=%s:/usr/bin", dir)}); got == mine {
		t.Errorf("took %s, %v", got, err)
	}
}
