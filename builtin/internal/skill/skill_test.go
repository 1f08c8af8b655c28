package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoad: a faulty skill is left out with the reason, and the others remain.
func TestLoad(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, members string) {
		t.Helper()
		file := filepath.Join(dir, name, File)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("---\nname: "+name+"\ndescription: d\n"+members+"---\nText.\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", "metadata:\n  version: 1\n  stars: '*'\n")
	write("number", "x: .nan\n")
	write("alias", "a: &a [1]\nb: [*a, *a]\n")
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "linked")); err != nil {
		t.Skip(err)
	}
	all, wrong := Load([]Source{{Prefix: "user", Dir: dir}}, func(string) bool { return true })
	if len(all) != 1 || all[0].Path != "user/good" ||
		string(all[0].Members) != `{"description":"d","metadata":{"stars":"*","version":1},"name":"good"}` {
		t.Errorf("loaded: %+v", all)
	}
	for name, says := range map[string]string{"linked": "symbolic link", "number": "NaN", "alias": "alias"} {
		if wrong == nil || !strings.Contains(wrong.Error(), filepath.Join(dir, name)+": the skill is left out: ") ||
			!strings.Contains(wrong.Error(), says) {
			t.Errorf("%s: %v", name, wrong)
		}
	}
}
