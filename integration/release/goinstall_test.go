//go:build slow

package release

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestGoInstall installs the command from a module proxy made of files, as go install …@VERSION does from the public one. The modules
// that it needs come from the cache. Without -samples=100, go only lists what it would do, which checks the module and its sums.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	const version = "v0.1.0"
	bin := host.TempDir(t)
	env, command := goProxy(t, version, bin)
	args := []string{"install", command + "@" + version}
	if !samples.Whole() {
		args = []string{"install", "-n", command + "@" + version}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = host.TempDir(t), env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out[max(0, len(out)-2000):])
	}
	if !samples.Whole() {
		return
	}
	installed := filepath.Join(bin, "toolhost")
	if out, err := exec.Command(installed, "version").CombinedOutput(); err != nil ||
		string(out) != "toolhost 0.1.0\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// goProxy makes a module proxy that has this checkout as a version, and returns the environment of a go command that installs from it
// into bin, and the path of the command.
func goProxy(t testing.TB, version, bin string) (env []string, command string) {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	host.Must(t, err)
	listed, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	path := strings.TrimSuffix(host.Module, "/")
	proxy := host.TempDir(t)
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	host.Must(t, os.MkdirAll(dir, 0o755))
	host.Must(t, os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644))
	host.Must(t, os.WriteFile(filepath.Join(dir, version+".info"), []byte(`{"Version":"`+version+`","Time":"2026-01-02T03:04:05Z"}`), 0o644))
	host.Must(t, os.WriteFile(filepath.Join(dir, version+".mod"), readRelease(t, "go.mod"), 0o644))
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	host.Must(t, err)
	z := zip.NewWriter(f)
	names := strings.Split(strings.TrimRight(string(listed), "\x00"), "\x00")
	inOther := func(name string) bool { // the files of another module
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if slices.Contains(names, dir+"/go.mod") {
				return true
			}
		}
		return false
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join("../..", name))
		if err != nil || !info.Mode().IsRegular() || inOther(name) {
			continue // deleted or moved; the go command leaves out links, and other modules
		}
		w, err := z.Create(path + "@" + version + "/" + name)
		host.Must(t, err)
		_, err = w.Write(readRelease(t, name))
		host.Must(t, err)
	}
	host.Must(t, z.Close())
	host.Must(t, f.Close())
	env = append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"),
		"GOMODCACHE="+filepath.Join(host.TempDir(t), "mod"), "GOBIN="+bin,
		"GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	return env, host.Module + "cmd/toolhost"
}
