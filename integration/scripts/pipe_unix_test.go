//go:build unix

package scripts

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A host whose client has gone away while it still sends, so that the next answer finds a pipe that no one reads, ends as
// at the end of its input: it is not struck down by the signal of the pipe.
func TestBrokenPipe(t *testing.T) {
	home := host.DoctorHome(t)
	cmd := exec.Command(host.Binary, "stdio")
	cmd.Dir, cmd.Env = filepath.Join(home, "work"), host.CleanEnv(home)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	unread.Close()
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the host ended with %v", err)
	}
	in.Close()
}
