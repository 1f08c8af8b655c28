//go:build slow

package attack

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestGitConfigLeft looks at what the person's own git does after a command has set a driver, which is taken out, and a remote,
// which is named.
func TestGitConfigLeft(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "git config user.name t; git config user.email t@example.org")
	s := g.start(t)
	r := s.MustCall("Bash", host.Args{"command": "set -e; git config filter.x.clean cat; git config filter.x.smudge cat; git config filter.x.required true; git config merge.x.name x; git config merge.x.driver true; " +
		"echo '* filter=x merge=x' > .gitattributes; git add .gitattributes; git commit -q -m attributes; git remote add up https://u:secret@example.org/x.git"})
	if !strings.Contains(r, `the remote \"up\"`) && !strings.Contains(r, `the remote "up"`) ||
		strings.Contains(r, "secret") || !strings.Contains(r, "filter.x.required") {
		t.Errorf("the result says %s", r)
	}
	if r := s.MustCall("Bash", host.Args{"command": "true"}); strings.Contains(r, "remote") {
		t.Errorf("said again: %s", r)
	}
	g.must(t, g.ws, "echo y > f; git add f; git commit -q -m y; git checkout -q -b b HEAD~1; echo z >> f; git add f; git commit -q -m z; git merge b")
	s.End()
}
