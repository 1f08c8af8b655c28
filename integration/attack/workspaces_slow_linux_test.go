//go:build slow

package attack

import (
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestVillage lets one caller of a workspace reach for what is another's, through the server of workspaces.
func TestVillage(t *testing.T) {
	t.Parallel()
	held := host.Contained(t)
	for _, era := range []client.Era{client.Modern, client.Legacy} {
		t.Run(string(era), func(t *testing.T) { openVillage(t, era).attack(t, held) })
	}
}
