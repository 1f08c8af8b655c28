//go:build unix

package guard

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/settings"
)

// realTemp returns a fresh directory by its real name.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tree makes files: "dir/" is a directory, "a -> b" a symbolic link, "a = b" a
// hard link to b, "a" a file that holds its own name.
func tree(t testing.TB, dir string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		name, target, isLink := strings.Cut(e, " -> ")
		hard, original, isHard := strings.Cut(e, " = ")
		if isHard {
			name = hard
		}
		full := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, full)
		case isHard:
			err = os.Link(filepath.Join(dir, original), full)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// policy makes a policy for one root with a home next to it.
func policy(t testing.TB, root string, set *settings.Settings, change ...func(*Config)) *Policy {
	t.Helper()
	cfg := Config{Roots: []string{root}, Home: filepath.Join(filepath.Dir(root), "home"),
		StateDir: filepath.Join(filepath.Dir(root), "state"), Settings: set}
	for _, f := range change {
		f(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestResolve(t *testing.T) {
	top := realTemp(t)
	root := filepath.Join(top, "ws")
	tree(t, top, "ws/a/f", "ws/.env", "ws/up -> ..", "ws/env -> .env", "ws/dir -> a", "ws/gone -> nowhere/x",
		"ws/l1 -> l2", "ws/l2 -> l1",
		"out/secret", "ws/out -> "+top+"/out", "home/x", "ws/é")
	for _, name := range []string{"blank ", " both\n", "b"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := policy(t, root, nil)
	tests := []struct {
		name       string
		given      string // below top; "" when an error is expected
		real       string
		errorHolds string
	}{
		{"a/f", "ws/a/f", "ws/a/f", ""},
		{"./a//f/", "ws/a/f", "ws/a/f", ""},
		{"a/../.env", "ws/.env", "ws/.env", ""},
		{root + "/a/f", "ws/a/f", "ws/a/f", ""},
		{"~", "home", "home", ""},
		{"~/x", "home/x", "home/x", ""},
		{"~x", "ws/~x", "ws/~x", ""},
		{"env", "ws/env", "ws/.env", ""},
		{"dir/f", "ws/dir/f", "ws/a/f", ""},
		{"dir/../.env", "ws/.env", "ws/.env", ""},
		{"out/secret", "ws/out/secret", "out/secret", ""},
		{"out/../home/x", "ws/home/x", "home/x", ""}, // ".." is taken where the link leads
		{"gone", "ws/gone", "ws/nowhere/x", ""},
		{"new/deep/file", "ws/new/deep/file", "ws/new/deep/file", ""},
		{"out/new", "ws/out/new", "out/new", ""},
		{"new/../out/new", "ws/out/new", "out/new", ""},
		{"a/f/below", "ws/a/f/below", "ws/a/f/below", ""},
		{"é", "ws/é", "ws/é", ""},
		{"/proc/self/root" + top + "/out/secret", "", "out/secret", ""},
		{"", "", "", "empty"},
		{"a\x00b", "", "", "NUL"},
		{"blank ", "ws/blank ", "ws/blank ", ""},
		{root + "/blank ", "ws/blank ", "ws/blank ", ""},
		{" both\n", "ws/ both\n", "ws/ both\n", ""},
		{"blank", "ws/blank", "ws/blank", ""},
		{"blank  ", "", "", "white space"},
		{"b ", "", "", "white space"},
		{" a", "", "", "white space"},
		{"a ", "", "", "white space"},
		{"a\n", "", "", "white space"},
		{strings.Repeat("x", realpath.MaxLength+1), "", "", "4096"},
		{"l1", "", "", "symbolic links"},
		{"/proc/self/fd/0", "", "", "open file of a process"},
		{"/dev/fd/0", "", "", "open file of a process"},
		{"/dev/stdin", "", "", "open file of a process"},
	}
	for _, tt := range tests {
		if strings.Contains(tt.name, "/proc") || strings.HasPrefix(tt.name, "/dev") {
			if _, err := os.Stat("/proc/self/fd"); err != nil {
				continue
			}
		}
		got, err := p.Resolve(tt.name)
		if tt.errorHolds != "" {
			if err == nil || !strings.Contains(err.Error(), tt.errorHolds) {
				t.Errorf("Resolve(%.40q) = %v, %v; want an error with %q", tt.name, got, err, tt.errorHolds)
			}
			continue
		}
		if err != nil {
			t.Errorf("Resolve(%q): %v", tt.name, err)
			continue
		}
		if want := filepath.Join(top, tt.given); tt.given != "" && got.String() != want {
			t.Errorf("Resolve(%q).String() = %s, want %s", tt.name, got, want)
		}
		if want := filepath.Join(top, tt.real); got.Real() != want {
			t.Errorf("Resolve(%q).Real() = %s, want %s", tt.name, got.Real(), want)
		}
	}
}

func TestPathOperations(t *testing.T) {
	root := realTemp(t)
	tree(t, root, "a/f", "a/g", "link -> a/f", "h = a/g")
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := policy(t, root, nil)
	for _, name := range []string{"a/f", "link", "h", "fifo"} {
		f, err := resolve(t, p, name).Open() // must not hang on the FIFO
		if err != nil {
			t.Errorf("Open(%s): %v", name, err)
			continue
		}
		f.Close()
	}
	f, err := resolve(t, p, "link").OpenWritable()
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("A")
	f.Close()
	if got := content(t, root, "a/f"); got != "A/f" {
		t.Errorf("a/f holds %q, want %q", got, "A/f")
	}
	if _, err := resolve(t, p, "none").Open(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing file: %v", err)
	}
	if info, err := resolve(t, p, "link").Stat(); err != nil || info.Name() != "f" || info.IsDir() {
		t.Errorf("Stat(link) = %v, %v", info, err)
	}
	deep := resolve(t, p, "x/y/z")
	if _, _, err := deep.OpenParent(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenParent below a missing directory: %v", err)
	}
	for range 2 {
		if _, err := deep.MakeParents(0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, base, err := deep.OpenParent()
	if err != nil || base != "z" {
		t.Fatalf("OpenParent = %q, %v", base, err)
	}
	defer dir.Close()
	if err := dir.WriteFile(base, nil, 0o644); err != nil {
		t.Error(err)
	}
	content(t, root, "x/y/z")
	if _, err := resolve(t, p, "a/f/q/r").MakeParents(0o755); err == nil {
		t.Error("MakeParents below a file succeeded")
	}
	var zero Path
	if _, err := zero.Open(); err == nil {
		t.Error("the zero Path opened something")
	}
	if _, _, err := zero.OpenParent(); err == nil {
		t.Error("the zero Path has a parent")
	}
	if _, err := zero.MakeParents(0o755); err == nil {
		t.Error("the zero Path has parents")
	}
}

func resolve(t testing.TB, p *Policy, name string) Path {
	t.Helper()
	path, err := p.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSwapped puts something else in a path's place after it was resolved.
func TestSwapped(t *testing.T) {
	tests := []struct {
		what string
		swap func(t *testing.T, ws string)
	}{
		{"a link for the file", func(t *testing.T, ws string) {
			os.Remove(ws + "/sub/f")
			tree(t, ws, "sub/f -> ../../out/f")
		}},
		{"a link for the directory", func(t *testing.T, ws string) {
			os.Rename(ws+"/sub", ws+"/old")
			tree(t, ws, "sub -> ../out")
		}},
		{"a link for the directory above", func(t *testing.T, ws string) {
			os.Rename(ws, ws+"-old")
			tree(t, filepath.Dir(ws), "ws -> evil")
		}},
		{"another name of another file", func(t *testing.T, ws string) {
			os.Remove(ws + "/sub/f")
			tree(t, filepath.Dir(ws), "ws/sub/f = out/f")
		}},
	}
	for _, tt := range tests {
		top := realTemp(t)
		ws := filepath.Join(top, "ws")
		tree(t, top, "ws/sub/f", "out/f", "evil/sub/f")
		path := resolve(t, policy(t, ws, nil), "sub/f")
		tt.swap(t, ws)
		if f, err := path.Open(); !errors.Is(err, ErrSwapped) {
			b, _ := io.ReadAll(f)
			t.Errorf("%s: Open = %q, %v; want ErrSwapped", tt.what, b, err)
		}
		if _, err := path.OpenWritable(); !errors.Is(err, ErrSwapped) {
			t.Errorf("%s: OpenWritable: %v, want ErrSwapped", tt.what, err)
		}
		if strings.Contains(tt.what, "directory") {
			if _, _, err := path.OpenParent(); !errors.Is(err, ErrSwapped) {
				t.Errorf("%s: OpenParent: %v, want ErrSwapped", tt.what, err)
			}
			if _, err := path.MakeParents(0o755); !errors.Is(err, ErrSwapped) {
				t.Errorf("%s: MakeParents: %v, want ErrSwapped", tt.what, err)
			}
		}
	}
}

// FuzzResolve checks that a resolved path is absolute, clean and without links,
// and that resolving it again changes nothing.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"a", "../x", "l/../..", "~/a", "/etc/passwd", "l/l/l", "././/a/",
		"/proc/self/root/etc", "\x00"} {
		f.Add(s)
	}
	root := realTemp(f)
	tree(f, root, "a/b", "l -> a", "up -> ../..", "self -> self", "gone -> nowhere")
	p := policy(f, root, nil)
	f.Fuzz(func(t *testing.T, name string) {
		path, err := p.Resolve(name)
		if err != nil {
			return
		}
		for _, s := range []string{path.Real(), path.String()} {
			if !filepath.IsAbs(s) || filepath.Clean(s) != s {
				t.Fatalf("Resolve(%q) = %q, not absolute and clean", name, s)
			}
		}
		if strings.TrimSpace(path.Real()) != path.Real() || strings.HasPrefix(path.Real(), "/proc/") {
			return
		}
		again, err := p.Resolve(path.Real())
		if err != nil || again.Real() != path.Real() {
			t.Fatalf("Resolve(%q) = %q, resolved again %q, %v", name, path.Real(), again.Real(), err)
		}
	})
}

// White space around a name that a file has had is part of it, and rules hold for the name; other mistakes are refused.
func TestResolveKept(t *testing.T) {
	top := realTemp(t)
	root := filepath.Join(top, "ws")
	tree(t, top, "ws/a", "ws/d/f", "out/secret", "ws/out  -> "+top+"/out")
	p := policy(t, root, &settings.Settings{DefaultMode: settings.ModeAcceptEdits,
		Deny: []settings.Entry{{Text: "Edit(/b*)", File: root + "/.claude/settings.json"}}})
	for _, c := range []struct {
		name, real, errorHolds string
		denied                 bool
	}{
		{root + "/a", "ws/a", "", false},
		{root + "/a ", "ws/a ", "", false},
		{root + "/a\n", "ws/a\n", "", false},
		{root + "/d /f ", "ws/d /f ", "", false},
		{root + "/out /new\t", "out/new\t", "", false},
		{root + "/b ", "ws/b ", "", true},
		{root + "/b/c ", "ws/b/c ", "", true},
		{"", "", "empty", false},
		{root + "/a\x00 ", "", "NUL", false},
		{root + strings.Repeat("x", realpath.MaxLength), "", "4096", false},
	} {
		got, err := p.ResolveKept(c.name)
		if c.errorHolds != "" {
			if err == nil || !strings.Contains(err.Error(), c.errorHolds) {
				t.Errorf("%.40q: %v, want an error with %q", c.name, err, c.errorHolds)
			}
			continue
		}
		if err != nil || got.Real() != filepath.Join(top, c.real) {
			t.Errorf("%q: %q, %v", c.name, got.Real(), err)
		}
		denied := p.Judge(Intent{Tool: "Edit", Effects: []Effect{Write{Path: got}}}).Action == Deny
		if denied != c.denied {
			t.Errorf("%q: denied %t", c.name, denied)
		}
		entry, err := p.ResolveEntry(c.name)
		if err != nil || entry.Real() != filepath.Join(top, c.real) {
			t.Errorf("entry %q: %q, %v", c.name, entry.Real(), err)
		}
	}
}
