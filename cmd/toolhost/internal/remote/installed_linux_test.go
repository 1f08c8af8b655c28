package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInstalled: the program of an image is started if it is this one, and only if the user there cannot change it.
func TestInstalled(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the script runs as another user")
	}
	const another = 12345
	program := "#!/bin/sh\necho started $1\n"
	for name, c := range map[string]struct {
		content string
		owner   int
		starts  bool
	}{
		"the same": {program, 0, true}, "another": {program + "\n", 0, false}, "one that can be changed": {program, another, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "installed")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "toolhost")
			for path, content := range map[string]string{ours: program, theirs: c.content} {
				if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(theirs, c.owner, c.owner); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			l := NewLauncher(Target{Name: "x"}, ours)
			l.Version, l.FarDir = "1.0", filepath.Join(dir, "far")
			text, err := l.dialScript()
			if err != nil {
				t.Fatal(err)
			}
			sh := exec.Command("sh")
			sh.Env, sh.Stdin = []string{"PATH=" + dir + ":/usr/bin:/bin"}, strings.NewReader(text)
			sh.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: another, Gid: another}}
			out, err := sh.CombinedOutput()
			if err != nil || strings.HasPrefix(string(out), "started dial") != c.starts ||
				strings.HasPrefix(string(out), needMark) == c.starts {
				t.Errorf("%v %s", err, out)
			}
		})
	}
}
