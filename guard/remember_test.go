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
		{"what keeps asking", []Part{ask("run make"), {What: "write /a/.git/config", Action: Ask, Firm: true}}, nil},
		{"what cannot be decided", []Part{{What: "run eval $x", Action: Ask, Rule: RuleUndecidable}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Verdict{Parts: test.parts}.AllowRules()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
