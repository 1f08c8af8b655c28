// Package sshagent lets commands in a sandbox log in by SSH with the keys of a person's agent, at hosts that the person
// has named, and for nothing else. Its Go API is not stable.
package sshagent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Destination is a user of a host.
type Destination struct{ User, Host, Port string }

// ParseDestination parses USER@HOST or USER@HOST:PORT.
func ParseDestination(text string) (d Destination, err error) {
	user, host, ok := strings.Cut(text, "@")
	d = Destination{user, host, "22"}
	if h, port, err := net.SplitHostPort(host); err == nil {
		d.Host, d.Port = h, port
	}
	if !ok || user == "" || d.Host == "" || strings.ContainsAny(d.Host, "*@/: ") {
		return d, fmt.Errorf("%q is not a user and a host, such as git@github.com", text)
	}
	return d, nil
}

// Address returns the host with its port.
func (d Destination) Address() string { return net.JoinHostPort(d.Host, d.Port) }

// An Agent is an SSH agent that signs with the keys of another one. It signs only what logs a user in at a destination,
// in a session that is bound to a key of the host (session-bind@openssh.com), which only the host can have signed.
type Agent struct {
	listener     *net.UnixListener
	dir          string
	upstream     string // the socket of the person's agent
	destinations []Destination
	known        ssh.HostKeyCallback
	lines        []string // of known_hosts; a key error gives the number of a line
	used         func(pid int, d Destination, refused string)

	mu     sync.Mutex
	conns  map[net.Conn]bool // of programs, and to the person's agent; nil: it is closed
	served sync.WaitGroup
}

// ErrNoAgent says that there is no agent of the person.
var ErrNoAgent = errors.New("SSH_AUTH_SOCK names no agent: start one, as with eval \"$(ssh-agent)\", and add a key " +
	"with ssh-add")

// Listen makes the socket of an agent. Serve must be called for programs to be answered.
func Listen(destinations []Destination) (*Agent, error) {
	a := &Agent{upstream: os.Getenv("SSH_AUTH_SOCK"), destinations: destinations, conns: map[net.Conn]bool{}}
	if a.upstream == "" {
		return nil, ErrNoAgent
	}
	sweep()
	var err error
	if a.dir, err = os.MkdirTemp("", prefix); err != nil {
		return nil, err
	}
	if err = a.readHosts(); err == nil {
		a.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: a.Path(), Net: "unix"})
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(a.dir))
	}
	return a, nil
}

// prefix begins the names of the directories with the sockets.
const prefix = "toolhost-ssh-"

// sweep removes the sockets of hosts that were killed. It leaves what another host has just begun to make.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // the pattern is good
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		conn, err := net.Dial("unix", filepath.Join(dir, socket))
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(dir) // another user's stays
		}
	}
}

// socket is the name of the socket.
const socket = "agent"

// Path returns the path of the socket.
func (a *Agent) Path() string { return filepath.Join(a.dir, socket) }

// Serve answers programs until Close. used is called when one logs in, or may not, with its process.
func (a *Agent) Serve(used func(pid int, d Destination, refused string)) {
	a.used = used
	a.served.Go(func() {
		for {
			conn, err := a.listener.AcceptUnix()
			if err != nil {
				return
			}
			a.mu.Lock()
			if open := a.conns != nil; !open || len(a.conns) >= 2*maxConns {
				conn.Close()
			} else {
				a.conns[conn] = true
				a.served.Go(func() { a.serve(conn) })
			}
			a.mu.Unlock()
		}
	})
}

// maxConns is how many programs are served at the same moment.
const maxConns = 64

// Close ends all connections, and removes the socket.
func (a *Agent) Close() error {
	err := a.listener.Close()
	a.mu.Lock()
	for conn := range a.conns {
		conn.Close()
	}
	a.conns = nil
	a.mu.Unlock()
	a.served.Wait()
	return errors.Join(err, os.RemoveAll(a.dir))
}

// Messages of the protocol (draft-ietf-sshm-ssh-agent).
const (
	msgFailure    = 5
	msgSuccess    = 6
	msgIdentities = 11
	msgAnswer     = 12
	msgSign       = 13
	msgExtension  = 27
	maxMessage    = 256 << 10
)

// sessionBind says of which host a session is.
const sessionBind = "session-bind@openssh.com"

// serve answers a program.
func (a *Agent) serve(conn *net.UnixConn) {
	defer a.end(conn)
	upstream, err := net.Dial("unix", a.upstream)
	if err != nil {
		return // the program sees no agent
	}
	defer a.end(upstream)
	a.mu.Lock()
	open := a.conns != nil
	if open {
		a.conns[upstream] = true // it may wait for a person
	}
	a.mu.Unlock()
	if !open {
		return
	}
	s := &session{Agent: a, upstream: upstream, pid: peer(conn)}
	for {
		message, err := receive(conn)
		if err != nil {
			return
		}
		if send(conn, s.answer(message)) != nil {
			return
		}
	}
}

