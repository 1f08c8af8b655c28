package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever we accept git reads in the same way.
func FuzzGitConfig(f *testing.F) {
	git, err := exec.LookPath("git")
	if err != nil {
		f.Skip("no git to compare with")
	}
	for _, s := range []string{
		"[a]\nb=c\n", "[a \"B.c\"]\n\tD = \"x\\n\" y ; z\n", "[a]b\n", "[a.B]\nc = 1 \\\n 2\n", "\xef\xbb\xbf[a]\nb=\n",
		"[a]\nb = x \\\\\n", "[a]\r\nb = c\r\n", "[a \"\\\"\"]\nb=\"#\"#c\n", "[a]\nb = c \"  \" d  \n", "[a]\nb=c\\",
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := Parse([]byte(text))
		if err != nil {
			return
		}
		path := filepath.Join(dir, "config")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "-f", path, "--no-includes", "--null", "--name-only", "--list").Output()
		if err != nil {
			return // stricter than we are: git executes nothing of it
		}
		var got, want []string
		for _, s := range settings {
			got = append(got, s.Key)
		}
		if len(out) > 0 {
			want = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, git has %q", text, got, want)
		}
	})
}
