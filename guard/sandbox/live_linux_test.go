package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// What the host changes while the sandbox lives, and what a command sees then.
func TestLive(t *testing.T) {
	t.Parallel()
	slow(t)
	write := func(t *testing.T, path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(t *testing.T, path string) {
		t.Helper()
		write(t, path+".new")
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *fixture)
		deny   []string // told to the sandbox, in the workspace
		script string
	}{
		{"replaced atomically", func(t *testing.T, f *fixture) { replace(t, f.ws+"/.env") }, []string{".env"}, "cat .env"},
		{"rewritten in place", func(t *testing.T, f *fixture) { write(t, f.ws+"/.env") }, nil, "cat .env"},
		{"removed and made anew", func(t *testing.T, f *fixture) { os.Remove(f.ws + "/.env"); write(t, f.ws+"/.env") }, []string{".env"}, "cat .env"},
		{"new in a denied directory", func(t *testing.T, f *fixture) { write(t, f.ws+"/secrets/new") }, nil, "cat secrets/new"},
		{"denied directory made anew", func(t *testing.T, f *fixture) { os.RemoveAll(f.ws + "/secrets"); write(t, f.ws+"/secrets/k") }, []string{"secrets"}, "cat secrets/k"},
		{"appears", func(t *testing.T, f *fixture) { write(t, f.ws+"/missing") }, []string{"missing"}, "cat missing; cp missing x; cat x; ln missing y; cat y; rm -rf x y"},
		{"appears with its directory", func(t *testing.T, f *fixture) { write(t, f.ws+"/a/b/.env") }, []string{"a/b/.env"}, "cat a/b/.env; mv a c && cat c/b/.env; mv a/b a/c && cat a/c/.env; mv a/b/.env z && cat z"},
		{"appears as a directory", func(t *testing.T, f *fixture) { write(t, f.ws+"/missing/k") }, []string{"missing"}, "cat missing/k; mv missing m; cat m/k"},
		{"appears with a hard link", func(t *testing.T, f *fixture) { write(t, f.ws+"/missing"); os.Link(f.ws+"/missing", f.ws+"/src/h") }, []string{"missing"}, "cat src/h"},
		{"appears as a symlink", func(t *testing.T, f *fixture) { write(t, f.ws+"/t"); os.Symlink("t", f.ws+"/missing") }, []string{"missing"}, "cat missing t"},
		{"several, some gone", func(t *testing.T, f *fixture) { write(t, f.ws+"/a.key"); write(t, f.ws+"/b.key") }, []string{"no.key", "a.key", "b.key", "src/no"}, "cat *.key"},
		{"twice", func(t *testing.T, f *fixture) { replace(t, f.ws+"/.env") }, []string{".env", ".env", ".env"}, "cat .env"},
		{"outside of the workspace", func(t *testing.T, f *fixture) { replace(t, f.out+"/private") }, []string{"../out/private"}, `cat "$OUT/private"`},
		{"parent of the denied file made anew", func(t *testing.T, f *fixture) { os.RemoveAll(f.ws + "/conf"); write(t, f.ws+"/conf/.env") }, []string{"conf/.env"}, "cat conf/.env; mv conf c && cat c/.env"},
		{"mounts of the host stay outside", func(*testing.T, *fixture) {}, nil, "grep -c shared: /proc/self/mountinfo | grep -v '^0' && echo BREACH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			s := startOn(t, Namespaces, f.policy())
			runIn(t, s, f.ws, f.env, "/bin/true")
			c.change(t, f)
			var paths []string
			for _, d := range c.deny {
				paths = append(paths, filepath.Join(f.ws, d))
			}
			if len(paths) > 0 {
				if err := s.Deny(paths...); err != nil {
					t.Fatalf("Deny: %v", err)
				}
			}
			r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", c.script)
			if strings.Contains(r.output, secret) || strings.Contains(r.output, breach) {
				t.Errorf("got through: %s", r.output)
			}
		})
	}
}

