package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestProfile(t *testing.T) {
	run := func(args ...string) (string, error) {
		cmd := profileCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		err := cmd.Execute()
		return out.String(), err
	}
	if out, err := run("seccomp"); err != nil || !json.Valid([]byte(out)) {
		t.Errorf("seccomp: %v\n%s", err, out)
	}
	out, err := run("apparmor")
	if err != nil || !strings.Contains(out, "\n@{toolhost} = \"/") || !strings.Contains(out, "userns,") {
		t.Errorf("apparmor: %v\n%s", err, out)
	}
	for _, args := range [][]string{{}, {"selinux"}, {"seccomp", "apparmor"}, {"seccomp", "--install"}} {
		if out, err := run(args...); err == nil {
			t.Errorf("%q: no error:\n%s", args, out)
		}
	}
}

// TestAppArmorPath: characters of a path that mean something to AppArmor are taken literally.
func TestAppArmorPath(t *testing.T) {
	name, err := apparmorName(`/opt/my "tools"/{a,b}/[x]*/@{HOME}?/to^l\host`)
	if err != nil {
		t.Fatal(err)
	}
	profile := apparmorProfile(name)
	if want := "\n" + `@{toolhost} = "/opt/my \"tools\"/\{a\,b\}/\[x\]\*/@\{HOME\}\?/to\^l\\host"` +
		"\n"; !strings.Contains(profile, want) {
		t.Errorf("%s\nlacks %s", profile, want)
	}
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		t.Skip("apparmor_parser is not installed")
	}
	if _, err := os.Stat("/etc/apparmor.d/abi/4.0"); err != nil {
		t.Skip("this AppArmor does not know abi 4.0")
	}
	cmd := exec.Command(parser, "--skip-kernel-load", "--skip-cache")
	cmd.Stdin = strings.NewReader(profile)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
