package builtin

import (
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// sandboxHints say what a program needs that no sandbox gives, by a part of its complaint. The parts are from the
// sources of sudo, apt, dpkg, dnf, systemd and docker.
var sandboxHints = []struct{ complaint, hint string }{
	{`The "no new privileges" flag is set`, noRoot},
	{"sudo: effective uid is not 0", noRoot},
	{"sudo: command not found", noRoot},
	{"doas: not installed setuid", noRoot},
	{"must be suid to work properly", noRoot},
	{"are you root?", noRoot},
	{"/var/lib/dpkg/lock", noRoot},
	{"dpkg: error: requested operation requires superuser privilege", noRoot},
	{"This command has to be run with superuser privileges", noRoot},
	{"you cannot perform this operation unless you are root", noRoot},
	{"System has not been booted with systemd", noServices},
	{"Failed to connect to bus", noServices},
	{"scope bus via local transport", noServices},
	{"Cannot connect to the Docker daemon", noDocker},
	{"permission denied while trying to connect to the Docker daemon socket", noDocker},
	{"permission denied while trying to connect to the docker API", noDocker},
	{"failed to connect to the docker API", noDocker},
	{"Cannot connect to Podman", noDocker},
}

const (
	noRoot = "Commands run in a sandbox: they cannot become root or change the system. Ask the user to run this in a " +
		"terminal of their own, " +
		"or install the program in the workspace or the home directory"
	noServices = "Commands run in a sandbox, which has no system services. Ask the user to run this in a terminal of " +
		"their own"
	noDocker = "Commands run in a sandbox, which does not reach the daemon. Ask the user to run this, to name its " +
		"socket in sandbox.network.allowUnixSockets " +
		"(what reaches it has the rights of root), or to name the program in sandbox.excludedCommands"
)

// sandboxHint returns a note on a contained command that failed because it runs in a sandbox, or "".
func sandboxHint(r *shell.Result) string {
	if r.ExitCode == 0 || r.TimedOut {
		return ""
	}
	for _, h := range sandboxHints {
		if strings.Contains(r.Text, h.complaint) {
			return h.hint + "."
		}
	}
	return ""
}
