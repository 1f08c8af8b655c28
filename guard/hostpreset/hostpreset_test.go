package hostpreset

import (
	"slices"
	"testing"
)

func TestPresets(t *testing.T) {
	names := Names()
	if want := []string{"cargo", "composer", "debian", "github", "gitlab", "go", "gradle", "maven", "npm", "nuget",
		"pypi", "rubygems"}; !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	for _, name := range names {
		if len(Hosts(name)) == 0 {
			t.Errorf("%s has no hosts", name)
		}
	}
	for preset, want := range map[string]string{"npm": "registry.npmjs.org", "pypi": "files.pythonhosted.org"} {
		if !slices.Contains(Hosts(preset), want) {
			t.Errorf("%s: %v", preset, Hosts(preset))
		}
	}
	if Hosts("nothing") != nil || Hosts("#") != nil || Hosts("") != nil {
		t.Error("presets that do not exist have hosts")
	}
	for host, want := range map[string]string{"files.pythonhosted.org": "pypi", "registry.npmjs.org": "npm",
		"example.com": "", "repo.maven.apache.org": "gradle"} {
		if got := With(host); got != want {
			t.Errorf("With(%s) = %q, want %q", host, got, want)
		}
	}
}
