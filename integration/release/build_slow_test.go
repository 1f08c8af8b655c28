//go:build slow

package release

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestBuild makes the archive of this system as the README says, and runs the program in it.
func TestBuild(t *testing.T) {
	out := host.TempDir(t)
	build := exec.CommandContext(t.Context(), "../../.release/build", out, runtime.GOOS+"/"+runtime.GOARCH)
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	archives, err := filepath.Glob(filepath.Join(out, "toolhost_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v, %v", archives, err)
	}
	host.Must(t, exec.Command("tar", "-xf", archives[0], "-C", out).Run())
	printed, err := exec.Command(filepath.Join(out, "toolhost"), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(printed), "toolhost 0.0.0-") {
		t.Errorf("%v\n%s", err, printed)
	}
	if _, err := exec.LookPath("npm"); err == nil {
		if packed, _ := filepath.Glob(filepath.Join(out, "toolhost-*.tgz")); len(packed) != 1 {
			t.Errorf("npm packages: %v", packed)
		}
	}
}
