//go:build slow

package fault

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// limitedGroup makes a control group whose processes may use so many bytes of memory, in version 2 or 1.
func limitedGroup(t *testing.T, bytes int) (dir string) {
	t.Helper()
	for mount, file := range map[string]string{"/sys/fs/cgroup": "memory.max",
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes"} {
		dir := filepath.Join(mount, fmt.Sprintf("toolhost-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })                            // the host has ended then
		limit, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // which is there if the mount is one of control groups
		if err != nil {
			continue
		}
		_, err = limit.WriteString(strconv.Itoa(bytes))
		if limit.Close(); err == nil {
			return dir
		}
	}
	t.Skip("this user cannot make a control group that limits memory")
	return ""
}

// TestLittleMemory: a host that may use 96 MiB answers calls on a file of 80 MiB with what it can do, and lives.
func TestLittleMemory(t *testing.T) {
	group := limitedGroup(t, 96<<20)
	dir := host.TempDir(t)
	line := []byte("one line of a large file\n")
	large := append(bytes.Repeat(line, (80<<20)/len(line)), "the last line\n"...)
	if err := os.WriteFile(filepath.Join(dir, "large"), large, 0o644); err != nil {
		t.Fatal(err)
	}
	inGroup := func(cmd *exec.Cmd) {
		script := fmt.Sprintf(`echo $$ > %s/cgroup.procs && exec "$0" "$@"`, group)
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", script, host.Binary}, cmd.Args[1:]...)
	}
	h, err := host.StartHostAs(t.Context(), inGroup, host.StdioModern, dir, host.CleanEnv(host.TempDir(t)),
		"--root", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	for _, call := range []struct {
		tool  string
		args  string
		says  string
		error bool
	}{
		{"Read", `{"file_path":"large","limit":1}`, "one line", false},
		{"Edit", `{"file_path":"large","old_string":"the last line","new_string":"changed"}`, "too large here", true},
		{"Write", `{"file_path":"large","content":"x"}`, "too large here", true},
		{"Grep", `{"pattern":"the last line"}`, "larger than", false},
		{"Bash", `{"command":"tail -n 1 large"}`, "the last line", false},
		{"Write", `{"file_path":"small","content":"x"}`, "Created", false},
	} {
		r, err := h.Call(t.Context(), call.tool, call.args)
		if err != nil {
			t.Fatalf("%s: %v\n%s", call.tool, err, h.Stderr)
		}
		if !strings.Contains(r.Text(), call.says) || r.IsError != call.error {
			t.Errorf("%s: error %t: %s", call.tool, r.IsError, r.Text())
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "large")); err != nil || !bytes.Equal(now, large) {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestLittleAddressSpace: a host that could fail at random under RLIMIT_AS does not start, and names the limit.
func TestLittleAddressSpace(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `ulimit -v 1500000; exec "$0" stdio --root .`, host.Binary)
	cmd.Dir, cmd.Env = host.TempDir(t), host.CleanEnv(host.TempDir(t))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "RLIMIT_AS") {
		t.Errorf("%v: %s", err, out)
	}
}
