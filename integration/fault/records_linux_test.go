package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestFaultRecords kills hosts: the next one removes their records.
func TestFaultRecords(t *testing.T) {
	g := newGround(t)
	records := func() []string {
		names, err := filepath.Glob(filepath.Join(g.State, "hosts", "*"))
		host.Must(t, err)
		return names
	}
	for range 3 {
		s := g.start(host.StdioModern)
		s.MustCall("Glob", host.Args{"pattern": "*"})
		host.Must(t, s.Cmd.Process.Kill())
		_ = s.Close()
	}
	if _, err := os.Stat(g.State); err != nil || len(records()) == 0 {
		t.Fatalf("no host has a record: %v", err)
	}
	s := g.start(host.StdioModern)
	s.MustCall("Glob", host.Args{"pattern": "*"})
	host.Eventually(t, func() string {
		if all := records(); len(all) != 2 { // the lock and the text of this host
			return fmt.Sprintf("records of killed hosts stay: %s", all)
		}
		return ""
	})
	s.End()
}
