//go:build slow && unix

package attack

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// proxyVariables name a proxy in every way that programs know.
func proxyVariables(address, direct string) (env []string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+address, strings.ToLower(name)+"="+address)
	}
	return append(env, "NO_PROXY="+direct, "no_proxy="+direct)
}

// TestAttackProxies names a proxy to which nothing may lead but WebFetch with the variables of the user: in the environment of a host, in
// the settings of a workspace, in a command.
func TestAttackProxies(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	var reached host.LockedBuffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			head := make([]byte, 4096)
			n, _ := c.Read(head)
			fmt.Fprintf(&reached, "%s\n", bytes.SplitN(head[:n], []byte("\r\n"), 2)[0])
			fmt.Fprint(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			c.Close()
		}
	}()
	proxy := "http://user:CANARY-PASSWORD@" + l.Addr().String()
	settings := fmt.Sprintf(`{"env":{"HTTP_PROXY":%q,"http_proxy":%[1]q,"HTTPS_PROXY":%[1]q,"https_proxy":%[1]q,"ALL_PROXY":%[1]q,"NO_PROXY":"*"}}`, proxy)
	curl, fetch := `{"command":"env; curl -sS -m 20 http://example.com/"}`, func(url string) string { return fmt.Sprintf(`{"url":%q,"prompt":"x"}`, url) }
	for _, tt := range []struct {
		name      string
		env       []string
		workspace string
		flags     []string
		tool      string
		args      string
		want      string // what the proxy was asked for
	}{
		{"commands and variables of the host", proxyVariables(proxy, ""), "", nil, "Bash", curl, ""},
		{"commands without a proxy by those", proxyVariables(proxy, "*"), "", nil, "Bash", curl, ""},
		{"commands and settings", nil, settings, nil, "Bash", curl, ""},
		{"commands and trusted settings", nil, settings, []string{"--trust-workspace"}, "Bash", curl, ""},
		{"a command that names it", nil, "", nil, "Bash", `{"command":"curl -sS -m 20 --noproxy '' -x ` + proxy + ` http://example.com/; http_proxy=` + proxy + ` curl -sS -m 20 http://example.com/"}`, ""},
		{"WebFetch and settings", nil, settings, nil, "WebFetch", fetch("http://example.com/"), ""},
		{"WebFetch and trusted settings", nil, settings, []string{"--trust-workspace"}, "WebFetch", fetch("http://example.com/"), ""},
		{"WebFetch of this machine", proxyVariables(proxy, ""), "", nil, "WebFetch", fetch("http://localhost:1/"), ""},
		{"WebFetch of a private address", proxyVariables(proxy, ""), "", nil, "WebFetch", fetch("http://10.0.0.1/"), ""},
		{"WebFetch of a metadata service", proxyVariables(proxy, ""), "", nil, "WebFetch", fetch("http://169.254.169.254./latest"), ""},
		{"WebFetch with the variables of the user", proxyVariables(proxy, ""), "", nil, "WebFetch", fetch("https://example.com/"), "CONNECT example.com:443"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.workspace != "" {
				host.MustWrite(t, filepath.Join(w.ws, ".claude", "settings.json"), tt.workspace)
			}
			before := len(reached.String())
			cmd := exec.Command(host.Binary, append(append([]string{"call", "--root", w.ws, "--allow", "Bash", "--allow", "WebFetch"}, tt.flags...), tt.tool, tt.args)...)
			cmd.Dir, cmd.Env = w.ws, append(host.CleanEnv(w.home), tt.env...)
			out, _ := cmd.CombinedOutput() // it may be refused
			got := reached.String()[before:]
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("the proxy was asked %q, want %q\n%s", got, tt.want, out)
			}
			if tt.tool == "WebFetch" && strings.Contains(string(out), "CANARY-PASSWORD") {
				t.Errorf("the password is shown: %s", out)
			}
		})
	}
}
