//go:build slow

package clients

import (
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hasModes reports whether files have the modes that they were given.
const hasModes = runtime.GOOS != "windows"

// TestRoundTrip adds toolhost, finds nothing to do the second time, changes its roots and takes it out: then
// everything is what it was before, to the byte, for every client and every sample.
func TestRoundTrip(t *testing.T) {
	for _, c := range editable() {
		samples := append(samplesOf(c), sample{name: "absent"})
		if testing.Short() {
			samples = samples[:1]
		}
		for _, s := range samples {
			t.Run(c.Name+"/"+s.name, func(t *testing.T) {
				r := scratch(t, c)
				file := c.UserFile(r.Env)
				if s.name != "absent" {
					write(t, file, s.body, 0o640)
				}
				before := tree(t, r.Env.Home)
				for i, want := range []Action{Added, Unchanged} {
					report, err := c.Install(t.Context(), r)
					if err != nil || report.Action != want {
						t.Fatalf("install %d: %s, %v; want %s", i, report.Action, err, want)
					}
				}
				info, err := os.Stat(file)
				if want := fs.FileMode(0o640); err != nil || s.name != "absent" && hasModes && info.Mode() != want {
					t.Errorf("mode %v, %v; want %v", info.Mode(), err, want)
				}
				if s.name == "absent" && hasModes && info.Mode() != 0o600 {
					t.Errorf("a new file has mode %v", info.Mode())
				}
				r.Server.Args = Arguments(c, "/elsewhere")
				if report, err := c.Install(t.Context(), r); err != nil || report.Action != Updated {
					t.Fatalf("with another root: %s, %v", report.Action, err)
				}
				if report, err := c.Uninstall(t.Context(), r); err != nil || report.Action != Removed {
					t.Fatalf("uninstall: %s, %v", report.Action, err)
				}
				if diff := cmp.Diff(before, tree(t, r.Env.Home)); diff != "" {
					t.Errorf("afterwards (-before +after):\n%s", diff)
				}
				if report, err := c.Uninstall(t.Context(), r); err != nil || report.Action != Unchanged {
					t.Errorf("a second uninstall: %s, %v", report.Action, err)
				}
			})
		}
	}
}
