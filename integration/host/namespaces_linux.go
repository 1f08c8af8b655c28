package host

import (
	"os/exec"
)

// WithoutNamespaces has a host start where no program can make namespaces, as in most containers.
func WithoutNamespaces(unshare string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.Args = append([]string{unshare, "--user", "--map-root-user", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`, "sh", Binary}, cmd.Args[1:]...)
		cmd.Path = unshare
	}
}
