package sandbox

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/integration/samples"
)

// hostServer is a program outside of the sandbox that listens on Unix sockets, and what
// it has seen of clients.
type hostServer struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	seen []string
}

// attackServe is that program: it binds each of the sockets in the working directory by
// a relative name, then renames or links it if its description says so.
func attackServe(sockets []string) error {
	for _, s := range sockets {
		how, name, _ := strings.Cut(s, ":")
		kind := unix.SOCK_STREAM
		switch how {
		case "packets":
			kind = unix.SOCK_SEQPACKET
		case "datagrams":
			kind = unix.SOCK_DGRAM
		}
		if err := serveOne(how, name, kind); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin) // it ends with the test
	return err
}

func serveOne(how, name string, kind int) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	bound := name
	if how == "renamed" || how == "linked" {
		bound += ".new"
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: bound}); err != nil {
		return err
	}
	if err := unix.Chmod(bound, 0o777); err != nil {
		return err
	}
	switch how {
	case "renamed":
		err = os.Rename(bound, name)
	case "linked":
		err = errors.Join(os.Link(bound, name), os.Remove(bound))
	}
	if err != nil {
		return err
	}
	if kind == unix.SOCK_DGRAM {
		go func() {
			for buf := make([]byte, 100); ; {
				n, _, _ := unix.Recvfrom(fd, buf, 0)
				fmt.Printf("%s got %q\n", name, buf[:n])
			}
		}()
		return nil
	}
	if err := unix.Listen(fd, 16); err != nil {
		return err
	}
	go func() {
		for {
			c, _, err := unix.Accept(fd)
			if err != nil {
				continue
			}
			fmt.Println(name, "accepted")
			unix.Write(c, []byte(breach+"\n"))
			unix.Close(c)
		}
	}()
	return nil
}

// serveOutside starts a host server, in other namespaces if flags say so.
func serveOutside(t *testing.T, dir string, flags uintptr, sockets ...string) *hostServer {
	t.Helper()
	h := &hostServer{cmd: exec.Command(os.Args[0], append([]string{attackArg, "serve"}, sockets...)...)}
	h.cmd.Dir, h.cmd.Stderr = dir, os.Stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags} // no Pdeathsig: threads of this process end (golang/go#27505)
	if flags&unix.CLONE_NEWUSER != 0 {
		h.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		h.cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		_, err = h.cmd.StdinPipe() // which is held open
	}
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == "ready" {
				close(ready)
				continue
			}
			h.mu.Lock()
			h.seen = append(h.seen, lines.Text())
			h.mu.Unlock()
		}
	}()
	t.Cleanup(func() { h.cmd.Process.Kill(); h.cmd.Wait() })
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the server outside does not start")
	}
	return h
}

// reached returns what clients have done to the server so far.
func (h *hostServer) reached() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// scripts are Python programs: reach.py tries in every way to reach the socket that its
// argument names, flicker.py exchanges what an address and a name lead to while another
// thread connects, connect.py says how connect(2) behaves, and many.py waits for a
// thousand connections.
//
//go:embed testdata/*.py
var scripts embed.FS

// python writes the scripts into the fixture, and returns how to run them.
func python(t *testing.T, f *fixture) (run func(script string, args ...string) []string) {
	t.Helper()
	const program = "/usr/bin/python3"
	if _, err := os.Stat(program); err != nil {
		t.Skip(err)
	}
	if err := os.CopyFS(f.base+"/scripts", scripts); err != nil {
		t.Fatal(err)
	}
	return func(script string, args ...string) []string {
		return append([]string{program, f.base + "/scripts/testdata/" + script}, args...)
	}
}

