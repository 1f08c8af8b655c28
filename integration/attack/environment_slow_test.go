//go:build slow && linux

package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestAttackEnvironment looks for the secrets of the host's environment in commands of callers over HTTP.
func TestAttackEnvironment(t *testing.T) {
	t.Parallel()
	for i, sandbox := range []string{"true", "false"} {
		if sandbox == "true" && !host.Contained(t) {
			continue
		}
		for j, era := range []client.Era{client.Modern, client.Legacy} {
			t.Run(string(era)+" sandbox "+sandbox, func(t *testing.T) {
				s := openShopWith(t, era, append(secretVariables, serviceVariables...), "--trust-workspace",
					"--settings", environmentSettings(t, sandbox))
				for k, c := range []*client.Conn{s.h.Conn, s.enter("alice", "read,write,exec")} {
					for n, command := range environmentAttacks {
						if (i+j+k+n)%2 != 0 && !samples.Whole() {
							continue // half of the table holds each command with each caller, era and kind of sandbox
						}
						if sandbox == "false" && strings.Contains(command, "/proc/") {
							continue // nothing keeps such a command from the processes of the user
						}
						if raw := s.bash(c, command, nil); strings.Contains(raw, secretMark) {
							t.Errorf("%s: %s", command, raw)
						}
					}
					if raw := s.bash(c, `echo "passed:$MYAPP_NAME:$GOFLAGS:$LC_TIME"`, nil); !strings.Contains(raw,
						"passed:mine:-count=1:C") {
						t.Errorf("what is harmless or named by bash.env.pass does not arrive: %s", raw)
					}
				}
			})
		}
	}
}

// environmentSettings is a file of settings that passes some variables.
func environmentSettings(t *testing.T, sandbox string) string {
	file := filepath.Join(host.TempDir(t), "settings.json")
	host.Must(t, os.WriteFile(file, []byte(`{"sandbox":{"enabled":`+sandbox+`,"onUnavailable":"allow"},"bash":{"env":{"pass":["MYAPP_*"]}}}`), 0o644))
	return file
}
