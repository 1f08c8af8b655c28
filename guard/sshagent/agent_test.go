package sshagent

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// fixture is an agent with one key of a person, and the keys of two hosts, one of them a destination.
type fixture struct {
	*Agent
	key          ssh.PublicKey // of the person
	mine, others ssh.Signer    // of hosts
	used         chan string
}

func newFixture(t *testing.T) *fixture {
	home := t.TempDir()
	t.Setenv("HOME", home)
	keyring := agent.NewKeyring()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil || keyring.Add(agent.AddedKey{PrivateKey: private}) != nil {
		t.Fatal(err)
	}
	upstream := filepath.Join(home, "s")
	l, err := net.Listen("unix", upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(keyring, conn)
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", upstream)
	f := &fixture{used: make(chan string, 10)}
	own, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	f.key = own.PublicKey()
	lines := "old.example 1024 35 1234567\nmine.example ssh-new AAAA\n" // they are passed over
	for host, at := range map[string]*ssh.Signer{"mine.example": &f.mine, "others.example": &f.others} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			*at, err = ssh.NewSignerFromKey(private)
		}
		if err != nil {
			t.Fatal(err)
		}
		lines += knownhosts.Line([]string{knownhosts.HashHostname(host)}, (*at).PublicKey()) + "\n"
	}
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := ParseDestination("git@mine.example")
	if err != nil {
		t.Fatal(err)
	}
	if f.Agent, err = Listen([]Destination{d}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	f.Serve(func(_ int, d Destination, refused string) { f.used <- d.User + "@" + d.Address() + " " + refused })
	return f
}

// bind returns the message that binds a session with a host.
func bind(host ssh.Signer, session string, forwarding bool) []byte {
	proof, err := host.Sign(rand.Reader, []byte(session))
	if err != nil {
		panic(err)
	}
	return append([]byte{msgExtension}, ssh.Marshal(binding{sessionBind, host.PublicKey().Marshal(), []byte(session), ssh.Marshal(proof), forwarding})...)
}

// sign returns the message that asks for a signature.
func sign(key ssh.PublicKey, data []byte) []byte {
	return append([]byte{msgSign}, ssh.Marshal(struct {
		Key, Data []byte
		Flags     uint32
	}{key.Marshal(), data, 0})...)
}

