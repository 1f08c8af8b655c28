//go:build unix

package attack

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestTokenCommand uses the commands that make, list and revoke tokens, while a host runs.
func TestTokenCommand(t *testing.T) {
	s := openShop(t, client.Modern)
	ctx, cancel := host.Patient()
	defer cancel()
	bearer := token(t, s.ws, s.env, "add", "short", "--rights", "read", "--expires", "720h")
	c, err := client.HTTP(ctx, client.Modern, s.h.URL, bearer)
	if err != nil {
		t.Fatal(err)
	}
	if _, r := s.call(c, "Read", object{"file_path": "shared.txt"}, nil); r.IsError {
		t.Errorf("a token that was made while the host runs: %s", r.Text())
	}
	if _, r := s.call(c, "Write", object{"file_path": "made", "content": "x"}, nil); !r.IsError ||
		!strings.Contains(r.Text(), "needs the right write") {
		t.Errorf("a reader writes: %s", r.Text())
	}
	var list []struct {
		Name             string
		Rights           []string
		Created, Expires time.Time
		Expired          bool
	}
	text := token(t, s.ws, s.env, "list", "--json")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 || list[0].Name != "short" ||
		len(list[0].Rights) != 1 || list[0].Expired {
		t.Errorf("the list is %s: %v", text, err)
	}
	if text := token(t, s.ws, s.env, "list"); !strings.Contains(text, "short") || strings.Contains(text, bearer) {
		t.Errorf("the table is %s", text)
	}
	token(t, s.ws, s.env, "revoke", "short")
	if raw, r := s.call(c, "Read", object{"file_path": "shared.txt"}, nil); !r.IsError ||
		strings.Contains(raw, "shared") {
		t.Errorf("a revoked token: %s", raw)
	}
	for _, args := range [][]string{
		{"add"}, {"add", "a b"}, {"add", "x", "--rights", "root"}, {"add", "x", "--rights", ""}, {"add", "x", "--expires", "0s"}, {"add", "x", "--expires", "soon"},
		{"revoke", "nobody"}, {"list", "more"},
	} {
		cmd := exec.Command(host.Binary, append([]string{"token"}, args...)...)
		cmd.Dir, cmd.Env = s.ws, s.env
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "th_") {
			t.Errorf("toolhost token %v: %s", args, out)
		}
	}
}
