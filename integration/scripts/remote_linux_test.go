package scripts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// A farGround is a ground whose hosts are started by toolhost remote.
type farGround struct {
	*host.Ground
	target string
}

// newFarGround makes one. The program is at the far side already.
func newFarGround(t *testing.T) farGround {
	g := farGround{host.NewGround(t), "cmd:env"}
	host.FarProgram(t, g.State)
	host.MustWrite(t, filepath.Join(g.Home, "config", "toolhost", "toolhost.json"), `{"remote": {"linger": "100ms"}}`)
	t.Cleanup(g.ended)
	return g
}

// ended waits for the end of the far hosts.
func (g farGround) ended() { host.FarEnded(g.T, g.State) }

// relay starts a relay, and a far host if none runs.
func (g farGround) relay(s host.Setting, flags ...string) *host.Session {
	g.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	g.T.Cleanup(cancel)
	as := func(cmd *exec.Cmd) {
		cmd.Args = append([]string{cmd.Args[0], "remote", g.target}, cmd.Args[1:]...)
	}
	h, err := host.StartHostAs(ctx, as, s, g.WS, host.CleanEnv(g.Home), append([]string{"--root", g.WS}, flags...)...)
	if err != nil {
		g.T.Fatal(err)
	}
	g.T.Cleanup(func() { // a relay that is killed does not end its channel, and the far host waits for it to come back
		if !h.Ended {
			_ = h.Stop()
		}
	})
	return &host.Session{Host: h, T: g.T, Ctx: ctx}
}

// reads waits until a session reads a.txt: calls are refused while the program is sent for long.
func reads(s *host.Session) {
	s.T.Helper()
	host.Eventually(s.T, func() string {
		if r, err := s.Host.Call(s.Ctx, "Read", `{"file_path":"a.txt"}`); err != nil || !strings.Contains(r.Text(), "content") {
			return fmt.Sprintf("Read: %+v, %v", r, err)
		}
		return ""
	})
}

// kill kills processes and waits for their end.
func (g farGround) kill(hosts bool) {
	g.T.Helper()
	pids := host.FarProcesses(g.T, g.State, hosts)
	var all []host.Watched
	for _, pid := range pids { // before one ends with another
		all = append(all, host.Watch(g.T, pid))
	}
	for i, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		all[i].End(g.T)
	}
}

// TestRemote: over both transports, and with -tags slow in both eras, a client sees what it would see of a host on its
// own machine. The program is sent first. The link is cut while a command runs. The far host ends when it is idle.
func TestRemote(t *testing.T) {
	t.Parallel()
	g := newFarGround(t)
	host.Must(t, os.RemoveAll(filepath.Join(g.State, "program")))
	g.Put("a.txt", "content\n")
	for _, setting := range scriptSettings {
		t.Run(setting.String(), func(t *testing.T) {
			s := g.relay(setting)
			reads(s)
			name := "ran-" + setting.String()
			call, err := s.Host.Start(s.Ctx, "Bash",
				host.Args{"command": "echo x >> " + name +
					"; until [ -e go ]; do sleep 0.05; done; echo done"}.String(), nil)
			host.Must(t, err)
			host.Eventually(t, func() string {
				if _, err := os.Stat(g.Path(name)); err != nil {
					return "the command has not begun"
				}
				return ""
			})
			g.kill(false)
			g.Put("go", "")
			r, err := call.Result(s.Ctx)
			if err != nil || r.IsError || !strings.Contains(r.Text(), "done") {
				t.Errorf("a command during which the link was cut: %+v, %v", r, err)
			}
			host.Must(t, os.Remove(g.Path("go")))
			if ran := host.Get(t, g.Path(name)); ran != "x\n" {
				t.Errorf("the command ran as often as there are lines: %q", ran)
			}
			s.End()
		})
	}
	g.ended()
}

// TestRemoteRefused: what is wrong with a target is said in the answer to the first message, and nothing runs here.
func TestRemoteRefused(t *testing.T) {
	t.Parallel()
	g := newFarGround(t)
	g.Put("a.txt", "content\n")
	empty, long := filepath.Join(g.Home, "noexec"), filepath.Join(g.Home, strings.Repeat("long", 25))
	host.Must(t, os.Mkdir(long, 0o700))
	host.Must(t, os.Symlink(filepath.Join(g.State, "program"), filepath.Join(long, "program")))
	for _, c := range []struct {
		target string
		flags  []string
		want   string
	}{
		{"cmd:env", []string{"--root", "/no/such/root"}, "the root /no/such/root does not exist"},
		{"cmd:no-such-launcher", nil, "no-such-launcher is needed on this machine"},
		{"cmd:env -u HOME -u XDG_STATE_HOME", nil, "no home directory there: name a directory for the program with --far-dir"},
		{"cmd:env", []string{"--far-dir", long}, "name a shorter directory with --far-dir"},
		{"cmd:env", []string{"--far-dir", "/proc/none"}, "the directory for the program cannot be made"},
		{"cmd:env", []string{"--far-dir", empty, "--binary", g.Put("script", "#!/bin/sh\nexit 3\n")}, "the program does not run there"},
	} {
		cmd := exec.Command(host.Binary, append([]string{"remote", c.target, "--root", g.WS}, c.flags...)...)
		cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
		ctx, cancel := host.Patient()
		_, err := client.Stdio(ctx, client.Legacy, cmd)
		cancel()
		_ = cmd.Process.Kill()
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "no link to the far side") {
			t.Errorf("%s %q: %v", c.target, c.flags, err)
		}
	}
	if pids := host.FarProcesses(t, g.State, true); len(pids) > 0 {
		t.Errorf("hosts %v were started", pids)
	}
	for _, target := range []string{"ssh://-oProxyCommand=x/", "docker://-v", "ssh://", "box", "k8s://ns", "cmd:"} {
		out, err := exec.Command(host.Binary, "remote", target).CombinedOutput()
		if err == nil || !strings.Contains(string(out), target) {
			t.Errorf("%s: %v %s", target, err, out)
		}
	}
}
