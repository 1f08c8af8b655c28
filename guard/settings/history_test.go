package settings

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestHistoryOff: the user and the administrator can switch the history of commands off. A workspace cannot, even if it is trusted, and
// that is said.
func TestHistoryOff(t *testing.T) {
	for _, name := range allSources {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		p.write(name, `{"history": {"commands": "off"}}`)
		s := Load(p.cfg)
		ofWorkspace := slices.Contains(projectFiles, name)
		if said := strings.Contains(fmt.Sprint(s.Warnings),
			`history.commands: "off" counts from user and managed settings only`); s.History.Commands == Off == ofWorkspace || said != ofWorkspace {
			t.Errorf("%s: %q, said %t", name, s.History.Commands, said)
		}
	}
}
