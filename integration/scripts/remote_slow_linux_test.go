//go:build slow

package scripts

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestRemoteCuts makes thousands of calls, eight at once, while the link is cut at random moments. Each is answered once, and the
// audit log of the far host has each once.
func TestRemoteCuts(t *testing.T) {
	const callers = 8
	all := samples.Rounds(3000)
	g := newFarGround(t)
	s := g.relay(host.StdioLegacy)
	var cancel context.CancelFunc
	s.Ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var answered atomic.Int64
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		cuts, tries, last := 0, 0, int64(0)
		for {
			select {
			case <-stop:
				stopped <- cuts
				return
			case <-time.After(rand.N(600 * time.Millisecond)):
				if now := answered.Load(); now != last {
					last, tries = now, 0
				}
				if tries++; tries > 3 {
					continue // a new link takes its time, and a call does not wait for one for ever
				}
				for _, pid := range host.FarProcesses(t, g.State, false) {
					if syscall.Kill(pid, syscall.SIGKILL) == nil {
						cuts++
					}
				}
			}
		}
	}()
	var workers sync.WaitGroup
	for w := range callers {
		workers.Go(func() {
			for i := w; i < all; i += callers {
				r, err := s.Call(s.Ctx, "Write", host.Args{"file_path": fmt.Sprintf("d%d/f%d", i%100, i), "content": fmt.Sprint(i)}.String())
				if err != nil || r.IsError {
					t.Errorf("call %d: %+v, %v", i, r, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	workers.Wait()
	close(stop)
	t.Logf("%d calls, %d cuts", all, <-stopped)
	s.MustCall("Glob", host.Args{"pattern": "none"}) // there is a link, over which the end is told
	s.End()
	g.ended()
	raw, err := os.ReadFile(filepath.Join(g.State, "audit.jsonl"))
	host.Must(t, err)
	for i := range all {
		if n := bytes.Count(raw, []byte(fmt.Sprintf("d%d/f%d\"", i%100, i))); n != 1 {
			t.Fatalf("call %d is %d times in the audit log", i, n)
		}
	}
}

// p50 returns the median time of a Read.
func p50(t *testing.T, s *host.Session) time.Duration {
	t.Helper()
	took := make([]time.Duration, 500)
	for i := range took {
		began := time.Now()
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// TestRemoteVersions: a program of another version serves next to the one that runs.
func TestRemoteVersions(t *testing.T) {
	g := newFarGround(t)
	g.Put("a.txt", "content\n")
	raw, err := os.ReadFile(host.Binary)
	host.Must(t, err)
	other := filepath.Join(host.TempDir(t), "toolhost")
	host.Must(t, os.WriteFile(other, append(raw, 0), 0o755))
	one, two := g.relay(host.StdioModern), g.relay(host.StdioModern, "--binary", other)
	reads(one)
	reads(two)
	if hosts := host.FarProcesses(t, g.State, true); len(hosts) != 2 {
		t.Errorf("two versions have the hosts %v", hosts)
	}
	one.End()
	two.End()
}

// refusal starts a relay that gets no link, and returns what its client is told.
func (g farGround) refusal() string {
	g.T.Helper()
	cmd := exec.Command(host.Binary, "remote", g.target, "--root", g.WS)
	cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
	ctx, cancel := host.Patient()
	defer cancel()
	_, err := client.Stdio(ctx, client.Legacy, cmd)
	_ = cmd.Process.Kill()
	return fmt.Sprint(err)
}

// TestRemoteSSH goes through a real sshd on loopback, with keys of its own. What ssh would ask a person for is told, and
// never waited for.
func TestRemoteSSH(t *testing.T) {
	const sshd = "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("there is no sshd: apt-get install openssh-server")
	}
	g, dir := newFarGround(t), host.TempDir(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"host", "other", "mine", "stranger"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
			in(key)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	host.MustWrite(t, in("sshd"), fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nSetEnv HOME=%s XDG_STATE_HOME=%[5]s/state XDG_CONFIG_HOME=%[5]s/config\n",
		port, in("host"), in("mine.pub"), in("none"), g.Home))
	_ = os.MkdirAll("/run/sshd", 0o755) // for the separation of privileges, where root runs this
	daemon := exec.Command(sshd, "-D", "-e", "-f", in("sshd"))
	var said host.LockedBuffer
	daemon.Stderr = &said
	host.Must(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	host.Eventually(t, func() string {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return fmt.Sprint(err, " ", &said)
		}
		conn.Close()
		return ""
	})
	configure := func(known, key string) {
		public := strings.Fields(host.Get(t, in(known+".pub")))
		host.MustWrite(t, in("known"), fmt.Sprintf("[127.0.0.1]:%s %s %s\n", port, public[0], public[1]))
		host.MustWrite(t, in("config"), fmt.Sprintf("Host box\nHostName 127.0.0.1\nPort %s\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\n", port, in(key), in("known")))
	}
	g.target = "cmd:ssh -F " + in("config") + " -T -o BatchMode=yes box"
	g.Put("a.txt", "content\n")

	configure("other", "mine")
	if got := g.refusal(); !strings.Contains(got, "the host key has changed") {
		t.Errorf("another host key than the known one: %s", got)
	}
	configure("host", "mine")
	host.MustWrite(t, in("known"), "")
	if got := g.refusal(); !strings.Contains(got, "the host key is not known") {
		t.Errorf("an unknown host key: %s", got)
	}
	configure("host", "stranger")
	if got := g.refusal(); !strings.Contains(got, "it wants a password or a key that is not there") {
		t.Errorf("a key that is not accepted: %s", got)
	}
	configure("host", "mine")
	g.relay(host.StdioLegacy).End() // brings the program
	for _, setting := range host.Settings {
		began := time.Now()
		s := g.relay(setting)
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		first := time.Since(began)
		g.kill(false)
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		here := g.Start(setting)
		here.MustCall("Read", host.Args{"file_path": "a.txt"})
		t.Logf("%s: first call after %s; a Read %s, here %s", setting, first, p50(t, s), p50(t, here))
		here.End()
		s.End()
	}
}

// farPrograms are what the image of the containers has, beside sh.
var farPrograms = []string{"bash", "uname", "cat", "mkdir", "rm", "mv", "chmod", "tr", "find", "sha256sum", "gzip",
	"sleep", "id"}

// image writes the root directory of an image, out of programs of this machine.
func image(t *testing.T) string {
	t.Helper()
	root := host.TempDir(t)
	put := func(from, to string) {
		raw, err := os.ReadFile(from)
		host.Must(t, err)
		host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755))
		host.Must(t, os.WriteFile(filepath.Join(root, to), raw, 0o755))
	}
	for _, name := range append([]string{"sh"}, farPrograms...) {
		path, err := exec.LookPath(name)
		host.Must(t, err)
		put(path, "bin/"+name)
		out, _ := exec.Command("ldd", path).Output() // fails for a static program
		for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
			put(library, library)
		}
	}
	for _, dir := range []string{"proc", "dev", "root", "src"} {
		host.Must(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	host.Must(t, os.Mkdir(filepath.Join(root, "tmp"), 0o777))
	host.Must(t, os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky))
	host.MustWrite(t, filepath.Join(root, "etc", "passwd"),
		"root:x:0:0::/root:/bin/bash\nme:x:1000:1000::/home/me:/bin/bash\n")
	host.MustWrite(t, filepath.Join(root, "src", "a.txt"), "content\n")
	return root
}

// TestRemoteDocker goes into containers of a real Docker: whole ones, and such as lack something.
func TestRemoteDocker(t *testing.T) {
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		t.Skip("there is no dockerd, or this is not root: apt-get install docker.io")
	}
	dir, err := os.MkdirTemp("", "th-docker")
	host.Must(t, err)
	in := func(name string) string { return filepath.Join(dir, name) }
	daemon := exec.Command("dockerd", "--data-root", in("data"), "--exec-root", in("exec"), "--pidfile", in("pid"),
		"-H", "unix://"+in("s"), "--bridge=none", "--iptables=false")
	var said host.LockedBuffer
	daemon.Stderr = &said
	host.Must(t, daemon.Start())
	env := "DOCKER_HOST=unix://" + in("s")
	docker := func(args ...string) (string, error) {
		cmd := exec.Command("docker", args...)
		cmd.Env = append(os.Environ(), env)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	t.Cleanup(func() {
		all, _ := docker("ps", "-aq")
		_, _ = docker(append([]string{"rm", "-f"}, strings.Fields(all)...)...)
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	host.Eventually(t, func() string {
		if out, err := docker("info"); err != nil {
			if daemon.ProcessState != nil {
				return said.String()
			}
			return out
		}
		return ""
	})
	if t.Failed() {
		t.Fatal(host.Clip(said.String(), 2000))
	}
	root := image(t)
	for name, without := range map[string]string{"far": "", "bare": "--exclude=./bin/sh --exclude=./bin/bash"} {
		if out, err := exec.Command("sh", "-c", `tar -C "$1" `+without+` -c . | `+env+` docker import - `+name, "sh",
			root).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	for name, c := range map[string]struct {
		run, flags []string
		want       string // of the refusal; empty: it works
	}{
		"whole":     {},
		"user":      {run: []string{"--user", "1000:1000"}, want: "the directory for the program cannot be made"},
		"userdir":   {run: []string{"--user", "1000:1000"}, flags: []string{"--far-dir", "/tmp/far"}},
		"readonly":  {run: []string{"--read-only"}, want: "Read-only file system"},
		"roelse":    {run: []string{"--read-only", "--tmpfs", "/far:exec"}, flags: []string{"--far-dir", "/far"}},
		"noexec":    {run: []string{"--tmpfs", "/root:noexec"}, want: "the program does not run there"},
		"full":      {run: []string{"--tmpfs", "/root:exec,size=20m"}, want: "No space left on device"},
		"nowhere":   {want: "there is no such container"},
		"bare":      {want: "there is no sh, which toolhost needs"},
		"restarted": {run: []string{"--init"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "nowhere" {
				from := "far"
				if name == "bare" {
					from = name
				}
				if out, err := docker(append(append([]string{"run", "-d", "--name", name, "--network", "none"},
					c.run...), from, "/bin/sleep", "600")...); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				defer func() { _, _ = docker("rm", "-f", name) }()
			}
			cmd := exec.Command(host.Binary, append([]string{"remote", "docker://" + name + "/src"}, c.flags...)...)
			cmd.Env = append(host.CleanEnv(host.TempDir(t)), env)
			ctx, cancel := host.Patient()
			defer cancel()
			conn, err := client.Stdio(ctx, client.Legacy, cmd)
			if c.want != "" {
				_ = cmd.Process.Kill()
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("refused with: %v, not: %s", err, c.want)
				}
				return
			}
			host.Must(t, err)
			defer conn.Close()
			if r, err := conn.Call(ctx, "Read", `{"file_path":"a.txt"}`); err != nil ||
				!strings.Contains(r.Text(), "content") {
				t.Fatalf("Read: %+v, %v", r, err)
			}
			if name != "restarted" {
				return
			}
			if out, err := docker("restart", "-t", "0", name); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if r, err := conn.Call(ctx, "Bash", `{"command":"cat a.txt"}`); err != nil ||
				!strings.Contains(r.Text(), "content") {
				t.Errorf("after a restart of the container: %+v, %v", r, err)
			}
		})
	}
}
