//go:build unix

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEnviron(t *testing.T) {
	base := []string{
		"PATH=/usr/bin:.::/bin:bin", "HOME=/home/x", "LANG=C", "MINE=1", "EMPTY=",
		"BASH_ENV=/x", "ENV=/x", "BASH_FUNC_ls%%=() { echo; }", "BASH_FUNC_/bin/ls%%=() { echo; }", "PS4=$(id)", "SHELLOPTS=xtrace", "BASHOPTS=x",
		"PROMPT_COMMAND=id", "CDPATH=/", "GLOBIGNORE=*", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/lib", "TOOLHOST_TOKEN=secret",
		"FORCE_COLOR=1", "EDITOR=vi", "TERM=xterm", "SECRET_A=1", "SECRET_B=1", "nonsense", "=x", "N=a\x00b", "GIT_ASKPASS=/ask",
	}
	got := Environ(base, nil, []string{"EDITOR", "SECRET_B", "PS4"}, []string{"SECRET_*"})
	for _, want := range []string{
		"PATH=/usr/bin:/bin", "HOME=/home/x", "LANG=C", "MINE=1", "EMPTY=", "LD_LIBRARY_PATH=/lib", "SECRET_B=1",
		"EDITOR=vi", "VISUAL=false", "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "PS4=$(id)", "GIT_ASKPASS=/ask",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, e := range got {
		name, _, _ := strings.Cut(e, "=")
		if matchAny(stripped, name) && name != "PS4" || name == "SECRET_A" || name == "nonsense" || name == "N" {
			t.Errorf("%s came through", e)
		}
	}
	got = Environ(base, []string{"PAGER=less", "MINE=2", "NEW=1", "BASH_ENV=/x", "PS4=x", "LD_PRELOAD=/x", "N=a\x00b", "=x", "PATH=/opt:."}, nil, nil)
	for name, want := range map[string]string{"PAGER": "less", "MINE": "2", "NEW": "1", "BASH_ENV": "", "PS4": "", "LD_PRELOAD": "", "N": "", "PATH": "/opt"} {
		if is := lookup(got, name); is != want {
			t.Errorf("%s=%s was set, want %q", name, is, want)
		}
	}
	if path := lookup(Environ(nil, nil, nil, nil), "PATH"); path != fallbackPath {
		t.Errorf("PATH of an empty environment: %q", path)
	}
	if lookup(Environ(nil, nil, nil, nil), "HOME") == "" {
		t.Error("no HOME in an empty environment")
	}
}

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

// TestLoginPath starts runners as a desktop program would, with nearly no PATH,
// and with login shells of all sorts.
func TestLoginPath(t *testing.T) {
	dir := t.TempDir()
	tag := newTag()
	for name, test := range map[string]struct {
		script string
		want   bool
	}{
		"answers":           {`PATH=/opt/mine:$PATH; exec /bin/bash --norc --noprofile -c "$4"`, true},
		"talks as well":     {`echo welcome; echo 'toolhost-path'; PATH=/opt/mine:$PATH; /bin/bash --norc --noprofile -c "$4"; echo bye`, true},
		"leaves a child":    {`sleep TAG & PATH=/opt/mine:$PATH; eval "$4"`, true},
		"leaves a daemon":   {`(setsid sleep TAG &); PATH=/opt/mine:$PATH; eval "$4"`, true},
		"fails":             {`exit 1`, false},
		"asks":              {`read -p 'update? ' x || exit 1`, false},
		"hangs":             {`trap '' TERM; (setsid sleep TAG &); sleep TAG`, false},
		"talks without end": {`yes`, false},
	} {
		t.Run(name, func(t *testing.T) {
			sh := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			script := "#!/bin/bash\n" + strings.ReplaceAll(test.script, "TAG", tag) + "\n"
			if err := os.WriteFile(sh, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, Config{
				Env:         []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "SHELL=" + sh},
				PathTimeout: 2 * time.Second, PathWait: time.Minute,
			})
			got := run(t, r, Command{Text: "echo $PATH"})
			want := "/usr/bin:/bin\n"
			if test.want {
				want = "/opt/mine:/usr/bin:/bin\n"
			}
			if got.Text != want {
				t.Errorf("PATH is %q, want %q", got.Text, want)
			}
			checkGone(t, tag)
		})
	}
}

// TestLoginPathDoesNotHold: commands do not wait longer than PathWait.
func TestLoginPathDoesNotHold(t *testing.T) {
	sh := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(sh, []byte("#!/bin/bash\nsleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{Env: []string{"PATH=/usr/bin:/bin", "SHELL=" + sh}, PathTimeout: time.Hour, PathWait: 10 * time.Millisecond})
	if got := run(t, r, Command{Text: "echo on"}); got.Text != "on\n" {
		t.Errorf("got %+v", got)
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
	if got, err := findBash("", []string{fmt.Sprintf("PATH=%s:/usr/bin", dir)}); got == mine {
		t.Errorf("took %s, %v", got, err)
	}
	if got, err := findBash(mine, nil); got != mine {
		t.Errorf("configured: got %q, %v", got, err)
	}
	if _, err := findBash("bash", nil); err == nil {
		t.Error("a relative path was accepted")
	}
}
