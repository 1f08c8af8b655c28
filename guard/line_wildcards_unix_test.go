//go:build unix

package guard

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// globbed is what the guard takes the words of a line for.
func globbed(t *testing.T, dir, options, pattern string) []string {
	t.Helper()
	p := policy(t, dir, testRules(dir, ""), uncontained)
	text := options + "echo " + pattern
	l := &commandLine{data: p.data, text: text, analysis: command.Analyze(text)}
	word := l.analysis.Commands[len(l.analysis.Commands)-1].Args[1]
	if !word.Glob {
		t.Fatalf("%s is no wildcard", pattern)
	}
	found, err := l.expand(word, resolve(t, p, "."), maxGlob)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range found {
		if found[i], err = filepath.Rel(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestWildcardsAgainstBash lets bash expand what the guard expands: bash must find
// nothing that the guard does not.
func TestWildcardsAgainstBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	dir := realTemp(t)
	tree(t, dir, "link", "Link", "lnk", ".hidden/x", "a/b/c", "a/.d/e", "a-b", "a]b", "[x]y", "über", "sub/deep/z", "out -> a", "sub/out -> ../a", "x*y", "-n")
	for _, options := range []string{"", "shopt -s dotglob; ", "shopt -s nocaseglob; ", "shopt -s globstar; ", "shopt -s globstar dotglob; "} {
		for _, pattern := range []string{
			"*", "l*", "?ink", "[l]ink", "[!x]ink", "[^x]ink", "[[:lower:]]ink", "[[=l=]]ink", "[[.l.]]ink", "[a-z]*", "[]a]*", "[!]a]*", "a[]]b", "a[!a]b", "*/", "*/b", "*/*/*",
			"s*/../l*", "out/*", "*/b/../../l*", ".*", ".*/x", "./*", ".//s*//d*", "**", "**/z", "**/c", "sub/**", "a/**/c", "[x]*", "'[x]'*", "\\[x*", "?ber", "????", "L*", "A/*", "x\\**", "a[-]b", "a[--]b", "[l", "*[", "{l,a}*", "~+/*",
		} {
			text := options + "echo " + pattern
			a := command.Analyze(text)
			if word := a.Commands[len(a.Commands)-1].Args[1]; !word.Glob {
				continue // judged in another way
			}
			out, err := exec.Command(bash, "-c", "cd \"$1\"; "+options+"shopt -s nullglob; printf '%s\\0' "+pattern, "_", dir).Output()
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got := globbed(t, dir, options, pattern)
			for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
				if name = filepath.Clean(name); name != "." && !slices.Contains(got, name) && !strings.HasPrefix(pattern, "{") {
					t.Errorf("%s: bash finds %q, the guard %q", text, name, got)
				}
			}
		}
	}
}

// TestWildcardsAreNarrow holds that what is no match is none where shells agree.
func TestWildcardsAreNarrow(t *testing.T) {
	dir := realTemp(t)
	tree(t, dir, "link", "lint", ".hidden", "a/b", "a/c")
	for pattern, want := range map[string]string{
		"l*k": "link", "*": "a link lint", "l?n[tk]": "link lint", "a/*": "a/b a/c", "*/c": "a/c", "x*": "", ".h*": ".hidden", "*.md": "", "a*/x": "", "link*/x": "",
	} {
		if got := strings.Join(globbed(t, dir, "", pattern), " "); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}
