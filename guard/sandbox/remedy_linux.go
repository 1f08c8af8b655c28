package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// startFailure says why process 1 did not get ready.
func (n *insideProcess) startFailure(err error) error {
	if strings.Contains(err.Error(), contract.ErrChanged.Error()) {
		return fmt.Errorf("sandbox: %w", err)
	}
	if text := n.complaint(); errors.Is(err, io.EOF) && text != "" {
		err = errors.New(text)
	}
	return n.unavailable(err)
}

// complaint is the end of what process 1 wrote to its standard error.
func (n *insideProcess) complaint() string {
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
func (n *insideProcess) unavailable(err error) error {
	if n.backend != Namespaces {
		return &unavailableError{n.backend, err.Error(), ""}
	}
	return &unavailableError{n.backend, err.Error(), namespaceRemedy(err)}
}

// namespaceRemedy finds the setting that is most likely in the way.
func namespaceRemedy(err error) string { return remedyAt("/", os.Geteuid(), err) }

// remedyAt is namespaceRemedy for a root directory and a user. AppArmor lets root make namespaces.
func remedyAt(root string, user int, err error) string {
	value := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(root, "proc", name)) // an absent setting forbids nothing
		return strings.TrimRight(string(text), "\x00\n")
	}
	switch container, confined := inContainer(root), value("self/attr/current"); {
	case !container && user != 0 && value("sys/kernel/apparmor_restrict_unprivileged_userns") == "1" &&
		(confined == "" || confined == "unconfined"):
		return "AppArmor forbids user namespaces to programs without a profile (Ubuntu 23.10 and later); " +
			"install the one for this program: " + InstallCommand()
	case value("sys/kernel/unprivileged_userns_clone") == "0":
		return "Allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case value("sys/user/max_user_namespaces") == "0":
		return "Allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000"
	case errors.Is(err, unix.ENOSYS) || strings.Contains(err.Error(), unix.ENOSYS.Error()):
		return "Linux 5.12 or later is needed"
	case container:
		return "A container has to be started with: --security-opt seccomp=seccomp.json --security-opt " +
			"systempaths=unconfined " +
			"(toolhost profile seccomp prints seccomp.json)"
	}
	return ""
}

// inContainer reports whether a container engine left its mark.
func inContainer(root string) bool {
	for _, mark := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := os.Stat(filepath.Join(root, mark)); err == nil {
			return true
		}
	}
	return false
}
