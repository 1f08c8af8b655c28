package builtin

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

func TestWaitsForKeys(t *testing.T) {
	for command, want := range map[string]string{
		"vi x":                               "vi",
		"vim":                                "vim",
		"vim src/a.go src/b.go":              "vim",
		"/usr/bin/vim x":                     "vim",
		"cd src && vi x":                     "vi",
		"make; cd src; EDITOR=a view x":      "view",
		"watch ls":                           "watch",
		"watch -n 1 'ls -l'":                 "watch",
		"test -e x || vimdiff a b":           "vimdiff",
		"vi $X":                              "vi",
		`vim "$(git ls-files -m)"`:           "vim",
		"vim -R +10 f":                       "vim",
		"vim -d a b":                         "vim",
		"vim +/main f":                       "vim",
		"if true; then vi x; fi":             "vi",
		"if [ -e x ]; then :; else vi x; fi": "vi",
		"for f in *.go; do vi $f; done":      "vi",
		"while sleep 1; do vi f; done":       "vi",
		"case $1 in a) vi f;; esac":          "vi",
		"(cd src; vi x)":                     "vi",
		"{ vi x; }":                          "vi",
		"time vi x":                          "vi",
		"! vi x":                             "vi",
		"vi x | cat":                         "vi",
		"vi x > out 2>&1":                    "vi",
		"git diff | vim -":                   "vim",
		"ls | xargs vi":                      "vi",
		"ls | xargs -n 1 vi -R":              "vi",
		"env A=b nice -n 5 vi x":             "vi",
		"exec rview x":                       "rview",
		"editor x":                           "editor",
		"sh -c 'vi x'":                       "vi",
		"bash -lc 'cd a && watch ls'":        "watch",
		"watch -n1 git status -s":            "watch",
		"watch -dn 5 ls -g":                  "watch",
		"watch --interval 1 ls":              "watch",
		"watch ls > out":                     "watch",

		"vim --version":                       "",
		"vim -es -c wq x":                     "",
		"vim +wq x":                           "",
		"watch":                               "",
		"watch -g ls":                         "",
		"watch --chgexit ls":                  "",
		"watch -n1 -g ls":                     "",
		"echo :wq | vim x":                    "",
		"vim x < keys":                        "",
		"vim x <<< :wq":                       "",
		"timeout 5 watch ls":                  "",
		"timeout 5 vi x":                      "",
		"watch -n 1 -g ls":                    "",
		"watch -n 1":                          "",
		"watch ls | head -20":                 "",
		"cat keys | vi x":                     "",
		"cat keys | (vi x)":                   "",
		"while read f; do vi $f; done < list": "",
		"vim -u test.vim f":                   "",
		"vim --clean -c q f":                  "",
		"command -v vi":                       "",
		"command -v vi vim view":              "",
		"type vi":                             "",
		"env":                                 "",
		"sh -c 'vi -h'":                       "",
		"echo :q | sh -c 'vi x'":              "",
		"if true; then vi x; fi < k":          "",
		"f() { vi x; }; f":                    "",
		"apt-get install vim":                 "",
		"cat editor | view":                   "",
		"which vi vim":                        "",
		"grep -r vi .":                        "",
		"git commit -m 'watch this'":          "",
		"npm run watch":                       "",
		"./watch src":                         "",
		"node_modules/.bin/watch x":           "",
		"vi() { echo $1; }; vi x":             "",
		"watch ls &":                          "",
		"(vi":                                 "",
	} {
		if got := needsTerminal(guard.NewExec(command, guard.Path{})); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

// What a program wrote that missed a terminal is explained where it has failed for that.
func TestTerminalHint(t *testing.T) {
	const git, vim = "error: There was a problem with the editor 'false'.\n", "Vim: Warning: Input is not from a terminal\n"
	for _, tt := range []struct {
		r    shell.Result
		says string
	}{
		{shell.Result{Shown: shell.Shown{Text: git}, ExitCode: 1}, "GIT_SEQUENCE_EDITOR"},
		{shell.Result{Shown: shell.Shown{Text: git}}, ""}, // of a log, perhaps
		{shell.Result{Shown: shell.Shown{Text: vim}, ExitCode: 143, TimedOut: true}, "vim -es"},
		{shell.Result{Shown: shell.Shown{Text: vim}, ExitCode: 1}, ""},
		{shell.Result{Shown: shell.Shown{Text: "a\n"}, ExitCode: 1}, ""},
	} {
		if got := terminalHint(&tt.r); !strings.Contains(got, tt.says) || tt.says == "" && got != "" {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.says)
		}
	}
}
