//go:build slow

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackRunPrograms plants programs in PATH for the commands of a person: git of try, xdg-open of run. The agent
// itself may lie in the workspace if it is named by its path.
func TestAttackRunPrograms(t *testing.T) {
	t.Parallel()
	p := host.NewRunner(t)
	host.Shell(t, p.Home, p.Project, "git init -q -b main; git add kept.txt; git -c user.name=t -c user.email=t@example.org commit -qm first")
	w := &world{root: p.Home, ws: p.Project, home: p.Home}
	host.Must(t, os.MkdirAll(filepath.Join(p.Project, ".venv/bin"), 0o755))
	for _, name := range hostPrograms {
		text := "#!/bin/sh\necho \"$0 $*\" >>" + p.Home + "/pwned\n"
		host.Must(t, os.WriteFile(filepath.Join(p.Project, ".venv/bin", name), []byte(text), 0o755))
	}
	dir := honest(t, w, map[string]string{"xdg-open": "uname >/dev/null; echo \"$1\" >>" + p.Home + "/opened"})
	path := "PATH=" + filepath.Join(p.Project, ".venv/bin") + ":" + dir + ":" + os.Getenv("PATH")
	run := func(args ...string) (string, int) {
		cmd := exec.Command(host.Binary, args...)
		cmd.Dir, cmd.Env = p.Project, append(host.CleanEnv(p.Home), path)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run("try", "--discard", "--", "/bin/sh", "-c", "echo x >> kept.txt"); code != 0 ||
		!strings.Contains(out, "+x") {
		t.Errorf("try: exit code %d\n%s", code, out)
	}
	out, code := run("run", "--allow-host", "open.example.com", "--", "/bin/sh", "-c",
		"xdg-open https://open.example.com/x")
	if code != 0 {
		t.Errorf("run: exit code %d\n%s", code, out)
	}
	host.Eventually(t, func() string {
		if raw, err := os.ReadFile(p.Home + "/opened"); string(raw) != "https://open.example.com/x\n" {
			return fmt.Sprintf("opened: %q, %v", raw, err)
		}
		return ""
	})
	if out, code := run("run", "--weaker", "--", "tool"); code != 127 || !strings.Contains(out, ".venv/bin/tool") ||
		!strings.Contains(out, "by its path") {
		t.Errorf("a program of the workspace: exit code %d\n%s", code, out)
	}
	if exists(p.Home + "/pwned") {
		raw, _ := os.ReadFile(p.Home + "/pwned")
		t.Errorf("the host ran what was planted:\n%s", raw)
	}
	host.Must(t, os.WriteFile(filepath.Join(p.Project, ".venv/bin/own"), []byte("#!/bin/sh\necho own agent\n"), 0o755))
	if out, code := run("run", "--", "own"); code != 0 || !strings.Contains(out, "own agent") ||
		!strings.Contains(out, "commands can write") {
		t.Errorf("a program of the workspace in the sandbox: exit code %d\n%s", code, out)
	}
	if out, code := run("run", "--", ".venv/bin/own"); code != 0 || !strings.Contains(out, "own agent") {
		t.Errorf("a program that is named by its path: exit code %d\n%s", code, out)
	}
}

// TestAttackProjectPrograms runs commands for people in a directory of a project that has planted programs in PATH.
func TestAttackProjectPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bin, deep := filepath.Join(w.ws, "node_modules/.bin"), filepath.Join(w.ws, "packages/a")
	for _, dir := range []string{bin, deep, filepath.Join(w.ws, ".git")} {
		host.Must(t, os.MkdirAll(dir, 0o755))
	}
	for _, name := range append(hostPrograms, "claude", "codex", "gemini") {
		host.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho \"$0 $*\" >>"+w.root+"/pwned\n"), 0o755))
	}
	for _, args := range [][]string{{"install", "claude-code"}, {"verify", "claude-code"}, {"install", "codex"},
		{"doctor"}, {"mcp", "list"}, {"try", "true"}} {
		ctx, cancel := host.Patient()
		cmd := exec.CommandContext(ctx, host.Binary, args...)
		cmd.Dir, cmd.Env = deep, append(host.CleanEnv(w.home), "PATH="+bin+":"+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput() // some fail without the programs
		cancel()
		if raw, err := os.ReadFile(filepath.Join(w.root, "pwned")); err == nil {
			t.Fatalf("toolhost %s ran %s\n%s", strings.Join(args, " "), raw, out)
		}
	}
}