// What is to stay as it is still does once another file has its name, and was told of.
func TestHold(t *testing.T) {
	anew := func(t *testing.T, dir, name string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte("new\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(t *testing.T, path string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte("new\n"), 0o644),
			os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *fixture)
		hold   string // told to the sandbox, in the workspace
		script string
	}{
		{"replaced atomically", func(t *testing.T, f *fixture) { replace(t, f.ws+"/.claude/settings.json") }, ".claude/settings.json", "echo x >.claude/settings.json"},
		{"moved away", func(t *testing.T, f *fixture) { replace(t, f.ws+"/.claude/settings.json") }, ".claude/settings.json", "mv .claude/settings.json x; mv .claude c"},
		{"directory made anew", func(t *testing.T, f *fixture) { anew(t, f.ws+"/.claude", "settings.json") }, ".claude/settings.json", "echo x >.claude/settings.json; mv .claude c"},
		{"directory as a whole", func(t *testing.T, f *fixture) { anew(t, f.ws+"/.git/hooks", "pre-commit") }, ".git/hooks", "echo x >.git/hooks/pre-commit; touch .git/hooks/post-commit; mv .git/hooks h; mv .git g"},
		{"another name", func(t *testing.T, f *fixture) {
			replace(t, f.ws+"/.claude/settings.json")
			os.Link(f.ws+"/.claude/settings.json", f.ws+"/src/h")
		}, ".claude/settings.json", "echo x >src/h"},
		{"twice", func(t *testing.T, f *fixture) { replace(t, f.ws+"/.claude/settings.json") }, ".claude/settings.json", "echo x >.claude/settings.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			s := startOn(t, Namespaces, f.policy())
			runIn(t, s, f.ws, f.env, "/bin/true")
			c.change(t, f)
			for range 2 {
				if err := s.Hold(filepath.Join(f.ws, c.hold)); err != nil {
					t.Fatalf("Hold: %v", err)
				}
			}
			before := f.snapshot(t)
			r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", c.script)
			if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
				t.Errorf("changed (-before +after):\n%s\n%s", diff, r.output)
			}
		})
	}
}

// A command that tries to have the mask put elsewhere, by exchanging the name
// for a symbolic link, gains nothing: the object was named by its inode.
func TestDenyIsNotDiverted(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	n, ok := s.engine.(*insideProcess)
	if !ok {
		t.Skip("no namespaces here")
	}
	stale, err := place.Identify(f.ws + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", "mv go.mod hidden; ln -s src/main.go go.mod")
	_, err = n.request(contract.Request{Kind: contract.Deny, Objects: []place.Object{stale}})
	if err == nil {
		t.Error("covered through a symbolic link")
	}
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", "rm go.mod; cp hidden go.mod")
	_, err = n.request(contract.Request{Kind: contract.Deny, Objects: []place.Object{stale}})
	if err == nil {
		t.Error("covered another file without a word")
	}
	if r := runIn(t, s, f.ws, f.env, "/bin/cat", "src/main.go"); r.status.ExitCode != 0 {
		t.Error("another file was covered")
	}
}

// A file is covered although a directory above another of its names, which was found a moment before, has become a link,
// a file or nothing.
func TestDenyWithoutAPin(t *testing.T) {
	for name, change := range map[string]string{"a link": "rmdir src/was; ln -s ../secrets src/was",
		"a file": "rmdir src/was; echo x >src/was", "nothing": "rmdir src/was"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := start1(t, f.policy())
			n, ok := s.engine.(*insideProcess)
			if !ok {
				t.Skip("no namespaces here")
			}
			if err := os.Mkdir(f.ws+"/src/was", 0o755); err != nil {
				t.Fatal(err)
			}
			file, err := place.Identify(f.ws + "/go.mod")
			if err != nil {
				t.Fatal(err)
			}
			runIn(t, s, f.ws, f.env, "/bin/bash", "-c", change)
			_, err = n.request(contract.Request{Kind: contract.Deny, Objects: []place.Object{file},
				Pins: []string{f.ws + "/src/was"}})
			if err != nil {
				t.Errorf("covering: %v", err)
			}
			if r := runIn(t, s, f.ws, f.env, "/bin/cat", "go.mod"); r.status.ExitCode == 0 {
				t.Error("the file is not covered")
			}
		})
	}
}
