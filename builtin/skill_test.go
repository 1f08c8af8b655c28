package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard"
)

// TestOtherSkills: a server whose skills have the names of a skill of the user does not get its calls, and is not
// listed for it. An unknown name is answered with no more names than a result holds.
func TestOtherSkills(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: build\ndescription: builds\n---\nOurs.\n"
	if err := os.WriteFile(filepath.Join(dir, "build", "SKILL.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := guard.New(guard.Config{Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	k := Skills{Policy: policy, Sources: []SkillSource{{Prefix: "user", Dir: dir}}, Others: func() []OtherSkill {
		others := []OtherSkill{{"user/build", "takes it", "x://a"}, {"build", "takes it", "x://b"},
			{"s/build", "another", "x://c"}}
		for range 1000 {
			others = append(others, OtherSkill{"s/" + strings.Repeat("x", 1000), "", "x://d"})
		}
		return others
	}}
	for _, name := range []string{"user/build", "build"} {
		if s, other, err := k.find(name); err != nil || other != "" || s.Path != "user/build" {
			t.Errorf("%s: %q %q, %v", name, s.Path, other, err)
		}
	}
	if _, other, err := k.find("s/build"); err != nil || other != "x://c" {
		t.Errorf("s/build: %q, %v", other, err)
	}
	if _, _, err := k.find("none"); err == nil || !strings.Contains(err.Error(), "there are: user/build, s/build, s/x") || len(err.Error()) > 2*maxSkillNames {
		t.Errorf("none: %.200v", err)
	}
	if text := k.Describe(); !strings.HasPrefix(text, "\n- build: builds\n- s/build: another\n") ||
		strings.Contains(text, "takes it") {
		t.Errorf("the description: %q", text)
	}
}