// Nothing that a program outside listens on is reached, whatever its name and whenever
// it was bound.
func TestHostSockets(t *testing.T) {
	t.Parallel()
	slow(t)
	sockets := []string{"stream:plain", "renamed:renamed", "linked:linked", "packets:packets", "datagrams:datagrams"}
	for _, backend := range backendsUnderTest() {
		tried := sockets
		if backend == backendLandlock { // it refuses the kind of socket, whatever listens
			tried = samples.Of(sockets, 1)
		}
		f := newFixture(t)
		run := python(t, f)
		for place, flags := range map[string]uintptr{f.ws: 0, f.out: unix.CLONE_NEWUSER | unix.CLONE_NEWNET} {
			t.Run(string(backend)+"/"+place[len(f.base)+1:], func(t *testing.T) {
				s := startOn(t, backend, f.policy())
				h := serveOutside(t, place, flags, sockets...)
				for _, socket := range tried {
					_, name, _ := strings.Cut(socket, ":")
					r := runIn(t, s, f.ws, f.env, run("reach.py", place+"/"+name)...)
					if seen := h.reached(); strings.Contains(r.output, breach) || len(seen) != 0 {
						t.Errorf("%s: the server saw %q, the command says\n%s", socket, seen, r.output)
					}
				}
				if place != f.ws || backend == backendLandlock {
					return
				}
				r := runIn(t, s, f.ws, f.env, run("flicker.py", place+"/plain", strconv.Itoa(samples.Rounds(400)))...)
				if seen := h.reached(); strings.Contains(r.output, breach) || len(seen) != 0 {
					t.Errorf("flickering: the server saw %q, the command says\n%s", seen, r.output)
				}
				if !strings.Contains(r.output, "connected True") {
					t.Errorf("flickering: its own socket was not reached either\n%s", r.output)
				}
			})
		}
	}
}

// A refusal names the socket and what would allow it.
func TestRefusedSocket(t *testing.T) {
	f := newFixture(t)
	f.serve(t)
	s := start1(t, f.policy())
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `$ATTACK connect unix "$SOCKET"; $ATTACK connect unix "$SOCKET"`)
	got := s.Refused()
	if len(got) != 1 || got[0].Host != f.out+"/daemon.sock" || got[0].Count != 2 ||
		!strings.Contains(got[0].Why, "allowUnixSockets") {
		t.Errorf("got %+v", got)
	}
	if again := s.Refused(); len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
}

// Where there is a listener already, commands get no Unix sockets, and the report says so.
func TestNoListener(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.serve(t)
	for backend := range available(t, f) {
		if backend == backendLandlock {
			continue
		}
		cmd := exec.Command(os.Args[0], attackArg, "underlistener", string(backend), f.ws)
		cmd.Env = append(os.Environ(), f.env...)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), breach) {
			t.Errorf("%s: %v\n%s", backend, err, out)
		}
		for _, want := range []string{"no Unix sockets but pairs", "pair works", "tcp works"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %q is missing in\n%s", backend, want, out)
			}
		}
	}
}

// startOn is start1 for one backend.
func startOn(t *testing.T, b Backend, p Policy) *Sandbox {
	t.Helper()
	s, err := Start(context.Background(), p, Options{Backends: []Backend{b}})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// attackUnderListener becomes a process whose filter has a listener already, as a
// container may have.
func attackUnderListener(args []string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const unused = 0xffff // a system call that nothing makes
	listener, err := kernel.InstallWithListener([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unused, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(listener), unix.F_SETFD, 0); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", append([]string{os.Args[0], attackArg, "trysockets"}, args...), os.Environ())
}

// attackTrySockets starts a sandbox and tries the sockets of a command.
func attackTrySockets(args []string) error {
	s, err := Start(context.Background(), Policy{Writable: []string{args[1]}, Sockets: []string{os.Getenv("SOCKET")}},
		Options{Backends: []Backend{Backend(args[0])}})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.Report())
	p, err := s.Spawn(Spec{Argv: []string{"/usr/bin/python3", "-c", `
import os, socket
try: socket.socket(socket.AF_UNIX).connect(os.environ["SOCKET"]); print("BRE"+"ACH")
except OSError as e: print(e)
a, b = socket.socketpair(); a.send(b"x"); print("pair works", b.recv(1))
s = socket.create_server(("127.0.0.1", 0)); socket.create_connection(s.getsockname()); print("tcp works", flush=True)
`}, Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stdout}})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}
