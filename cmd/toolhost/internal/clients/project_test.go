package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProjectLinks: no link of a project leads an edit out of it, for every client with a file there.
func TestProjectLinks(t *testing.T) {
	for _, c := range editable() {
		file, ok := c.ProjectFile(Env{OS: "linux", Getenv: func(string) string { return "" }}, "")
		if !ok {
			continue
		}
		parts := strings.Split(strings.Trim(filepath.ToSlash(file), "/"), "/")
		for depth := range parts {
			for _, kind := range []string{"outside", "relative", "dangling", "dangling inside", "chain", "inside"} {
				if kind == "dangling inside" && depth < len(parts)-1 {
					continue // as "dangling"
				}
				t.Run(c.Name+" "+filepath.Join(parts[:depth+1]...)+" "+kind, func(t *testing.T) {
					r := scratch(t, c)
					base := t.TempDir()
					r.Project = filepath.Join(base, "project")
					outside := filepath.Join(base, "outside")
					link := filepath.Join(r.Project, filepath.Join(parts[:depth+1]...))
					for _, dir := range []string{filepath.Dir(link), outside, filepath.Join(r.Project, "within")} {
						if err := os.MkdirAll(dir, 0o755); err != nil {
							t.Fatal(err)
						}
					}
					isFile := depth == len(parts)-1
					to := map[string]string{
						"outside": outside, "relative": strings.Repeat("../", depth+1) + "outside", "dangling": filepath.Join(base, "nothing"),
						"dangling inside": "nothing", "chain": filepath.Join(r.Project, "hop"), "inside": filepath.Join(r.Project, "within"),
					}[kind]
					if isFile && !strings.HasPrefix(kind, "dangling") && kind != "chain" {
						to = filepath.Join(to, "f")
						at := to
						if !filepath.IsAbs(at) {
							at = filepath.Join(filepath.Dir(link), to)
						}
						write(t, at, "", 0o644)
					}
					if kind == "chain" {
						end := outside
						if isFile {
							end = filepath.Join(outside, "f")
							write(t, end, "", 0o644)
						}
						if err := os.Symlink(end, to); err != nil {
							t.Fatal(err)
						}
					}
					if err := os.Symlink(to, link); err != nil {
						t.Skip(err)
					}
					before := tree(t, base)
					for _, dry := range []bool{true, false} {
						r.DryRun = dry
						report, err := c.Install(t.Context(), r)
						if _, fails := c.Uninstall(t.Context(), r); kind != "inside" && (err == nil || fails == nil) ||
							kind == "inside" && err != nil {
							t.Errorf("dry run %t: %v, %v, %+v", dry, err, fails, report)
						}
					}
					if diff := cmp.Diff(before, tree(t, base)); kind != "inside" && diff != "" {
						t.Errorf("it changed\n%s", diff)
					}
				})
			}
		}
	}
}
