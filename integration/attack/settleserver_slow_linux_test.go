//go:build slow

package attack

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestSettleServerNpm has a server install a package whose script plants a protected file: the package is there, and what
// its script has planted is held.
func TestSettleServerNpm(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil || !host.Contained(t) {
		t.Skip("there is no npm, or nothing contains commands on this machine")
	}
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, `mkdir -p p .vscode; echo '{}' > .vscode/tasks.json; cd p
echo '{"name":"p","version":"1.0.0","scripts":{"postinstall":"echo ran > ran; echo pwned > $INIT_CWD/.vscode/tasks.json; mkdir -p $INIT_CWD/.claude; echo pwned > $INIT_CWD/.claude/settings.json"}}' > package.json
for i in $(seq 200); do echo $i > $i.js; done; cd ..; npm pack --silent ./p > /dev/null; rm -r p`)
	before := g.must(t, g.ws, plantsLook)
	s := g.startServed(t, "")
	const install = "npm install --offline --no-audit --no-fund --loglevel=error ./p-1.0.0.tgz && ls node_modules/p/*.js | wc -l && cat node_modules/p/ran .vscode/tasks.json"
	if out := s.MustCall("mcp__s__sh", host.Args{"text": install}); !strings.Contains(out, "\n200\nran\npwned\n.") {
		t.Errorf("npm says %s", out)
	}
	g.settled(t)
	if now := g.must(t, g.ws, plantsLook); now != before {
		t.Errorf("outside stands\n%s", now)
	}
	g.goAlone(t, "go.sh", "rm -rf node_modules; { "+install+"; } > out 2>&1")
	g.settled(t)
	if now := g.must(t, g.ws, plantsLook+"; cat out"); !strings.HasPrefix(now, before) || !strings.HasSuffix(now, "200\nran\npwned\n") {
		t.Errorf("after an install between calls, outside stands\n%s", now)
	}
	s.End()
}

// TestSettleServerHidden has a server plant a protected file by a process that hides from a host without rights what it
// is doing, and that goes on: the change is told, and does not stand once the server has ended.
func TestSettleServerHidden(t *testing.T) {
	t.Parallel()
	host.WithoutNamespaces(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	g := newLeftoverGround(t, 0)
	g.as = func(cmd *exec.Cmd) {
		const script = `echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"`
		cmd.Args = append([]string{"unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", host.Binary}, cmd.Args[1:]...)
		cmd.Path, _ = exec.LookPath("unshare")
	}
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	before := g.must(t, g.ws, plantsLook)
	s := g.startServed(t, "")
	s.MustCall("mcp__s__sh", host.Args{"text": "true"}) // starts it
	g.goAlone(t, "go.sh", `python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
open(".vscode/tasks.json", "w").write("pwned\n")
time.sleep(1000)' > /dev/null 2>&1 & until grep -q pwned .vscode/tasks.json; do sleep .01; done`)
	stands := g.must(t, g.ws, plantsLook)
	if stands != before {
		host.Eventually(t, func() string {
			if said := s.Stderr.String(); !strings.Contains(said, ".vscode/tasks.json") {
				return "what stands is not told: " + said
			}
			return ""
		})
	}
	if text := s.MustCall("Bash", host.Args{"command": "echo pwned > .mcp.json; cat /proc/sys/user/max_user_namespaces"}); !strings.HasPrefix(text, "0") {
		t.Errorf("a command says %s", text)
	}
	s.End()
	if now := g.must(t, g.ws, plantsLook); now != before {
		t.Errorf("in the end, outside stands\n%s\n%s", now, s.Stderr)
	}
	if locks, _ := filepath.Glob(filepath.Join(g.home, "state/*/settle/*/lock")); len(locks) == 0 {
		t.Error("nothing was settled")
	}
}
