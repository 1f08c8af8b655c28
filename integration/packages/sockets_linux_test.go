package packages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// socketRows are programs that bind Unix sockets in temporary directories. Their paths have at most 107 bytes.
var socketRows = []struct {
	name, needs string // needs is a command that fails where the program is missing
	toolchain   string // see manager
	files       map[string]string
	command     string
}{
	{
		"Go's TempDir", "go version", "",
		map[string]string{"go.mod": "module x\n\ngo 1.24\n", "x_test.go": `package x

import (
	"net"
	"testing"
)

func TestAnOrdinarilyLongNameOfATest(t *testing.T) {
	if _, err := net.Listen("unix", t.TempDir()+"/control.sock"); err != nil {
		t.Fatal(err)
	}
	t.Log("bound")
}
`},
		"go test -v .",
	},
	{
		"pytest's tmp_path", "python3 -c 'import pytest'", pythonToolchain,
		map[string]string{"test_x.py": `import socket

def test_an_ordinarily_long_name_of_a_test(tmp_path):
    socket.socket(socket.AF_UNIX).bind(str(tmp_path / "control.sock"))
`},
		"python3 -m pytest -q test_x.py && echo bound",
	},
	{
		"forkserver", "python3 -c 'import multiprocessing'", pythonToolchain,
		map[string]string{"x.py": `import multiprocessing

def work(queue):
    queue.put("bound")

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    queue = context.Queue()
    context.Process(target=work, args=(queue,)).start()
    print(queue.get())
`},
		"python3 x.py",
	},
	{
		"PostgreSQL", `test -x "$(ls -d /usr/lib/postgresql/*/bin/initdb | tail -1)"`, "", nil,
		`cd "$(mktemp -d)" && bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1) && "$bin/initdb" -D pytest-postgresql-data > log &&
"$bin/pg_ctl" -D pytest-postgresql-data -o "-k $PWD -h ''" -w start >> log && "$bin/psql" -h "$PWD" -d postgres -Atc "select 'bound'"; code=$?
cat log; "$bin/pg_ctl" -D pytest-postgresql-data stop > log; exit $code`,
	},
}

// goCache is the build cache of the person who runs the test: commands see it through an overlay. With the settings of
// that person's builds, they compile nothing again.
func goCache() string {
	dir, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(dir))
}

// nobody is the user of the host if the test is run by root, as which PostgreSQL does not run.
const nobody = 65534

// TestSockets: programs bind sockets in the temporary directory, also where the home directory has a long name.
func TestSockets(t *testing.T) {
	host.NeedsContained(t)
	for _, c := range samples.Of(socketRows, 1) {
		t.Run(c.name, func(t *testing.T) {
			if out, err := exec.Command("sh", "-c", c.needs).CombinedOutput(); err != nil {
				t.Skipf("%s: %v %s", c.needs, err, out)
			}
			dir := host.TempDir(t)
			home, ws := filepath.Join(dir, strings.Repeat("h", 80)), filepath.Join(dir, "ws")
			for name, text := range c.files {
				host.MustWrite(t, filepath.Join(ws, name), text)
			}
			host.MustWrite(t, filepath.Join(ws, "README"), "")
			as := plain
			if c.name == "PostgreSQL" && os.Geteuid() == 0 {
				host.Must(t, os.Mkdir(home, 0o755))
				host.Must(t, exec.Command("chown", "-R", strconv.Itoa(nobody), dir).Run())
				host.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
				as = func(cmd *exec.Cmd) {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
			defer cancel()
			env := append(host.CleanEnv(home), "GOTOOLCHAIN=local", "GOCACHE="+goCache(),
				"GOFLAGS="+os.Getenv("GOFLAGS"), "CGO_ENABLED="+os.Getenv("CGO_ENABLED"))
			if c.toolchain != "" {
				env = append(env, "PATH="+toolchainPath(t, c.toolchain))
			}
			h, err := host.StartHostAs(ctx, as, host.StdioModern, ws, env, "--root", ws, "--allow", "Bash")
			host.Must(t, err)
			s := &host.Session{Host: h, T: t, Ctx: ctx}
			args := host.Args{"command": c.command, "timeout": host.Patience.Milliseconds()}
			if out, failed := s.Try("Bash", args); failed || !strings.Contains(out, "bound") {
				t.Error(out)
			}
			s.End()
		})
	}
}