// end closes a connection.
func (a *Agent) end(conn net.Conn) {
	a.mu.Lock()
	delete(a.conns, conn)
	a.mu.Unlock()
	conn.Close()
}

// A session is a connection of a program.
type session struct {
	*Agent
	upstream net.Conn
	pid      int
	bound    *binding // nil: it is not
	allowed  []Destination
}

// A binding is the content of session-bind@openssh.com.
type binding struct {
	Name                 string
	Host, Session, Proof []byte // the proof is a signature of the session's number with the key of the host
	Forwarding           bool
}

// answer returns the answer to a message.
func (s *session) answer(message []byte) []byte {
	failure := []byte{msgFailure}
	switch message[0] {
	case msgIdentities:
		if s.allowed == nil {
			return []byte{msgAnswer, 0, 0, 0, 0} // an empty list of keys
		}
	case msgExtension:
		if err := s.bind(message[1:]); err != nil {
			return failure
		}
		if answer := s.forward(message); answer[0] != msgFailure { // constraints of the person's keys hold too
			return answer
		}
		return []byte{msgSuccess} // the person's agent does not know session-bind
	case msgSign:
		if err := s.maySign(message[1:]); err != nil {
			return failure
		}
	default:
		return failure
	}
	return s.forward(message)
}

// forward sends a message to the person's agent and returns its answer.
func (s *session) forward(message []byte) []byte {
	if err := send(s.upstream, message); err != nil {
		return []byte{msgFailure}
	}
	answer, err := receive(s.upstream)
	if err != nil {
		return []byte{msgFailure}
	}
	return answer
}

// bind binds the connection to a session with a host. It is bound once, and what a host forwards is not answered: the
// keys are for programs of this machine.
func (s *session) bind(text []byte) error {
	var b binding
	if err := ssh.Unmarshal(text, &b); err != nil {
		return err
	}
	if b.Name != sessionBind || s.bound != nil {
		return errors.New("not a session with a host")
	}
	if b.Forwarding {
		s.bound = &b
		return errors.New("a session that is forwarded")
	}
	key, err := ssh.ParsePublicKey(b.Host)
	if err != nil {
		return err
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(b.Proof, &signature); err != nil {
		return err
	}
	if err := key.Verify(b.Session, &signature); err != nil {
		return err
	}
	s.bound = &b
	for _, d := range s.destinations {
		if s.known(d.Address(), noAddress, key) == nil {
			s.allowed = append(s.allowed, d)
		}
	}
	if s.allowed == nil {
		s.used(s.pid, s.destinations[0], "a command tried to log in at a host that sandbox.credentials.sshAgent does not "+
			"name, or whose key is not in known_hosts")
		return errors.New("another host")
	}
	return nil
}

// A login is what a client of SSH has signed to log in (RFC 4252, section 7).
type login struct {
	Session               []byte
	Type                  byte
	User, Service, Method string
	Signed                bool
	Algorithm             string
	Key                   []byte
	Rest                  []byte `ssh:"rest"`
}

// maySign reports an error unless the request logs in the user of the bound destination, in the bound session.
func (s *session) maySign(text []byte) error {
	const userauthRequest = 50
	var request struct {
		Key, Data []byte
		Flags     uint32
	}
	var l login
	if err := errors.Join(ssh.Unmarshal(text, &request), ssh.Unmarshal(request.Data, &l)); err != nil {
		return err
	}
	var host struct{ Key []byte }
	bound := l.Method == "publickey" && len(l.Rest) == 0
	if l.Method == "publickey-hostbound-v00@openssh.com" {
		bound = ssh.Unmarshal(l.Rest, &host) == nil && s.bound != nil && bytes.Equal(host.Key, s.bound.Host)
	}
	if !bound || s.allowed == nil || !bytes.Equal(l.Session, s.bound.Session) || !bytes.Equal(l.Key, request.Key) ||
		l.Type != userauthRequest || l.Service != "ssh-connection" || !l.Signed {
		return errors.New("not a login in the session")
	}
	i := slices.IndexFunc(s.allowed, func(d Destination) bool { return d.User == l.User })
	if i < 0 {
		s.used(s.pid, s.allowed[0], fmt.Sprintf("a command tried to log in as %.100q", l.User))
		return errors.New("another user")
	}
	s.used(s.pid, s.allowed[i], "")
	return nil
}

// receive reads a message, which has a type.
func receive(r io.Reader) ([]byte, error) {
	var length uint32
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	if length == 0 || length > maxMessage {
		return nil, errors.New("a message of a wrong length")
	}
	message := make([]byte, length)
	_, err := io.ReadFull(r, message)
	return message, err
}

func send(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}
