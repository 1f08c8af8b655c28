package attack

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// sshHost is an sshd on loopback that knows the person's key.
func sshHost(t *testing.T, dir, authorized string) (port, key string) {
	const sshd = "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("there is no sshd: apt-get install openssh-server")
	}
	host.Must(t, os.MkdirAll(dir, 0o755))
	in := func(name string) string { return filepath.Join(dir, name) }
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in("hostkey"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	host.MustWrite(t, in("sshd"), fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nAllowAgentForwarding yes\n", port, in("hostkey"), authorized))
	_ = os.MkdirAll("/run/sshd", 0o755) // for the separation of privileges, where root runs this
	daemon := exec.Command(sshd, "-D", "-e", "-f", in("sshd"))
	host.Must(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	host.Eventually(t, func() string {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return err.Error()
		}
		conn.Close()
		return ""
	})
	return port, strings.TrimSpace(host.Get(t, in("hostkey.pub")))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// TestAttackCredentialsSSH: commands log in at a host with the keys of an agent that signs nothing else for them.
func TestAttackCredentialsSSH(t *testing.T) {
	g := newCredentialGround(t)
	in := func(name string) string { return filepath.Join(g.Home, name) }
	host.Must(t, os.MkdirAll(in(".ssh"), 0o700))
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(".ssh/id_ed25519"))
	mine, key := sshHost(t, in("hosts/mine"), in(".ssh/id_ed25519.pub"))
	others, key2 := sshHost(t, in("hosts/others"), in(".ssh/id_ed25519.pub"))
	known := fmt.Sprintf("[localhost]:%s %s\nother.example %s\n", others, key2, key2)
	host.MustWrite(t, in(".ssh/known_hosts"), known)
	agent := exec.Command("ssh-agent", "-D", "-a", in("agent"))
	host.Must(t, agent.Start())
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	host.Eventually(t, func() string {
		if _, err := os.Stat(in("agent")); err != nil {
			return err.Error()
		}
		return ""
	})
	add := exec.Command("ssh-add", "-q", in(".ssh/id_ed25519"))
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+in("agent"))
	host.Must(t, add.Run())
	me, err := user.Current()
	host.Must(t, err)
	g.Settings(t, fmt.Sprintf(`{"permissions": {"defaultMode": "bypassPermissions"}, "sandbox": {"network": {"allowedDomains": ["localhost:%s", "localhost:%s"]},
		"credentials": {"sshAgent": ["%s@localhost:%[1]s"]}}}`, mine, others, me.Username))
	g.env = append(g.env, "SSH_AUTH_SOCK="+in("agent"))
	run(t, "git", "init", "-q", "--bare", in("hosts/repo.git"))
	s := g.start()
	replace := strings.NewReplacer("@S", "ssh -o BatchMode=yes -o UserKnownHostsFile=$HOME/.ssh/known_hosts", "MINE",
		mine, "OTHERS", others, "ME", me.Username, "AGENT", in("agent"), "REPO", in("hosts/repo.git"))
	if text, _ := s.Try("Bash", host.Args{"command": replace.Replace("@S -p MINE ME@localhost echo logged-in")}); strings.Contains(text, "logged-in") {
		t.Errorf("a host that is not known: %s", text)
	}
	host.MustWrite(t, in(".ssh/known_hosts"), known+fmt.Sprintf("[localhost]:%s %s\n", mine, key)) // as the person's SSH does
	for _, row := range []struct{ command, want string }{
		{`@S -p MINE ME@localhost echo logged-in`, "logged-in"},
		{`cd $TMPDIR && git init -q r && cd r && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x && export GIT_SSH_COMMAND="@S" && git push -q ssh://ME@localhost:MINE/REPO HEAD:refs/heads/main && git ls-remote ssh://ME@localhost:MINE/REPO`, "refs/heads/main"},
		{`@S -p OTHERS -o StrictHostKeyChecking=no ME@localhost echo logged-in`, "that sandbox.credentials.sshAgent does not name"},
		{`@S -p MINE nobody@localhost echo logged-in`, "Permission denied"},
		{`@S -A -p MINE ME@localhost ssh-add -l || echo denied`, "denied"},
		{`ssh-add -l; ssh-add -D; ssh-add -x </dev/null; echo ended`, "no identities"},
		{`echo 'KEY' >/tmp/k.pub; echo x >/tmp/f; ssh-keygen -Y sign -f /tmp/k.pub -n file /tmp/f && echo signed || echo denied`, "denied"},
		{`SSH_AUTH_SOCK=AGENT ssh-add -l && echo listed || echo denied`, "denied"},
		{`cat ~/.ssh/id_ed25519 ~/.ssh/id_ed25519.pub || echo denied`, "denied"},
		{`cat ~/.ssh/known_hosts; python3 -c 'import os; open(os.path.expanduser("~/.ssh/known_" + "hosts"), "a")' || echo denied`, "denied"},
		{`rm -f "$SSH_AUTH_SOCK"; mv "$SSH_AUTH_SOCK" x || echo denied; @S -p MINE ME@localhost echo logged-in`, "logged-in"},
	} {
		command := strings.ReplaceAll(replace.Replace(row.command), "KEY",
			strings.TrimSpace(host.Get(t, in(".ssh/id_ed25519.pub"))))
		text, _ := s.Try("Bash", host.Args{"command": command})
		for _, bad := range []string{"PRIVATE KEY", "signed\n", "listed", "ED25519) ", "[localhost]:" + others,
			"other.example"} {
			if strings.Contains(text, bad) && !strings.Contains(command, "StrictHostKeyChecking") {
				t.Errorf("%s: %q is in\n%s", command, bad, text)
			}
		}
		if !strings.Contains(text, row.want) || strings.Contains(text, "logged-in") != (row.want == "logged-in") {
			t.Errorf("%s: %q is missing in\n%s", command, row.want, text)
		}
	}
	s.End()
	audit := host.Get(t, filepath.Join(g.Home, "audit.jsonl"))
	for _, want := range []string{"send an SSH login as " + me.Username + " to localhost:" + mine,
		"tried to log in at a host"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit log does not have %q:\n%s", want, audit)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "toolhost-ssh-*")); len(left) > 0 {
		t.Errorf("the sandbox has left %q", left)
	}
	host.MustWrite(t, filepath.Join(g.Project, ".toolhost/toolhost.json"),
		fmt.Sprintf(`{"sandbox": {"credentials": {"sshAgent": ["%s@localhost:%s"]}}}`, me.Username, others))
	s = g.start("--trust-workspace")
	if text, _ := s.Try("Bash", host.Args{"command": replace.Replace(`@S -p OTHERS -o StrictHostKeyChecking=no ME@localhost echo logged-in`)}); strings.Contains(text, "logged-in") {
		t.Errorf("a workspace lets commands log in: %s", text)
	}
	s.End()
}
