package pattern

import "testing"

func TestAcceptReturns(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		breaks     bool
	}{
		{`a\nb`, `a(?:\r?\n)b`, true},
		{"a\nb", `a(?:\r?\n)b`, true},
		{`a\n+`, `a(?:\r?\n)+`, true},
		{`a$\nb`, `a(?:\r?$)(?:\r?\n)b`, true},
		{`a\\n`, `a\\n`, false},
		{`[^\n]`, `[^\n]`, false},
		{`[]$\n]\n`, `[]$\n](?:\r?\n)`, true},
		{`[^]\n]$`, `[^]\n](?:\r?$)`, false},
		{`a\r\nb`, `a\r\nb`, false},
		{`a\s+b`, `a\s+b`, false},
		{`\[\n`, `\[(?:\r?\n)`, true},
	} {
		if got, breaks := AcceptReturns(tt.text); got != tt.want || breaks != tt.breaks {
			t.Errorf("%q: %q, %v; want %q, %v", tt.text, got, breaks, tt.want, tt.breaks)
		}
		if _, err := Compile(tt.want, Options{Multiline: true}); err != nil {
			t.Errorf("%q: %v", tt.want, err)
		}
	}
}
