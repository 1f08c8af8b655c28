//go:build slow

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackCachesApart: callers over HTTP have caches of their own.
func TestAttackCachesApart(t *testing.T) {
	host.NeedsContained(t)
	s := openShop(t, client.Modern)
	alice, bob := s.enter("alice", "read,write,exec"), s.enter("bob", "read,write,exec")
	s.bash(alice, "mkdir -p ~/.cache && echo hers > ~/.cache/mine; echo hers > ${GOMODCACHE:-/tmp}/mine", nil)
	said := s.bash(bob, "cat ~/.cache/mine ${GOMODCACHE:-/tmp}/mine; grep -rs hers ~/", nil)
	if strings.Contains(said, "hers\n") || strings.Contains(said, ":hers") {
		t.Errorf("he reads %s", said)
	}
}

// TestAttackCachesRemoved: what a command leaves in the layers does not lead their removal astray.
func TestAttackCachesRemoved(t *testing.T) {
	h := newCacheHome(t)
	ws, out := host.TempDir(t), host.TempDir(t)
	host.MustWrite(t, filepath.Join(out, "kept"), "kept")
	s := h.start(ws, allowBash)
	s.MustCall("Bash", host.Args{"command": fmt.Sprintf("cd ~/.cache && ln -s %s out; mkdir -p shut/deep; ln -s %s shut/deep/out; chmod 0 shut", out, out)})
	s.End()
	layers, err := filepath.Glob(filepath.Join(h.home, "state", "overlays", "*-0"))
	if err != nil || len(layers) != 1 {
		t.Skipf("there are no layers: %v", err)
	}
	host.Must(t, exec.Command("touch", "-d", "@0", layers[0]).Run())
	host.Must(t, os.Remove(filepath.Join(h.home, "state", "overlays", "tidied")))
	s = h.start(host.TempDir(t), allowBash)
	s.MustCall("Bash", host.Args{"command": "true"})
	s.End()
	if _, err := os.Lstat(layers[0]); !os.IsNotExist(err) {
		t.Errorf("the old layer is there: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(out, "kept")); err != nil {
		t.Error(err)
	}
}
