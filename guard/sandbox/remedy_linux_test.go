package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The remedy is that for the setting that is in the way, and only for it.
func TestRemedy(t *testing.T) {
	const apparmor, current = "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "proc/self/attr/current"
	const user = 1000
	for name, c := range map[string]struct {
		files map[string]string
		user  int
		err   error
		want  string // "" if nothing is known
	}{
		"AppArmor":                {map[string]string{apparmor: "1\n", current: "unconfined\n"}, user, unix.EPERM, " profile apparmor --install"},
		"AppArmor, unknown label": {map[string]string{apparmor: "1\n"}, user, unix.EACCES, " profile apparmor --install"},
		"AppArmor and root":       {map[string]string{apparmor: "1\n", current: "unconfined\n"}, 0, unix.EPERM, ""},
		"AppArmor allows all":     {map[string]string{apparmor: "0\n", current: "unconfined\n"}, user, unix.EPERM, ""},
		"the profile is loaded":   {map[string]string{apparmor: "1\n", current: "toolhost (unconfined)\n"}, user, unix.EPERM, ""},
		"a container on Ubuntu":   {map[string]string{apparmor: "1\n", ".dockerenv": ""}, user, unix.EPERM, "toolhost profile seccomp"},
		"podman":                  {map[string]string{"run/.containerenv": ""}, user, unix.EPERM, "--security-opt seccomp"},
		"Debian of old":           {map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, user, unix.EPERM, "unprivileged_userns_clone=1"},
		"none allowed":            {map[string]string{"proc/sys/user/max_user_namespaces": "0\n"}, user, unix.ENOSPC, "max_user_namespaces="},
		"old kernel":              {nil, user, unix.ENOSYS, "Linux 5.12"},
		"unknown":                 {nil, user, unix.EPERM, ""},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			write(t, filepath.Join(root, file), text)
		}
		if got := remedyAt(root, c.user, c.err); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The command names the program so that sudo, whose PATH is another, finds this one.
func TestInstallCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	if got := InstallCommand(); !strings.HasPrefix(got, "sudo ") || !strings.Contains(got, self) ||
		!strings.HasSuffix(got, " profile apparmor --install") {
		t.Errorf("got %s", got)
	}
}
