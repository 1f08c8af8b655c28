package builtin

import (
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

func TestExplain(t *testing.T) {
	const nothing = "Exit code 1 of grep means: nothing matched."
	for _, test := range []struct {
		command, output string
		code            int
		want            string
	}{
		{"grep x f", "", 1, nothing},
		{"grep -E 'a|b' f", "", 1, nothing},
		{`grep "a;b && c" f # && make`, "", 1, nothing},
		{"cd d && grep -r x .", "", 1, nothing},
		{"cd d && grep -r x .", "bash: line 1: cd: d: No such file or directory\n", 1, ""},
		{"cd d 2>/dev/null && grep -r x .", "", 1, ""},
		{"cat a && grep x f", "some\n", 1, nothing},
		{"cat a && grep x f", "cat: a: No such file or directory\n", 1, ""},
		{"cat f | grep x", "", 1, nothing},
		{"make | grep x", "", 1, nothing},
		{"set -o pipefail; make | grep x", "", 1, ""},
		{"set -o pipefail; grep x f | head -3", "", 1, nothing},
		{"set -e; make; grep x f", "", 1, ""},
		{"make && grep x f", "", 1, ""},
		{"grep x f || grep y f", "", 1, nothing},
		{"grep x f || make", "", 1, ""},
		{"if true; then grep x f; fi", "", 1, nothing},
		{"if true; then grep x f; else make; fi", "", 1, ""},
		{"for f in a b; do grep x $f; done", "", 1, nothing},
		{"case $x in a) grep x f ;; *) true ;; esac", "", 1, nothing},
		{"(grep x f)", "", 1, nothing},
		{"{ grep x f; } > out", "", 1, nothing},
		{"LC_ALL=C timeout -k 1 5 grep x f", "", 1, nothing},
		{"command grep x f", "", 1, nothing},
		{"time grep x f", "", 1, nothing},
		{"n=$(grep -c x f)", "", 1, nothing},
		{"export n=$(grep -c x f); false", "", 1, ""},
		{`bash -c "grep x f"`, "", 1, nothing},
		{`bash -c "make"`, "", 1, ""},
		{"! grep -q x f", "", 1, "Exit code 1 of ! means: the command after it succeeded."},
		{"/usr/bin/diff a b", "", 1, "Exit code 1 of diff means: the files differ."},
		{"[ -e f ]", "", 1, "Exit code 1 of [ means: the condition is false."},
		{"[[ a == b ]]", "", 1, "Exit code 1 of [[ means: the condition is false."},
		{"((0))", "", 1, "Exit code 1 of (( means: the result is zero."},
		{"command -v node", "", 1, "Exit code 1 of command -v means: it was not found."},
		{"git -C d grep -n x", "", 1, "Exit code 1 of git grep means: nothing matched."},
		{"git diff --quiet", "", 1, "Exit code 1 of git diff means: there are differences."},
		{"git diff", "", 1, ""},
		{"git push", "", 1, ""},
		{"git config user.name", "", 1, "Exit code 1 of git config means: it is not set."},
		{"git config badkey x", "error: key does not contain a section: badkey\n", 1, ""},
		{"find . -name x", "find: './d': Permission denied\n", 1, "Exit code 1 of find means: some directories could not be read, or what -exec ran did not succeed."},
		{"find d -delete", "find: cannot delete 'd/e': Permission denied\n", 1, ""},
		{"find . -name '*.go' | xargs grep x", "", 123, "Exit code 123 of xargs means: grep exited with 1, of some of the files."},
		{"find . -name '*.go' | xargs rm", "", 123, ""},
		{"grep x f", "", 123, ""},
		{"grep x f", "", 2, ""},
		{"sudo grep x f", "", 1, ""},
		{"timeout 60 go test ./...", "", 1, ""},
		{"nice make test", "", 1, ""},
		{"env CI=1 npm test", "", 1, ""},
		{"timeout -s KILL 5 grep x f", "", 1, ""},
		{"ls | xargs go test", "", 123, ""},
		{"ls | xargs -n 1 -I {} grep x {}", "", 123, "Exit code 123 of xargs means: grep exited with 1, of some of the files."},
		{"env A=1 nice -n 5 grep x f", "", 1, nothing},
		{"timeout 5", "", 1, ""},
		{"$tool x f", "", 1, ""},
		{"grep x f; exit 1", "", 1, ""},
		{"grep x f | wc -l; make", "", 1, ""},
		{"make", "", 1, ""},
		{"grep x f\nfalse", "", 1, ""},
		{"grep 'x", "", 1, ""},
		{"", "", 1, ""},
	} {
		r := &shell.Result{Shown: shell.Shown{Text: test.output}, ExitCode: test.code}
		if got := explain(guard.NewExec(test.command, guard.Path{}), r); got != test.want {
			t.Errorf("%q, exit code %d: %q, want %q", test.command, test.code, got, test.want)
		}
	}
	if explain(guard.NewExec("grep x f", guard.Path{}), &shell.Result{ExitCode: 1, TimedOut: true}) != "" {
		t.Error("a timeout was explained away")
	}
}
