package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A fakeAppArmor stands below a directory of its own.
type fakeAppArmor struct {
	apparmor
	loaded []string // the texts that were loaded
	refuse error    // what the parser answers
}

func newFakeAppArmor(t *testing.T, program string) *fakeAppArmor {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("AppArmor is part of Linux")
	}
	f := &fakeAppArmor{}
	f.apparmor = apparmor{
		root: t.TempDir(), program: program,
		find: func() (string, error) { return "/sbin/apparmor_parser", nil },
		load: func(_, file string) error {
			text, err := os.ReadFile(file)
			f.loaded = append(f.loaded, string(text))
			return errors.Join(f.refuse, err)
		},
	}
	f.put(t, apparmorSwitch, "1\n")
	if err := os.MkdirAll(filepath.Join(f.root, filepath.Dir(apparmorFile)), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeAppArmor) put(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join(f.root, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// file returns the profile that is installed, and holds that nothing else is there.
func (f *fakeAppArmor) file(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.root, filepath.Dir(apparmorFile)))
	if err != nil || len(entries) > 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	text, _ := os.ReadFile(filepath.Join(f.root, apparmorFile))
	return string(text)
}

func TestInstallAppArmor(t *testing.T) {
	f := newFakeAppArmor(t, `/home/me/.nvm/v1/my "tools", {a}/toolhost`)
	f.put(t, f.program, "")
	var out bytes.Buffer
	if err := f.install(&out); err != nil {
		t.Fatal(err)
	}
	first := f.file(t)
	if want := "\n" + `@{toolhost} = "/home/me/.nvm/v1/my \"tools\"\, \{a\}/toolhost"` +
		"\n"; !strings.Contains(first, want) || strings.Contains(first, "/usr/bin") {
		t.Errorf("got\n%s\nwant%s", first, want)
	}
	if len(f.loaded) != 1 || f.loaded[0] != first {
		t.Errorf("loaded %q", f.loaded)
	}
	if info, err := os.Stat(filepath.Join(f.root, apparmorFile)); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	for _, want := range []string{f.program, "loaded by /sbin/apparmor_parser", "sudo rm " + apparmorFile} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "nothing changes") {
		t.Errorf("said of a system that restricts: %s", out.String())
	}
	if err := f.install(&out); err != nil || f.file(t) != first {
		t.Errorf("again: %v\n%s", err, f.file(t))
	}

	// Another program is added; one that is gone is dropped.
	kept := f.program
	f.program = "/opt/other/toolhost"
	f.put(t, f.program, "")
	if err := f.install(&out); err != nil || strings.Count(f.file(t), "\n@{toolhost} += ") != 1 {
		t.Errorf("%v\n%s", err, f.file(t))
	}
	if err := os.Remove(filepath.Join(f.root, kept)); err != nil {
		t.Fatal(err)
	}
	f.program = "/opt/third/toolhost"
	if err := f.install(&out); err != nil || strings.Contains(f.file(t), "nvm") ||
		!strings.Contains(f.file(t), "/opt/other/") {
		t.Errorf("%v\n%s", err, f.file(t))
	}
}

// TestInstallAppArmorPackage: the file of a package stays as it is for the paths that it knows, and keeps them otherwise.
func TestInstallAppArmorPackage(t *testing.T) {
	shipped := readProfile(t)
	for program, added := range map[string]bool{
		"/usr/bin/toolhost": false, "/home/a/go/bin/toolhost": false, "/home/a/b/go/bin/toolhost": true, "/usr/bin/toolhost2": true,
	} {
		f := newFakeAppArmor(t, program)
		f.put(t, apparmorFile, shipped)
		var out bytes.Buffer
		if err := f.install(&out); err != nil || !strings.Contains(f.file(t), "@{toolhost} = /usr/bin/toolhost ") ||
			strings.Contains(f.file(t), `"`+program+`"`) != added {
			t.Errorf("%s: %v\n%s", program, err, f.file(t))
		}
		if len(f.loaded) != 1 || f.loaded[0] != f.file(t) {
			t.Errorf("%s: loaded %q", program, f.loaded)
		}
	}
}

func readProfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../guard/sandbox/profiles/toolhost.apparmor")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInstallAppArmorFails: an installation that fails leaves the file as it was, and says what to do.
func TestInstallAppArmorFails(t *testing.T) {
	shipped := readProfile(t)
	for name, c := range map[string]struct {
		before string
		spoil  func(f *fakeAppArmor)
		says   string
	}{
		"not root":           {"", func(f *fakeAppArmor) { f.user = 1000 }, "run sudo "},
		"no parser":          {"", func(f *fakeAppArmor) { f.find = func() (string, error) { return "", exec.ErrNotFound } }, "sudo apt install apparmor && sudo "},
		"refused, first":     {"", func(f *fakeAppArmor) { f.refuse = errors.New("abi") }, "abi"},
		"refused, again":     {shipped, func(f *fakeAppArmor) { f.refuse = errors.New("abi") }, "abi"},
		"of another":         {"profile toolhost /x {\n}\n", func(*fakeAppArmor) {}, "sudo rm " + apparmorFile + " && sudo "},
		"control characters": {shipped, func(f *fakeAppArmor) { f.program = "/opt/a\nb/toolhost" }, "control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAppArmor(t, "/opt/x/toolhost")
			if c.before != "" {
				f.put(t, apparmorFile, c.before)
			}
			c.spoil(f)
			var out bytes.Buffer
			if err := f.install(&out); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if got := f.file(t); got != c.before || out.Len() > 0 {
				t.Errorf("the file is now\n%s\nand it says %s", got, out.String())
			}
		})
	}
	f := newFakeAppArmor(t, "/opt/x/toolhost")
	f.put(t, apparmorSwitch, "0\n")
	var out bytes.Buffer
	if err := f.install(&out); err != nil || !strings.Contains(out.String(), "nothing changes") {
		t.Errorf("a system that does not restrict: %v %s", err, out.String())
	}
}
