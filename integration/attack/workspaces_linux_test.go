package attack

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// openVillage is a shop whose workspace is one of several, at the server of all of them.
func openVillage(t *testing.T, era client.Era) *shop {
	t.Helper()
	s := openShopWith(t, era, nil, "--workspaces", "..")
	t.Cleanup(func() {
		host.Must(t, s.h.Stop())
		host.Eventually(t, func() string { return hostsIn(t, filepath.Dir(s.ws)) }) // they outlive the server for a moment
	})
	return s
}

// hostsIn says which host of a workspace in a directory runs.
func hostsIn(t *testing.T, dir string) string {
	for _, pid := range host.Processes(t) {
		if raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(raw), "--apart="+dir) {
			return fmt.Sprintf("the host %d of a workspace runs", pid)
		}
	}
	return ""
}

// TestAttackWorkspaces has the owner of one workspace reach for another: with commands in the own one, with what only the
// server may say to the hosts of workspaces, and with names of workspaces.
func TestAttackWorkspaces(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-WORKSPACE-6021"
	s := openVillage(t, client.Modern)
	secret := filepath.Join(s.ws, "secret")
	host.MustWrite(t, secret, canary+"\n")
	own := filepath.Join(filepath.Dir(s.ws), "mallory")
	host.MustWrite(t, filepath.Join(own, "own"), "own\n")
	host.Must(t, os.Symlink(s.ws, filepath.Join(filepath.Dir(s.ws), "leads-there")))
	s.call(s.h.Conn, "Read", object{"file_path": "shared.txt"}, nil) // so that the host of the other workspace runs
	bearer := token(t, s.ws, s.env, "add", "mallory", "--root", own)
	ctx, cancel := host.Patient()
	defer cancel()
	mallory, err := client.HTTP(ctx, s.era, strings.Replace(s.h.URL, "/w/ws/", "/w/mallory/", 1), bearer)
	host.Must(t, err)
	if raw, r := s.call(mallory, "Read", object{"file_path": "own"}, nil); r.IsError {
		t.Fatalf("the own file: %s", raw)
	}
	above := filepath.Dir(filepath.Dir(s.ws))
	for _, command := range []string{
		"cat ../ws/secret", "cat " + secret, "cat /proc/*/root" + secret, "ls -laR ..", "cat /proc/*/cwd/secret", "grep -rs CANARY " + above,
		"ln ../ws/secret hard; cat hard", "ln -s " + s.ws + " soft; cat soft/secret", "mount --bind " + s.ws + " . ; cat secret",
		"cat $(find " + above + " /proc/self/root" + above + " -name secret)", "mv ../ws ../ws2", "rmdir ../mallory; ln -s ws ../mallory",
		"python3 -c 'import os; print(open(os.path.join(\"..\", \"w\"+\"s\", \"sec\"+\"ret\")).read())'",
		"cat " + s.state + "/remote/*.token", "python3 -c 'import glob,socket\nfor p in glob.glob(\"" + s.state + "/remote/*\"):\n s=socket.socket(socket.AF_UNIX); s.connect(p); print(\"LINKED\", p)'",
	} {
		if raw := s.bash(mallory, command, nil); strings.Contains(raw, canary) || strings.Contains(raw, "LINKED") {
			t.Errorf("%s: %s", command, host.Clip(raw, 400))
		}
	}
	for _, a := range []struct {
		tool string
		args object
	}{
		{"Read", object{"file_path": secret}}, {"Read", object{"file_path": "soft/secret"}}, {"Read", object{"file_path": "../leads-there/secret"}},
		{"Grep", object{"pattern": "CANARY", "path": "..", "output_mode": "content"}}, {"Glob", object{"pattern": "**/secret", "path": ".."}},
		{"Write", object{"file_path": "../ws/new", "content": "x"}},
	} {
		if raw, _ := s.call(mallory, a.tool, a.args, nil); strings.Contains(raw, canary) ||
			strings.Contains(raw, "ws/secret\"") {
			t.Errorf("%s %v: %s", a.tool, a.args, host.Clip(raw, 400))
		}
	}
	forged := "relay." + base64.RawURLEncoding.EncodeToString([]byte(`{"principal":"local","rights":["read","write","exec"]}`))
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"secret"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	base, _, _ := strings.Cut(s.h.URL, "/w/")
	for _, tt := range []struct {
		path          string
		authorization []string
	}{
		{"/w/ws/mcp", []string{"Bearer " + bearer}}, {"/w/ws/mcp", []string{"Bearer " + forged}}, {"/w/ws/mcp", []string{"Bearer " + bearer, "Bearer " + forged}},
		{"/w/ws/mcp", []string{"Bearer relay"}}, {"/w/leads-there/mcp", []string{"Bearer " + bearer}}, {"/w/mallory%2F..%2Fws/mcp", []string{"Bearer " + bearer}},
		{"/w/mallory/../ws/mcp", []string{"Bearer " + bearer}}, {"/w/WS/mcp", []string{"Bearer " + bearer}}, {"/w/../mcp", []string{"Bearer " + bearer}},
		{"/w/mallory/relay/console", []string{"Bearer " + bearer}}, {"/w/mallory/relay/revoke?principal=token", []string{"Bearer " + bearer}},
		{"/relay/stdio", []string{"Bearer " + bearer}}, {"/w/ws/mcp?tools=all", []string{"Bearer " + bearer}},
	} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+tt.path, strings.NewReader(call))
		host.Must(t, err)
		r.Header = http.Header{
			"Authorization": tt.authorization, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {string(client.Modern)}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"Read"},
		}
		response, err := http.DefaultClient.Do(r)
		host.Must(t, err)
		raw, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode < http.StatusBadRequest || strings.Contains(string(raw), canary) {
			t.Errorf("%s with %q: %d %s", tt.path, tt.authorization, response.StatusCode, raw)
		}
	}
	if _, err := os.Stat(filepath.Join(s.ws, "new")); err == nil {
		t.Error("a file was written in another workspace")
	}
	if got := host.Get(t, secret); got != canary+"\n" {
		t.Errorf("the other workspace has %q", got)
	}
	if info, err := os.Lstat(own); err != nil || !info.IsDir() {
		t.Errorf("the own workspace is %v, %v", info, err)
	}
}
