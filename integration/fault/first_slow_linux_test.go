//go:build slow

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestFirstCommand removes many files, an empty directory and a large file with the first command of a host, and takes that back.
func TestFirstCommand(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for i := range samples.Rounds(samples.Rounds(samples.Rounds(5000))) {
		g.Put(fmt.Sprintf("d%d/f%d", i/50, i), strings.Repeat(fmt.Sprintln("line of", i), 40))
	}
	g.Put("large", strings.Repeat("a large file\n", 10<<20/13))
	host.Must(t, os.MkdirAll(filepath.Join(g.WS, "empty"), 0o755))
	before := g.stands()
	s := g.start(host.StdioModern)
	said := s.MustCall("Bash", host.Args{"command": "rm -rf d* large empty"})
	s.End()
	if strings.Contains(said, "had been read when") {
		t.Skip("this machine is too busy to read the workspace within the time that a command waits")
	}
	if out, err := g.Run("undo", "--yes"); err != nil {
		t.Fatalf("%v: %.1000s", err, out)
	}
	if diff := cmp.Diff(before, g.stands()); diff != "" {
		t.Errorf("(-before +after)\n%.3000s", diff)
	}
}
