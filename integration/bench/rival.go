package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A rival is a program that is measured. What it has no tool for is nil.
type rival struct {
	name, version string
	argv          []string // the working tree is appended if roots is set
	roots         bool
	env           []string

	read  func(path string) call
	edit  func(path, before, after string) call
	write func(path, content string) call
	bash  func(command string) call
}

// The names of rivals in tables.
const (
	ours       = "toolhost"
	floorName  = "floor"
	claude     = "claude mcp serve"
	filesystem = "server-filesystem"
)

// command is the process of a rival that works in a tree, with a home and a state of its own.
func (r *rival) command(tree, home string) *exec.Cmd {
	argv := r.argv
	if r.roots {
		argv = append(argv[:len(argv):len(argv)], tree)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = tree
	cmd.Env = append([]string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "TMPDIR=" + os.Getenv("TMPDIR"),
	}, r.env...)
	return cmd
}

func read(path string) call {
	return call{"Read", map[string]any{"file_path": path}}
}

func edit(path, before, after string) call {
	return call{"Edit", map[string]any{"file_path": path, "old_string": before, "new_string": after}}
}

func write(path, content string) call {
	return call{"Write", map[string]any{"file_path": path, "content": content}}
}

func bash(command string) call { return call{"Bash", map[string]any{"command": command}} }

// host is the binary under test.
func host(name, binary string) *rival {
	return &rival{name: name, argv: []string{binary, "stdio", "--root"}, roots: true, read: read, edit: edit,
		write: write, bash: bash}
}

// servers are the MCP servers that are measured: the host, the client's own floor, and those peers that are installed.
func (p *places) servers(binary string) ([]*rival, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := []*rival{host(ours, binary), {name: floorName, argv: []string{self, "floor"}, read: read, edit: edit, write: write, bash: bash}}
	if path := p.find("claude"); path != "" {
		all = append(all, &rival{
			name: claude, version: versionOf(path, "--version"), argv: []string{path, "mcp", "serve"}, read: read,
			edit: edit, write: write, bash: bash,
			env: []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		})
	}
	if path := p.find("mcp-server-filesystem"); path != "" {
		all = append(all, &rival{
			name: filesystem, version: packageVersion(path, "@modelcontextprotocol/server-filesystem"),
			argv: []string{path}, roots: true,
			read: func(path string) call { return call{"read_text_file", map[string]any{"path": path}} },
			edit: func(path, before, after string) call {
				return call{"edit_file", map[string]any{"path": path, "edits": []map[string]string{{"oldText": before, "newText": after}}}}
			},
			write: func(path, content string) call {
				return call{"write_file", map[string]any{"path": path, "content": content}}
			},
		})
	}
	return all, nil
}

// places are the directories in which peers are looked for, before the PATH.
type places struct{ dirs []string }

// peerPlaces are where the script "peers" puts programs below its directory.
func peerPlaces(dir string) *places {
	if dir == "" {
		return &places{}
	}
	dirs := []string{
		filepath.Join(dir, "node_modules", ".bin"),
		filepath.Join(dir, "node_modules", "@vscode", "ripgrep-"+runtime.GOOS+"-"+npmArch(), "bin"),
		filepath.Join(dir, "debian", "usr", "bin"),
	}
	return &places{dirs}
}

// npmArch is this machine's architecture in npm's words.
func npmArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

// find returns the path of the first of the named programs that exists, or "".
func (p *places) find(names ...string) string {
	for _, name := range names {
		for _, dir := range p.dirs {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// versionOf is the first line that a program prints of itself.
func versionOf(path string, flags ...string) string {
	out, err := exec.Command(path, flags...).Output()
	if err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// shortened keeps the name and the number of what a program prints of itself.
func shortened(version string) string {
	words := strings.Fields(version)
	return strings.Join(words[:min(2, len(words))], " ")
}

// packageVersion reads the version of an npm package from next to its program.
func packageVersion(program, name string) string {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(program)), filepath.FromSlash(name),
		"package.json"))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), `"version": "`); ok {
			return strings.TrimRight(rest, `",`)
		}
	}
	return "unknown"
}
