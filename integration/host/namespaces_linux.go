package host

import (
	"os/exec"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// WithoutNamespaces has a host start where no program can make namespaces, as in most containers. Where that cannot
// be arranged, the test is skipped.
func WithoutNamespaces(t testing.TB) func(*exec.Cmd) {
	t.Helper()
	testenv.NeedsNamespaces(t)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	const script = `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`
	return func(cmd *exec.Cmd) {
		cmd.Args = append([]string{unshare, "--user", "--map-root-user", "sh", "-c", script, "sh", Binary},
			cmd.Args[1:]...)
		cmd.Path = unshare
	}
}
