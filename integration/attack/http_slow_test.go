//go:build slow && unix

package attack

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// overHTTP are the classes whose rows are run over HTTP as well, in both eras.
var overHTTP = []string{"symlinks", "spelling", "search parameters", "own rules", "sandbox opt-out",
	"grouping and substitution", "broken settings"}

// TestAttacksOverHTTP runs a part of the rows over HTTP.
func TestAttacksOverHTTP(t *testing.T) {
	t.Parallel()
	held := host.Contained(t)
	for i, class := range overHTTP {
		era := []client.Era{client.Modern, client.Legacy}[i%2]
		t.Run(strings.ReplaceAll(class, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			var h *witness
			for _, a := range attacks(t) {
				if a.class != class {
					continue
				}
				if h == nil {
					h = w.host(t, host.Setting{Transport: "http", Era: era}, profileFlags(w, a.profiles[0])...)
				}
				w.attack(t, h, a, held)
			}
			w.end(t, h)
		})
	}
}
