//go:build slow && unix

package attack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestAttackControl attacks the files that the host obeys where its names for them are links into a root: by every name, by each
// link and each directory on the way, and looks at the disk after each call. Then what is next to them is edited. Each attack on each step
// is made once, on the backends in turn.
func TestAttackControl(t *testing.T) {
	t.Parallel()
	backends := []controlBackend{
		{name: "uncontained", plain: true, setUp: func(t *testing.T, w *world) []string {
			host.Must(t, os.WriteFile(filepath.Join(w.root, "uncontained.json"),
				[]byte(`{"sandbox":{"enabled":false,"onUnavailable":"allow"}}`), 0o644))
			return []string{"--settings", filepath.Join(w.root, "uncontained.json")}
		}},
	}
	if host.Contained(t) {
		backends = append(backends, controlBackend{name: "contained"})
		if os.Geteuid() == 0 {
			backends = append(backends, controlBackend{name: "contained-user", user: ordinaryUser})
		}
	}
	for i, b := range backends {
		if b.turn = i; !samples.Whole() {
			b.of = len(backends)
		}
		b.attack(t, 1)
	}
}
