//go:build slow && unix

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// plants are what a repository can have in the place of a file.
var plants = map[string]func(path string) error{
	"a pipe":               func(path string) error { return syscall.Mkfifo(path, 0o644) },
	"a directory":          func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o755) },
	"a loop":               func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"a link to the root":   func(path string) error { return os.Symlink("/", path) },
	"a link to zeros":      func(path string) error { return os.Symlink("/dev/zero", path) },
	"a link to passwords":  func(path string) error { return os.Symlink("/etc/shadow", path) },
	"a link to the memory": func(path string) error { return os.Symlink("/proc/kcore", path) },
	"a link to messages":   func(path string) error { return os.Symlink("/proc/kmsg", path) }, // a regular file, of which reads wait
	"more nothing than memory": func(path string) error {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
		return os.Truncate(path, mostMemory+1)
	},
	"deep JSON":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(`{"a":`, 200_000)), 0o644) },
	"many lines": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x y: z\n", 140_000)), 0o644) },
	"a word of many words": func(path string) error {
		return os.WriteFile(path, []byte(strings.Repeat("{a,b}", 10)+strings.Repeat("?x", 3000)+"\n"), 0o644)
	},
}

// planted are the files that the host reads unasked, and a command that lets it look at them, "" if it needs none; together as far as one
// of them does not keep the others from being looked at.
var planted = []map[string]string{
	{".claude": "", ".toolhost": ""},
	{".claude/settings.json": "", ".claude/settings.local.json": "", ".toolhost/toolhost.json": ""},
	{".git": "git status", ".gitignore": "", ".gitmodules": "", "Makefile": "make x"},
	{
		".git/config": "git status", ".git/info/exclude": "", ".git/HEAD": "", ".git/index": "git submodule update", ".ignore": "", "sub/.rgignore": "",
		"package.json": "npm run x", "justfile": "just x", "Taskfile.yml": "task x", "composer.json": "composer x", "deno.json": "deno task x",
		"pnpm-workspace.yaml": "pnpm -r run x", "x.sh": "./x.sh", "y.sh": "sh y.sh", "x.patch": "git apply x.patch",
	},
}

// TestAttackPlanted opens workspaces in which something else is in the place of a file that the host reads unasked. Every call is answered,
// nothing of what a link leads to is told, and the host stays small.
func TestAttackPlanted(t *testing.T) {
	t.Parallel()
	for what, plant := range plants {
		t.Run(strings.ReplaceAll(what, " ", "-"), func(t *testing.T) {
			t.Parallel() // most commands wait for their time to be up
			for _, files := range planted {
				dir, err := filepath.EvalSymlinks(t.TempDir())
				host.Must(t, err)
				ws := filepath.Join(dir, "ws")
				host.Must(t, os.MkdirAll(filepath.Join(ws, "sub"), 0o755))
				host.Must(t, os.WriteFile(filepath.Join(ws, "sub/f.txt"), []byte("needle\n"), 0o644))
				for file := range files {
					path := filepath.Join(ws, file)
					host.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
					host.Must(t, plant(path))
				}
				openPlanted(t, dir, files)
			}
		})
	}
}

// openPlanted calls each tool in a workspace, and looks at the answers and at the host.
func openPlanted(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.StdioModern, filepath.Join(dir, "ws"), host.CleanEnv(filepath.Join(dir, "home")),
		"--deny", "Bash(rm:*)", "--deny", "Read(.env)")
	host.Must(t, err)
	type call struct{ tool, args string }
	calls := []call{
		{"Glob", `{"pattern":"**/*.txt"}`}, {"Grep", `{"pattern":"needle"}`}, {"Read", `{"file_path":"sub/f.txt"}`},
		{"Grep", `{"pattern":":0:","output_mode":"content"}`}, {"Write", `{"file_path":"new.txt","content":"x"}`},
	}
	for file, command := range files {
		calls = append(calls, call{"Read", fmt.Sprintf(`{"file_path":%q}`, file)},
			call{"Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file)})
		if command != "" {
			calls = append(calls, call{"Bash", fmt.Sprintf(`{"command":%q,"timeout":500}`, command)})
		}
	}
	for _, c := range calls {
		r, err := h.Call(ctx, c.tool, c.args)
		if err != nil {
			t.Errorf("%s %s: %v\n%s", c.tool, c.args, err, h.Stderr)
			return
		}
		told := c.tool != "Bash" && strings.Contains(r.Text(), "root:") // which a command may read
		if told || strings.Contains(r.Text(), "inside the host") {
			t.Errorf("%s %s: %s", c.tool, c.args, host.Clip(r.Text(), 400))
		}
	}
	if most := peak(t, h.Cmd.Process.Pid); most > mostMemory {
		t.Errorf("the host has taken %d MiB for %v", most>>20, files)
	}
	if err := h.Stop(); err != nil && !strings.Contains(err.Error(), "settings") {
		t.Errorf("the end: %v", err)
	}
}
