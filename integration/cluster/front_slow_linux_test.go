//go:build slow

package cluster

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// front starts a server of the workspaces of the pool. Two of them share a state directory, and so the tokens.
func (c *cluster) front(config, state string) (url, token string) {
	c.t.Helper()
	cmd := exec.Command(host.Binary, "http", "--workspaces", pool, "--state-dir", state, "--listen", "127.0.0.1:0")
	cmd.Dir, cmd.Env = c.t.TempDir(), c.environment(config)
	r, w := io.Pipe()
	cmd.Stderr = w
	host.Must(c.t, cmd.Start())
	c.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); w.Close() })
	url, token, err := client.Announced(r)
	host.Must(c.t, err)
	return url, token
}

// testFront: two servers at the same moment make one claim for a workspace of a caller, which finds its files at both.
// Another caller has a workspace of its own by the same name.
func testFront(c *cluster, t *testing.T) {
	config, state := c.account(), filepath.Join(t.TempDir(), "s")
	first, owner := c.front(config, state)
	second, _ := c.front(config, state)
	add := exec.Command(host.Binary, "token", "add", "alice", "--state-dir", state)
	add.Env = c.environment(config)
	out, err := add.Output()
	host.Must(t, err)
	alice := strings.TrimSpace(string(out))
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	defer cancel()
	at := func(url, token string) *client.Conn {
		conn, err := client.HTTP(ctx, client.Modern, strings.Replace(url, "NAME", "project", 1), token)
		host.Must(t, err)
		return conn
	}
	call := func(conn *client.Conn, tool string, args host.Args) string {
		r, err := conn.Call(ctx, tool, args.String())
		if err != nil {
			return err.Error()
		}
		return r.Text()
	}
	var both sync.WaitGroup
	for _, url := range []string{first, second} {
		both.Go(func() { call(at(url, alice), "Glob", host.Args{"pattern": "*"}) })
	}
	both.Wait()
	if got := call(at(first, alice), "Write", host.Args{"file_path": "a.txt", "content": "content\n"}); !strings.Contains(got, "Created") {
		t.Errorf("Write: %s", got)
	}
	if got := call(at(second, alice), "Read", host.Args{"file_path": "a.txt"}); !strings.Contains(got, "content") {
		t.Errorf("Read at the other server: %s", got)
	}
	if m := c.only("sandboxclaims").Metadata; m.Annotations["toolhost/workspace"] != "project" ||
		m.Annotations["toolhost/principal"] != "token:alice" {
		t.Errorf("the claim is %+v", m)
	}
	if got := call(at(first, owner), "Bash", host.Args{"command": "pwd"}); !strings.HasPrefix(got, "/") {
		t.Errorf("the workspace of another caller: %s", got)
	}
	if all, err := c.objects("sandboxclaims"); err != nil || len(all) != 2 {
		t.Errorf("two callers have %d claims, %v", len(all), err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(first, "NAME", "project", 1), nil)
	host.Must(t, err)
	if response, err := http.DefaultClient.Do(r); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %v", response, err)
	}
}
