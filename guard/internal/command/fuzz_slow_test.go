//go:build slow

package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestHostile repeats what the parser or the expansion once took seconds or
// minutes for, up to the longest text that is analysed. It has no limit of its
// own: what is not bounded does not end.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	for _, part := range []string{
		"{,}", "{a,b}", "{a,b} ", "{1..9}", "{1..9", "~{a,}", "~{", "{", "((", "(((", "$((", "$(((", "$(", "`", "\"$(", "((a;", "[[ (", "[[ -n $(", "if ", "<<E ", "<<A\n$(",
		"case x in (", "f(){ ", "${a:-", "${a[", "x=${y", "$[", "<(", "a=(", "a[", "a[$(", "$'", "'", "\\", "# \\\n", "! ", "time ", "coproc ", "for((", "while ", "until ",
		"env ", "sudo -u ", "xargs ", "find -exec ", "eval ", "bash -c ", "<<-0& \n1", "[](", "$((1))", "$(a)",
	} {
		a := Analyze(strings.Repeat(part, MaxLength/len(part)))
		if slices.Contains(a.Undecidable, failed) {
			t.Errorf("%q: %s", part, failed)
		}
	}
	for _, part := range []string{"$(", "`", "${a:-", "$((a))", "$x", "\\\n", "'", "E \n", "a\n", "<<F\n"} {
		for _, text := range []string{"cat <<E\n%s\nE\n", "cat <<'E'\n%s\nE\n", "bash <<'E'\n%s\nE\n",
			"python3 - <<'E'\n%s\nE\n", "cat <<%[1]s"} {
			Analyze(fmt.Sprintf(text, strings.Repeat(part, (MaxLength-100)/len(part))))
		}
	}
}
