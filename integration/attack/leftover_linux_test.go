package attack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A leftoverGround is a workspace with two other directories that commands may write.
type leftoverGround struct {
	root, ws, add, open, home, pwned, settings string
	user                                       int
	as                                         func(*exec.Cmd) // how hosts are started; nil: as the user
}

func newLeftoverGround(t *testing.T, user int) *leftoverGround {
	t.Helper()
	root, err := filepath.EvalSymlinks(host.TempDir(t))
	host.Must(t, err)
	g := &leftoverGround{root: root, user: user}
	for name, dir := range map[string]*string{"ws": &g.ws, "add": &g.add, "open": &g.open, "home": &g.home} {
		*dir = filepath.Join(root, name)
		host.Must(t, os.Mkdir(*dir, 0o755))
	}
	g.pwned, g.settings = filepath.Join(root, "pwned"), filepath.Join(root, "settings.json")
	host.Must(t, os.WriteFile(g.settings, fmt.Appendf(nil, `{"permissions":{"additionalDirectories":[%q],"defaultMode":"acceptEdits","allow":["Bash"]},"sandbox":{"filesystem":{"allowWrite":[%q]}}}`, g.add, g.open), 0o644))
	if user != 0 {
		out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", user, user), root).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for dir := filepath.Dir(root); dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
			host.Must(t, os.Chmod(dir, 0o755))
		}
	}
	g.must(t, g.ws, `git init -q; echo x > f; git add f; git commit -q -m x; rm -rf .git/hooks`)
	return g
}

// outside runs a script as the user does, and returns what it printed.
func (g *leftoverGround) outside(dir, script string) (string, error) {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(host.CleanEnv(g.home), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org",
		"ADD="+g.add, "OPEN="+g.open, "EVIL=touch "+g.pwned)
	if g.user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(g.user),
			Gid: uint32(g.user)}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (g *leftoverGround) must(t *testing.T, dir, script string) string {
	t.Helper()
	out, err := g.outside(dir, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// start starts a host.
func (g *leftoverGround) start(t *testing.T, flags ...string) *host.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	t.Cleanup(cancel)
	as := func(cmd *exec.Cmd) {
		switch {
		case g.as != nil:
			g.as(cmd)
		case g.user != 0:
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(g.user),
				Gid: uint32(g.user)}}
		}
	}
	h, err := host.StartHostAs(ctx, as, host.StdioModern, g.ws, host.CleanEnv(g.home),
		append([]string{"--root", g.ws, "--settings", g.settings}, flags...)...)
	host.Must(t, err)
	t.Cleanup(func() { _ = h.Cmd.Process.Kill() })
	return &host.Session{Host: h, T: t, Ctx: ctx}
}
