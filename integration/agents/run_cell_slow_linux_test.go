//go:build slow

package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"golang.org/x/sys/unix"
)

// TestRunDescriptors starts clients with descriptors that lead to hidden files, and with those that shells and editors give.
func TestRunDescriptors(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "prompt.txt"), []byte("prompt\n"), 0o600))
	open := func(name string, flags int) *os.File {
		t.Helper()
		fd, err := unix.Open(filepath.Join(p.Project, name), flags|unix.O_CLOEXEC, 0)
		host.Must(t, err)
		f := os.NewFile(uintptr(fd), name)
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, w, err := os.Pipe()
	host.Must(t, err)
	w.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	host.Must(t, err)
	host.Must(t, unix.Close(pair[1]))
	for _, tt := range samples.Of([]struct {
		name string
		at   int
		file *os.File
		says string // "": it runs
	}{
		{"a directory", 0, open(".", unix.O_RDONLY), "is a directory"},
		{"the directory above", 0, open("..", unix.O_RDONLY), "is a directory"},
		{"a directory as output", 1, open(".", unix.O_RDONLY), "is a directory"},
		{"the path of a denied file", 0, open(".env", unix.O_PATH), "as a path only"},
		{"a path", 0, open(".", unix.O_PATH), "as a path only"},
		{"the path of a link", 0, open("../prompt.txt", unix.O_PATH|unix.O_NOFOLLOW), "as a path only"},
		{"a denied file", 0, open(".env", unix.O_RDONLY), "which the rules hide"},
		{"a denied file as output", 1, open(".env", unix.O_RDWR|unix.O_APPEND), "which the rules hide"},
		{"a directory as error output", 2, open(".", unix.O_RDONLY), "is a directory"},
		{"a device", 0, open("../../../../../../../../../../dev/zero", unix.O_RDONLY), "is a device"},
		{"a device as output", 1, open("../../../../../../../../../../dev/full", unix.O_WRONLY), "is a device"},
		{"the null device", 0, open("../../../../../../../../../../dev/null", unix.O_RDONLY), ""},
		{"a file", 0, open("../prompt.txt", unix.O_RDONLY), ""},
		{"a pipe", 0, r, ""},
		{"a socket", 0, os.NewFile(uintptr(pair[0]), "socket"), ""},
	}, 1) {
		t.Run(tt.name, func(t *testing.T) {
			script := fmt.Sprintf("for f in /proc/self/fd/%d /proc/self/fd/%[1]d/.env /proc/self/fd/%[1]d/project/.env; do cat $f; done 2>/dev/null >got; echo pwned >/proc/self/fd/0; cat got >&2; echo ran >&2", tt.at)
			cmd := exec.Command(host.Binary, "run", "--", "bash", "-c", script)
			cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
			out := &host.LockedBuffer{}
			cmd.Stdout, cmd.Stderr = out, out
			switch tt.at {
			case 0:
				cmd.Stdin = tt.file
			case 1:
				cmd.Stdout = tt.file
			case 2:
				cmd.Stderr = tt.file
			}
			_ = cmd.Run()
			text, ran := out.String(), strings.Contains(out.String(), "ran\n")
			if ran != (tt.says == "") || tt.at != 2 && !strings.Contains(text, tt.says) {
				t.Errorf("it says\n%s", text)
			}
			if got, _ := os.ReadFile(filepath.Join(p.Project, "got")); strings.Contains(text+string(got), "SECRET") {
				t.Errorf("it got through:\n%s%s", text, got)
			}
		})
	}
	for name, want := range map[string]string{".env": "SECRET=1\n", "../prompt.txt": "prompt\n"} {
		if got, err := os.ReadFile(filepath.Join(p.Project, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

// TestRunLinks has a client leave links in the directories that it shares with the user's own runs of it.
func TestRunLinks(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	shared := filepath.Join(p.Home, ".claude/projects")
	host.Must(t, os.MkdirAll(filepath.Join(shared, "old"), 0o700))
	host.Must(t, os.WriteFile(filepath.Join(shared, "old/a.jsonl"), []byte("{}\n"), 0o600))
	host.Must(t, os.Symlink(p.Project, filepath.Join(shared, "mine")))
	host.Must(t, os.Symlink(p.Project, filepath.Join(shared, "turned")))
	bin := filepath.Join(p.Home, "bin")
	host.Must(t, os.MkdirAll(bin, 0o700))
	host.Must(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(`#!/bin/bash
cd ~/.claude/projects
ln -s ~/.bashrc out; ln -s ../../.ssh up; ln -s /host.Nowhere dangling; ln -s old/a.jsonl inside; ln -s a.jsonl old/latest
mkdir -p deep/er; ln -s ~/.ssh/authorized_keys deep/er/link; ln -s mine/kept.txt chain; ln -s gone later
ln -sfn ~/.ssh turned
echo text > kept.jsonl; ln kept.jsonl hard
`), 0o700))
	cmd := exec.Command(host.Binary, "run", "--", "claude")
	cmd.Dir, cmd.Env = p.Project, append(host.CleanEnv(p.Home), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, stays := range map[string]bool{
		"out": false, "up": false, "dangling": false, "deep/er/link": false, "chain": false, "later": false, "turned": false,
		"inside": true, "old/latest": true, "mine": true, "kept.jsonl": true, "hard": true, "old/a.jsonl": true,
	} {
		if _, err := os.Lstat(filepath.Join(shared, name)); (err == nil) != stays {
			t.Errorf("%s stays: %t, want %t", name, err == nil, stays)
		}
	}
	if !strings.Contains(string(out), "Removed "+filepath.Join(shared, "out")) {
		t.Errorf("it does not say what it removed:\n%s", out)
	}
}

// TestRunHome runs a client whose root is the home directory: it has its own temporary files, and not those of other workspaces.
func TestRunHome(t *testing.T) {
	t.Parallel()
	p := newRunner(t) // which has run a client in another workspace
	others, _ := filepath.Glob(filepath.Join(p.Home, ".cache/toolhost/????????????????"))
	if len(others) != 1 {
		t.Fatalf("directories of other workspaces: %v", others)
	}
	for _, client := range []string{"bash", "claude"} { // of which one is known
		bin := filepath.Join(p.Home, "bin-"+client)
		host.Must(t, os.MkdirAll(bin, 0o700))
		bash, err := exec.LookPath("bash")
		host.Must(t, err)
		if client != "bash" {
			host.Must(t, os.WriteFile(filepath.Join(bin, client), []byte("#!"+bash+"\nfor last; do :; done; eval \"$SCRIPT\"\n"), 0o700))
		}
		script := "echo own > $TMPDIR/own && cat $TMPDIR/own; ls -R " + others[0] + "; find " + others[0] +
			" -type d -exec touch {}/planted \\;; touch ~/made && echo made"
		args := []string{"run", "--root", p.Home, "--", client}
		if client == "bash" {
			args = append(args, "-c", script)
		}
		cmd := exec.Command(host.Binary, args...)
		cmd.Dir, cmd.Env = p.Project, append(host.CleanEnv(p.Home), "PATH="+bin+":"+os.Getenv("PATH"), "SCRIPT="+script)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "own\n") || !strings.Contains(string(out), "made\n") {
			t.Errorf("%s says\n%s", client, out)
		}
		_ = filepath.WalkDir(others[0], func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "planted" {
				t.Errorf("%s planted %s", client, path)
			}
			return nil
		})
	}
}
