package builtin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// What could not be kept of an output is said once.
func TestUnkeptOutputNote(t *testing.T) {
	r := shell.Result{Shown: shell.Shown{SpillErr: errors.New("the whole output could not be kept: no space left on device")}}
	want := "The whole output could not be kept: no space left on device."
	if got := outcomeNotes(&r); !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSandboxHint(t *testing.T) {
	for said, want := range map[string]string{
		"sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.":                                 noRoot,
		"E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)":                                 noRoot,
		"bash: line 1: sudo: command not found":                                                                                  noRoot,
		"System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus: Host is down": noServices,
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":                      noDocker,
		"permission denied while trying to connect to the docker API at unix:///var/run/docker.sock":                             noDocker,
		"cat: x: No such file or directory":                                                                                      "",
	} {
		r := &shell.Result{ExitCode: 1}
		r.Text = said
		if got := sandboxHint(r); strings.TrimSuffix(got, ".") != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
	if got := sandboxHint(&shell.Result{}); got != "" {
		t.Errorf("a command that succeeded: %q", got)
	}
}
