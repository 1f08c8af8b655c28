package sandbox

import _ "embed"

// The profiles that let the sandbox work. The seccomp profile, for containers, is that of Docker with the system calls for
// namespaces and mounts allowed. The AppArmor profile, for Ubuntu 23.10 and later, is for the paths that packages install to.
var (
	//go:embed profiles/seccomp.json
	SeccompProfile string
	//go:embed profiles/toolhost.apparmor
	AppArmorProfile string
)
