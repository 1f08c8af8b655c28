package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

func windowsPolicy(t *testing.T, root string, deny ...string) *Policy {
	t.Helper()
	s := &settings.Settings{DefaultMode: settings.ModeAcceptEdits}
	for _, text := range deny {
		s.Deny = append(s.Deny, settings.Entry{Text: text, File: "settings.json", Line: 1})
	}
	policy, err := New(Config{Roots: []string{root}, Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestResolveWindows: each name leads to a file by its whole path, which can be opened, and made.
func TestResolveWindows(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	if err := os.WriteFile(filepath.Join(root, "there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	volume := filepath.VolumeName(root)
	posix := "/" + strings.ToLower(volume[:1]) + filepath.ToSlash(root[len(volume):])
	policy := windowsPolicy(t, root)
	for name, want := range map[string]string{
		"there":                           root + `\there`,
		"./sub/../there":                  root + `\there`,
		"new/and/new":                     root + `\new\and\new`,
		root + `\there`:                   root + `\there`,
		filepath.ToSlash(root) + "/there": root + `\there`,
		root[len(volume):] + `\there`:     root + `\there`,
		posix + "/there":                  root + `\there`,
		"/etc/passwd":                     volume + `\etc\passwd`,
	} {
		path, err := policy.Resolve(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.EqualFold(path.Real(), want) || !filepath.IsAbs(path.Real()) {
			t.Errorf("%s: %s, want %s", name, path.Real(), want)
		}
		inside := strings.HasPrefix(want, root)
		if v := policy.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: path}}}); (v.Action == Allow) != inside {
			t.Errorf("%s: %v", name, v)
		}
		if !inside {
			continue
		}
		if _, err := path.MakeParents(0o777); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		dir, base, err := path.OpenParent()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := dir.WriteFile(base, []byte("written"), 0o600); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		dir.Close()
		if got, err := os.ReadFile(want); err != nil || string(got) != "written" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestWindowsNames: names by which Windows reaches something else than they say are refused, and rules hold whatever the case.
func TestWindowsNames(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, ".env"), []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	volume := filepath.VolumeName(root)
	posix := "//" + strings.ToLower(volume[:1]) + filepath.ToSlash(root[len(volume):]) + "/abs"
	policy := windowsPolicy(t, root, "Read(.env)", "Read("+posix+")")
	for _, name := range []string{
		".env.", ".env ", ".env::$DATA", "x:stream", `\\?\` + root + `\.env`, `\\.\PhysicalDrive0`, "NUL", "sub/CON", "COM1.txt", "C:.env", "c:", `C:sub\x`,
	} {
		if path, err := policy.Resolve(name); err == nil {
			t.Errorf("%s: it is %s", name, path.Real())
		}
	}
	for _, name := range []string{".env", ".ENV", `sub\..\.Env`, "new/.env", "abs", "ABS"} {
		path, err := policy.Resolve(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := policy.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: path}}}); v.Action != Deny {
			t.Errorf("%s: %v", name, v)
		}
	}
}
