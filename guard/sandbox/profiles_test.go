package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestSeccompProfile holds the profile for containers against what a sandbox is made of.
func TestSeccompProfile(t *testing.T) {
	raw, err := os.ReadFile("profiles/seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	var profile struct {
		DefaultAction string
		Syscalls      []struct {
			Names              []string
			Action             string
			Args               []any
			Includes, Excludes map[string]any
		}
	}
	if err := json.Unmarshal(raw, &profile); err != nil {
		t.Fatal(err)
	}
	if profile.DefaultAction != "SCMP_ACT_ERRNO" {
		t.Errorf("what is not listed is answered with %s", profile.DefaultAction)
	}
	allowed := func(name string) bool {
		for _, s := range profile.Syscalls {
			if s.Action == "SCMP_ACT_ALLOW" && len(s.Args)+len(s.Includes)+len(s.Excludes) == 0 &&
				slices.Contains(s.Names, name) {
				return true
			}
		}
		return false
	}
	for _, name := range []string{
		"clone", "clone3", "unshare", "mount", "umount2", "mount_setattr", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
		"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "prctl", "capset", "pidfd_open",
	} {
		if !allowed(name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	for _, name := range []string{"kexec_load", "init_module", "bpf", "open_by_handle_at"} {
		if allowed(name) {
			t.Errorf("%s is allowed", name)
		}
	}
}

// TestAppArmorProfile has the profile for Ubuntu parsed where the parser is installed.
func TestAppArmorProfile(t *testing.T) {
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		t.Skip("apparmor_parser is not installed")
	}
	if _, err := os.Stat("/etc/apparmor.d/abi/4.0"); err != nil {
		t.Skip("this AppArmor does not know abi 4.0")
	}
	if out, err := exec.Command(parser, "--skip-kernel-load", "--skip-cache",
		"profiles/toolhost.apparmor").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