// TestAgent: what logs in at the destination is signed, and nothing else.
func TestAgent(t *testing.T) {
	f := newFixture(t)
	l := login{Session: []byte("session"), Type: 50, User: "git", Service: "ssh-connection", Method: "publickey",
		Signed: true, Algorithm: "ssh-ed25519", Key: f.key.Marshal()}
	with := func(change func(*login)) []byte {
		c := l
		change(&c)
		return sign(f.key, ssh.Marshal(c))
	}
	good := with(func(*login) {})
	hostBound := func(host ssh.Signer) []byte {
		return with(func(l *login) {
			l.Method, l.Rest = "publickey-hostbound-v00@openssh.com", ssh.Marshal(struct{ Key []byte }{host.PublicKey().Marshal()})
		})
	}
	mine := bind(f.mine, "session", false)
	forged := bind(f.mine, "session", false)
	forged[len(forged)-10]++
	stolen := slices.Replace(bind(f.others, "session", false), 1, 1)
	for _, c := range []struct {
		name     string
		messages [][]byte
		want     byte   // the type of the last answer
		used     string // "": nothing
	}{
		{"login", [][]byte{mine, good}, 14, "git@mine.example:22 "},
		{"login that names the host", [][]byte{mine, hostBound(f.mine)}, 14, "git@mine.example:22 "},
		{"login that names another host", [][]byte{mine, hostBound(f.others)}, msgFailure, ""},
		{"list", [][]byte{mine, {msgIdentities}}, 12, ""},
		{"unbound", [][]byte{good}, msgFailure, ""},
		{"another host", [][]byte{stolen}, msgFailure, "tried to log in at a host"},
		{"another host, sign", [][]byte{stolen, good}, msgFailure, "tried to log in at a host"},
		{"two hosts", [][]byte{stolen, mine, good}, msgFailure, "tried to log in at a host"},
		{"bound again", [][]byte{mine, bind(f.mine, "another", false), with(func(l *login) { l.Session = []byte("another") })}, msgFailure, ""},
		{"forged", [][]byte{forged, good}, msgFailure, ""},
		{"forwarded", [][]byte{bind(f.mine, "session", true), good}, msgFailure, ""},
		{"forwarded, bound again", [][]byte{bind(f.mine, "session", true), mine, good}, msgFailure, ""},
		{"another session", [][]byte{mine, with(func(l *login) { l.Session = []byte("another") })}, msgFailure, ""},
		{"another user", [][]byte{mine, with(func(l *login) { l.User = "root" })}, msgFailure, `as "root"`},
		{"another service", [][]byte{mine, with(func(l *login) { l.Service = "x" })}, msgFailure, ""},
		{"another method", [][]byte{mine, with(func(l *login) { l.Method = "hostbased" })}, msgFailure, ""},
		{"more data", [][]byte{mine, with(func(l *login) { l.Rest = []byte("x") })}, msgFailure, ""},
		{"another key in the login", [][]byte{mine, with(func(l *login) { l.Key = f.mine.PublicKey().Marshal() })}, msgFailure, ""},
		{"a file", [][]byte{mine, sign(f.key, []byte("SSHSIG\x00\x00\x00\x03git"))}, msgFailure, ""},
		{"remove all keys", [][]byte{mine, {19}}, msgFailure, ""},
		{"lock", [][]byte{mine, append([]byte{22}, ssh.Marshal(struct{ P string }{"x"})...)}, msgFailure, ""},
		{"another extension", [][]byte{append([]byte{msgExtension}, ssh.Marshal(struct{ N string }{"query"})...)}, msgFailure, ""},
	} {
		conn, err := net.Dial("unix", f.Path())
		if err != nil {
			t.Fatal(err)
		}
		var answer []byte
		for _, message := range c.messages {
			if err := send(conn, message); err != nil {
				t.Fatal(err)
			}
			if answer, err = receive(conn); err != nil {
				t.Fatal(err)
			}
		}
		conn.Close()
		used := ""
		for len(f.used) > 0 {
			used += <-f.used
		}
		if answer[0] != c.want || used != c.used && (c.used == "" || !strings.Contains(used, c.used)) {
			t.Errorf("%s: answer %d, used %q", c.name, answer[0], used)
		}
	}
	conn, err := net.Dial("unix", f.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if keys, err := agent.NewClient(conn).List(); err != nil || len(keys) > 0 {
		t.Errorf("an agent that is not bound has %v, %v", keys, err)
	}
	if _, text := f.KnownHosts(); strings.Count(text, "\n") != 1 ||
		!strings.HasPrefix(text, "mine.example ssh-ed25519 ") {
		t.Errorf("known hosts %q", text)
	}
}

// TestKnownHosts: commands know what the person's SSH takes for the key of a destination.
func TestKnownHosts(t *testing.T) {
	f := newFixture(t)
	path, _ := f.KnownHosts()
	line := func(marker, host string, key ssh.Signer) string {
		return marker + knownhosts.Line([]string{host}, key.PublicKey()) + "\n"
	}
	lines := line("@revoked ", "*", f.mine) + line("", "mine.example", f.mine) + line("@cert-authority ",
		"*.example", f.others)
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Listen(f.destinations)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, text := a.KnownHosts(); text != line("@cert-authority ", "mine.example", f.others) {
		t.Errorf("known hosts %q", text)
	}
}

// TestCloseWaiting: an agent ends while that of the person waits, as for a touch.
func TestCloseWaiting(t *testing.T) {
	f := newFixture(t)
	l, err := net.Listen("unix", filepath.Join(os.Getenv("HOME"), "waiting"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("SSH_AUTH_SOCK", l.Addr().String())
	a, err := Listen(f.destinations)
	if err != nil {
		t.Fatal(err)
	}
	a.Serve(func(int, Destination, string) {})
	conn, err := net.Dial("unix", a.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	waiting, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if err := send(conn, bind(f.mine, "session", false)); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(waiting); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestSweep: the socket of a host that was killed is removed, and no other.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := newFixture(t)
	killed := filepath.Join(os.TempDir(), prefix+"killed")
	begun := filepath.Join(os.TempDir(), prefix+"begun")
	for _, dir := range []string{killed, begun} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(killed, socket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for _, dir := range []string{killed, f.dir} {
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	for dir, want := range map[string]bool{killed: false, begun: true, f.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestParseDestination(t *testing.T) {
	for text, want := range map[string]string{"git@github.com": "git github.com:22", "me@a:2222": "me a:2222",
		"me@[::1]:22": "", "github.com": "", "@a": "", "a@": "", "a@*": "", "a@b@c": ""} {
		d, err := ParseDestination(text)
		if got := d.User + " " + d.Address(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
