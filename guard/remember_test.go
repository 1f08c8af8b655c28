package guard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAllowRules(t *testing.T) {
	ask := func(what string) Part { return Part{What: what, Action: Ask, Rule: RuleBoundary} }
	tests := []struct {
		name  string
		parts []Part
		want  []string
	}{
		{"a command", []Part{ask("run make test")}, []string{"Bash(make test)"}},
		{"what is allowed needs no rule", []Part{{What: "run ls", Action: Allow}, ask("run make")}, []string{"Bash(make)"}},
		{"files", []Part{ask("read /a/b"), ask("write /a/c d")}, []string{"Read(//a/b)", `Edit(//a/c\ d)`}},
		{"a name full of wildcards stands for itself", []Part{ask(`read /a/[*]?`)}, []string{`Read(//a/\[\*\]\?)`}},
		{"the same twice", []Part{ask("run make"), ask("run make")}, []string{"Bash(make)"}},
		{"a command that would be a wildcard", []Part{ask("run rm *")}, nil},
		{"a command behind another", []Part{ask("run timeout 5 make")}, []string{"Bash(timeout 5 make)"}},
		{"an interpreter", []Part{ask("run python3 x.py")}, []string{"Bash(python3 x.py)"}},
		{"quoted words", []Part{ask("run git commit -m do not rm")}, []string{"Bash(git commit -m do not rm)"}},
		{"a variable, which is something else the next time", []Part{ask("run rm $f")}, nil},
		{"a substitution", []Part{ask("run rm $(cat f)")}, nil},
		{"a wildcard of one character", []Part{ask("run rm a?")}, nil},
		{"what xargs or find fill in", []Part{ask("run rm {}")}, nil},
		{"a separator that was quoted", []Part{ask("run make a; reboot")}, nil},
		{"a redirection that was quoted", []Part{ask("run make a > b")}, nil},
		{"a comment that was quoted", []Part{ask("run make # a")}, nil},
		{"a quote that was quoted", []Part{ask("run make it's")}, nil},
		{"what keeps asking", []Part{ask("run make"), {What: "write /a/.git/config", Action: Ask, Final: true}}, nil},
		{"what a hook asks for", []Part{{What: "run ls", Action: Allow}}, nil},
		{"what cannot be decided", []Part{{What: "run eval $x", Action: Ask, Rule: ruleUndecidable}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, reason := Verdict{Parts: test.parts}.AllowRules()
			if diff := cmp.Diff(test.want, rules); diff != "" {
				t.Error(diff)
			}
			if (reason == "") != (rules != nil) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

func TestNarrowRules(t *testing.T) {
	offered := []string{"Bash(make)", "Read(//data/x)", "WebFetch(domain:a.example)"}
	for _, test := range []struct {
		text string
		want []string // nil: refused
	}{
		{"", offered}, {" \n", offered}, {"Bash(make)", []string{"Bash(make)"}}, {" Read(//data/x)\nBash(make)", []string{"Read(//data/x)", "Bash(make)"}},
		{"Read(//data/x/sub/**)", []string{"Read(//data/x/sub/**)"}}, {"Read(//data/x/../y)", nil}, {"Read(//data/xy)", nil}, {"Read(//data/**)", nil},
		{"Edit(//data/x/y)", nil}, {"Bash(make *)", nil}, {"Bash", nil}, {"Bash(make/)", nil}, {"WebFetch", nil}, {"*", nil}, {"Read(//data/x/a),Read(//)", nil},
		{"Bash(make)\nBash(rm:*)", nil},
	} {
		got, err := NarrowRules(offered, test.text)
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != nil) {
			t.Errorf("%q: %v, %s", test.text, err, diff)
		}
	}
}
