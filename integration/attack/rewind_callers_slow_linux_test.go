//go:build slow

package attack

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestRewindCallers: the owner sees and takes back what every caller did, each under its name. No caller sees the history of any, by
// tools or by commands, nor takes back by an ID what another did.
func TestRewindCallers(t *testing.T) {
	host.NeedsContained(t)
	s := openShop(t, client.Modern)
	owner := func(args ...string) (string, error) {
		cmd := exec.Command(host.Binary, append(args, "--state-dir", s.state)...)
		cmd.Dir, cmd.Env = s.ws, s.env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	alice, bob := s.enter("alice", "read,write,exec"), s.enter("bob", "read,write,exec")
	for _, c := range []*client.Conn{alice, bob} { // the first command may begin before the workspace has been read
		for strings.Contains(s.bash(c, "true", nil), "had been read") {
		}
	}
	s.bash(alice, "echo alice >CANARY-of-alice; echo 1 >both.txt", nil)
	s.bash(bob, "echo bob >of-bob; echo 2 >both.txt", nil)
	out, err := owner("history", "--json")
	var calls []struct{ ID, Principal string }
	if jsonErr := json.Unmarshal([]byte(out), &calls); err != nil || jsonErr != nil || len(calls) != 2 ||
		calls[0].Principal != "token:bob" || calls[1].Principal != "token:alice" {
		t.Fatalf("the history is %v, %v\n%s", err, jsonErr, out)
	}
	ofAlice := calls[1].ID
	tools, err := bob.Request(t.Context(), "tools/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"undo`, `"rewind`, `"history`, `"diff`} {
		if strings.Contains(strings.ToLower(string(tools)), `"name":`+name) {
			t.Errorf("a tool is named %s", name)
		}
	}
	for _, args := range []string{"history --json", "diff " + ofAlice, "undo --yes " + ofAlice, "rewind --yes " +
		ofAlice, "history purge --yes"} {
		for _, state := range []string{"", " --state-dir " + s.state} {
			raw := s.bash(bob, host.Binary+" "+args+state, nil)
			if strings.Contains(raw, "token:alice") || strings.Contains(raw, "CANARY") ||
				strings.Contains(raw, "forgot ") ||
				!strings.Contains(raw, "toolhost: ") {
				t.Errorf("%s: %s", args, host.Clip(raw, 400))
			}
		}
	}
	if content, err := os.ReadFile(filepath.Join(s.ws, "both.txt")); err != nil || string(content) != "2\n" {
		t.Errorf("both.txt is %q, %v", content, err)
	}
	if out, err := owner("diff", ofAlice); err != nil || !strings.Contains(out, "+alice") {
		t.Errorf("diff: %v\n%s", err, out)
	}
	if out, err := owner("undo", ofAlice, "--yes"); err == nil ||
		!strings.Contains(out, "left "+filepath.Join(s.ws, "both.txt")) {
		t.Errorf("undo of one call takes back what another has changed since: %v\n%s", err, out)
	}
	if out, err := owner("rewind", ofAlice, "--yes"); err != nil {
		t.Errorf("rewind: %v\n%s", err, out)
	}
	for _, name := range []string{"CANARY-of-alice", "of-bob", "both.txt"} {
		if _, err := os.Lstat(filepath.Join(s.ws, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}
