package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestPrivateApart: callers over HTTP do not see each other's files in /tmp, and one sees its own from call to call.
func TestPrivateApart(t *testing.T) {
	host.NeedsContained(t)
	s := openShop(t, client.Modern)
	alice, bob := s.enter("alice", "read,write,exec"), s.enter("bob", "read,write,exec")
	name := fmt.Sprintf("/tmp/toolhost-%d-apart", os.Getpid())
	s.bash(alice, "echo hers > "+name, nil)
	if said := s.bash(alice, "cat "+name, nil); !strings.Contains(said, "hers") {
		t.Errorf("she reads %s", said)
	}
	if said := s.bash(bob, "ls -la /tmp; cat "+name, nil); strings.Contains(said, "hers") {
		t.Errorf("he reads %s", said)
	}
	for _, tool := range []string{"Read", "Grep"} {
		if raw, _ := s.call(bob, tool, object{"file_path": name, "path": name, "pattern": "."},
			nil); strings.Contains(raw, "hers") {
			t.Errorf("%s shows him %s", tool, raw)
		}
	}
	if said := s.bash(bob, "grep -rs hers "+s.state+" /tmp/"+filepath.Base(name)+" /proc/*/root/tmp/"+
		filepath.Base(name), nil); strings.Contains(said, ":hers") {
		t.Errorf("he finds %s", said)
	}
}
