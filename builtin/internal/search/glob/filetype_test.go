package glob

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	for _, tt := range []struct {
		names []string
		file  string
		want  bool
	}{
		{[]string{"go"}, "a.go", true}, {[]string{"go"}, "a.py", false}, {[]string{"py", "go"}, "a.py", true},
		{[]string{"make"}, "Makefile", true}, {[]string{"all"}, "a.rs", true}, {[]string{"c"}, "x.H", true},
		// names of people, and extensions
		{[]string{"javascript"}, "a.mjs", true}, {[]string{"TypeScript"}, "a.tsx", true}, {[]string{"golang"}, "a.go", true},
		{[]string{"C++"}, "a.cc", true}, {[]string{"shell"}, "a.sh", true}, {[]string{"Python"}, "a.py", true}, {[]string{"text"}, "a.txt", true},
		{[]string{"tsx"}, "a.tsx", true}, {[]string{"tsx"}, "a.ts", false}, {[]string{".rs"}, "a.rs", true}, {[]string{"*.rb"}, "a.rb", true},
		{[]string{"yml"}, "a.yml", true}, {[]string{"yml"}, "a.yaml", false}, {[]string{"JSON"}, "a.json", true},
		{[]string{"dockerfile"}, "Dockerfile", true}, {[]string{"c#"}, "a.cs", true}, {[]string{"kt"}, "a.kt", true},
	} {
		s, err := Select(tt.names)
		if err != nil || s.Match(tt.file) != tt.want {
			t.Errorf("%v on %s: want %v (%v)", tt.names, tt.file, tt.want, err)
		}
	}
	for name, hint := range map[string]string{"python3": "python", "": "glob", "zz9": "*.zz9"} {
		_, err := Select([]string{name})
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), hint) {
			t.Errorf("Select(%q): %v, want a hint of %s", name, err, hint)
		}
	}
}

// TestAliases: the other names are no types of ripgrep's, and lead to one.
func TestAliases(t *testing.T) {
	types := load()
	for name, of := range aliases {
		if types[name] != nil || types[of] == nil {
			t.Errorf("%s: %s", name, of)
		}
	}
}

// TestTable compares the list with that of the ripgrep it was taken from.
func TestTable(t *testing.T) {
	rg := os.Getenv("TOOLHOST_RG")
	if rg == "" {
		rg = "rg"
	}
	version, err := exec.Command(rg, "--version").Output()
	if err != nil || !strings.HasPrefix(string(version), "ripgrep "+Version) {
		t.Skip("no ripgrep " + Version + " to compare with")
	}
	list, err := exec.Command(rg, "--no-config", "--type-list").Output()
	if err != nil || string(list) != table {
		t.Errorf("types.txt is not the list of ripgrep %s (%v)", Version, err)
	}
}
