package sandbox

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The profiles that let the sandbox work. The seccomp profile, for containers, is that of Docker with the system calls
// for namespaces and mounts allowed. The AppArmor profile, for Ubuntu 23.10 and later, is for the paths that packages
// install to; each line that begins with "@{toolhost}" names some.
var (
	//go:embed profiles/seccomp.json
	SeccompProfile string
	//go:embed profiles/toolhost.apparmor
	AppArmorProfile string
)

// InstallCommand returns the command by which a person installs the AppArmor profile for this program. It names the
// program by its path, unless sudo finds it by its name.
func InstallCommand() string {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		self = "toolhost"
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"} { // the PATH of sudo
		if found, err := filepath.EvalSymlinks(dir + "/toolhost"); err == nil {
			if found == self {
				self = "toolhost"
			}
			break
		}
	}
	if !plainWord.MatchString(self) {
		self = "'" + strings.ReplaceAll(self, "'", `'\''`) + "'"
	}
	return "sudo " + self + " profile apparmor --install"
}

// plainWord matches what a shell takes as it is written.
var plainWord = regexp.MustCompile(`^[\w./@%+:=-]+$`)
