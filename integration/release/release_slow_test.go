//go:build slow

package release

import (
	_ "image/png"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/toolhost/toolhost/integration/host"
)

// TestReleaseBuild: the images are built with the flags that releases are, and what packages contain is there.
func TestReleaseBuild(t *testing.T) {
	var config struct {
		Builds []struct {
			Main           string
			Flags, Ldflags []string
			Env            []string
		}
		Nfpms []struct {
			Contents []struct{ Src string }
		}
	}
	if err := yaml.Unmarshal(readRelease(t, ".goreleaser.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	build := config.Builds[0]
	ldflags := strings.ReplaceAll(build.Ldflags[0], "{{ .Version }}", "$VERSION")
	line := "go build " + build.Flags[0] + ` -ldflags "` + ldflags + `" -o /out/toolhost ` + build.Main
	if docker := string(readRelease(t, ".release/Dockerfile")); !strings.Contains(docker, line) ||
		!strings.Contains(docker, build.Env[0]) {
		t.Errorf("the Dockerfile does not build with %s", line)
	}
	for _, c := range config.Nfpms[0].Contents {
		if generated, _ := filepath.Match(".release/out/*/*", c.Src); !generated {
			readRelease(t, c.Src)
		}
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		holds(t, []string{"completion", shell})
	}
	probe := filepath.Join(host.TempDir(t), "toolhost")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", strings.ReplaceAll(ldflags, "$VERSION", "1.2.3"),
		"-o", probe, host.Module+"cmd/toolhost")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), probe, "version").Output(); err != nil ||
		string(out) != "toolhost 1.2.3\n" {
		t.Errorf("%q, %v", out, err)
	}
}
