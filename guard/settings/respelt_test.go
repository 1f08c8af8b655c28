package settings

import (
	"strings"
	"testing"
)

// TestRespeltKeys writes rules under keys that are not spelt as known ones: what takes rights away holds, with a warning that names
// the rule, and what gives some does not.
func TestRespeltKeys(t *testing.T) {
	for _, text := range []string{
		`{"Permissions":{"deny":["Read(.env)"],"allow":["Bash"],"defaultMode":"bypassPermissions"}}`,
		`{"permissions":{"Deny":["Read(.env)"],"Allow":["Bash"]}}`,
		`{"PERMISSIONS":{"DENY":"Read(.env)","additionaldirectories":["/"]}}`,
		"{\"permissi\u043ens\":{\"deny\":[\"Read(.env)\"]}}",
		"{\"permissions\u200b\":{\"deny\":[\"Read(.env)\"]}}",
		`{"Permissions":{"deny":["Read(.env)"]},"Env":{"A":"b"},"Hooks":{"PreToolUse":[]},"SandBox":{"Enabled":false,"network":{"allowedDomains":["*"]}}}`,
	} {
		p := newPlace(t)
		p.write(userFile, text)
		s := Load(p.cfg)
		if len(s.Deny) != 1 || s.Deny[0].Text != "Read(.env)" {
			t.Errorf("%s: denied is %v", text, s.Deny)
		}
		if len(s.Allow)+len(s.Env)+len(s.Hooks)+len(s.AdditionalDirectories)+len(s.Sandbox.Network.AllowedDomains) != 0 || s.DefaultMode != ModeAcceptEdits || !s.Sandbox.Enabled {
			t.Errorf("%s: it gives rights: %+v", text, s)
		}
		var said strings.Builder
		for _, w := range s.Warnings {
			said.WriteString(w.String() + "\n")
		}
		if !strings.Contains(said.String(), "Read(.env)") {
			t.Errorf("%s: no warning names the rule: %s", text, said.String())
		}
	}
}
