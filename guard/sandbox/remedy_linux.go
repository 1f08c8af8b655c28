package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// startFailure says why process 1 did not get ready.
func (n *namespaces) startFailure(err error) error {
	if strings.Contains(err.Error(), errChanged.Error()) {
		return fmt.Errorf("sandbox: %w", err)
	}
	if text := n.complaint(); errors.Is(err, io.EOF) && text != "" {
		err = errors.New(text)
	}
	return n.unavailable(err)
}

// complaint is the end of what process 1 wrote to its standard error.
func (n *namespaces) complaint() string {
	const enough = 2 << 10
	st, err := n.complain.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(st.Size(), enough))
	k, _ := n.complain.ReadAt(buf, st.Size()-int64(len(buf)))
	return strings.TrimSpace(string(buf[:k]))
}

// unavailable explains why the backend does not work here.
func (n *namespaces) unavailable(err error) error {
	if n.backend != Namespaces {
		return &unavailableError{n.backend, err.Error(), ""}
	}
	return &unavailableError{n.backend, err.Error(), namespaceRemedy(err)}
}

// namespaceRemedy finds the setting that is most likely in the way.
func namespaceRemedy(err error) string {
	for _, s := range []struct{ file, bad, remedy string }{
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
			"This system (Ubuntu 23.10 or later) forbids ordinary programs user namespaces. Install bubblewrap (sudo apt install bubblewrap), or allow them: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0",
			"Allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/user/max_user_namespaces", "0",
			"Allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000"},
	} {
		if value, readErr := os.ReadFile(s.file); readErr == nil && strings.TrimSpace(string(value)) == s.bad {
			return s.remedy
		}
	}
	if errors.Is(err, unix.ENOSYS) || strings.Contains(err.Error(), unix.ENOSYS.Error()) {
		return "Linux 5.12 or later is needed"
	}
	if inContainer() {
		return "A container has to be started with: --security-opt seccomp=seccomp.json --security-opt systempaths=unconfined (seccomp.json is in guard/sandbox/profiles)"
	}
	return ""
}

// inContainer reports whether a container engine left its mark.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return false
}
