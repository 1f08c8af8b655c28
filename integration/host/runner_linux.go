package host

import (
	"os"
	"path/filepath"
	"testing"
)

// NewRunner is a person whose workspace has rules, in a machine that can contain a whole agent.
func NewRunner(t *testing.T) Person {
	t.Helper()
	p := NewPerson(t)
	Must(t, os.MkdirAll(filepath.Join(p.Project, ".toolhost"), 0o755))
	Must(t, os.MkdirAll(filepath.Join(p.Home, ".ssh"), 0o700))
	for name, text := range map[string]string{
		filepath.Join(p.Project, ".env"):                    "SECRET=1\n",
		filepath.Join(p.Project, "kept.txt"):                "kept\n",
		filepath.Join(p.Project, "Makefile"):                "wipe:\n\t-rm kept.txt\n\t-python3 -c 'import os; os.system(\"rm kept.txt\")'\n",
		filepath.Join(p.Project, ".toolhost/toolhost.json"): `{"permissions":{"deny":["Read(.env)","Bash(rm:*)"],"ask":["Bash(git push:*)"]}}`,
		filepath.Join(p.Home, ".ssh/id_ed25519"):            "SECRET-key\n",
		filepath.Join(p.Home, ".claude/settings.json"):      "{}\n",
		filepath.Join(p.Home, "state/toolhost/secret"):      "",
	} {
		Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		if text != "" {
			Must(t, os.WriteFile(name, []byte(text), 0o600))
		}
	}
	if out, ok := p.Run(t, nil, Binary, "run", "--", "true"); !ok {
		t.Skipf("no agent can be contained here: %s", out)
	}
	return p
}
