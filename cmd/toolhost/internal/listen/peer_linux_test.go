package listen

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// dialVariable makes the test binary connect to the socket it names, and end well if it is let in.
const dialVariable = "LISTEN_TEST_DIAL"

func init() {
	path := os.Getenv(dialVariable)
	if path == "" {
		return
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		os.Exit(2)
	}
	if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil {
		os.Exit(3) // it was closed
	}
	os.Exit(0)
}

// Another user who could reach the socket, because somebody opened its directory, is not let in.
func TestOtherUsersAreNotLetIn(t *testing.T) {
	testenv.NeedsUsers(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can try as another user")
	}
	dir := privateDir(t)
	path := filepath.Join(dir, "s")
	l := open(t, Config{Address: "unix:" + path})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "ok") // who is gone is not let in
			conn.Close()
		}
	}()
	for name, mode := range map[string]os.FileMode{dir: 0o755, path: 0o666} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, own, 0o755); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	for uid, want := range map[uint32]int{0: 0, nobody: 3} {
		cmd := exec.Command(program)
		cmd.Env = []string{dialVariable + "=" + path}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, _ := cmd.CombinedOutput() // its status tells
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("user %d: status %d, want %d: %s", uid, got, want, out)
		}
	}
}
