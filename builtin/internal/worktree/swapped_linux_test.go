package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
)

// TestSwappedSource has a program plant links to denied objects after the repository was checked, and take them away before it is
// checked again.
func TestSwappedSource(t *testing.T) {
	if lsm, err := os.ReadFile("/sys/kernel/security/lsm"); err == nil && !strings.Contains(string(lsm), "landlock") {
		t.Skip("this kernel has no Landlock")
	}
	secret := repository(t)
	sh(t, secret, "echo canary7391 > key; git add key; git commit -qm secret")
	key := sh(t, secret, "git rev-parse HEAD:key")
	denied := func(cmd *exec.Cmd, writable []string) error {
		return sandbox.Policy{Writable: writable, Denied: []string{secret}}.StartRestricted(cmd)
	}
	t.Cleanup(func() { step = func(string) {} })
	for name, start := range map[string]Start{"unrestricted": nil, "denied": denied} {
		dir := repository(t)
		sh(t, dir, "git update-ref HEAD $(git commit-tree -m evil $(printf '100644 blob "+key+
			"\tkey\n' | git mktree --missing))")
		object := filepath.Join(".git/objects", key[:2], key[2:])
		step = func(name string) {
			switch name {
			case "checkout":
				sh(t, dir, "mkdir -p "+filepath.Dir(object)+"; ln -s "+filepath.Join(secret, object)+" "+object)
			case "child":
				sh(t, dir, "rm "+object)
			}
		}
		w, err := room(t).Make(t.Context(), dir, Spec{Kind: Agent, Start: start})
		if start != nil {
			if err == nil || !strings.Contains(err.Error(), "read-tree") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil { // else the attack is none
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(w.Tree(), "key")); err != nil || string(got) != "canary7391\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		w.Discard(t.Context())
	}
}
