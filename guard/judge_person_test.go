//go:build unix

package guard

import "testing"

// Commands of the host that only a person runs are refused in every form of a command, and no others.
func TestPersonCommands(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "mode bypassPermissions"), contained)
	for text, denied := range map[string]bool{
		"toolhost trust":                               true,
		"/usr/local/bin/toolhost trust -y":             true,
		"toolhost --root /ws trust":                    true,
		"toolhost trust --root=/ws":                    true,
		"toolhost allow 'Bash(rm *)'":                  true,
		"toolhost allow-host example.org":              true,
		"toolhost ask X; true":                         true,
		"cd x && toolhost deny Read":                   true,
		"toolhost mode auto":                           true,
		"toolhost undo":                                true,
		"toolhost undo --yes --since 1h":               true,
		"toolhost rewind 1":                            true,
		"toolhost rules --remove 1":                    true,
		"toolhost rules --remove=1":                    true,
		"bash -c 'toolhost trust'":                     true,
		"setsid toolhost trust &":                      true,
		"env -i toolhost trust":                        true,
		"echo $(toolhost trust)":                       true,
		"t\\oolhost tru\"st\"":                         true,
		"toolhost token add x":                         true,
		"toolhost token --tokens f revoke x":           true,
		"toolhost install claude-code":                 true,
		"toolhost uninstall --all":                     true,
		"toolhost token list":                          false,
		"toolhost install --list":                      false,
		"toolhost rules":                               false,
		"toolhost trust --list":                        false,
		"toolhost history":                             false,
		"toolhost check Bash '{\"command\":\"undo\"}'": false,
		"toolhost trust --list=false -y .":             true,
		"toolhost allow --help=false 'Bash(rm *)'":     true,
		"toolhost undo --help":                         false,
		"toolhost undo --list":                         true,
		"toolhost allow --list X":                      true,
		"toolhost mcp add s evil --help":               true,
		"toolhost mcp add s evil --list":               true,
		"toolhost mcp add accept evil --help":          true,
		"toolhost mcp add -e --help s evil":            true,
		"toolhost mcp --root --help add s evil":        true,
		"toolhost mcp add --help":                      false,
		"toolhost mcp --help add":                      false,
		"toolhost mcp list --json":                     false,
		"toolhost help undo":                           false,
		"echo toolhost trust":                          false,
		"git commit -m 'toolhost trust'":               false,
	} {
		v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: text, Dir: resolve(t, p, ".")}}})
		if got := v.Action == Deny && v.Rule == rulePersonOnly; got != denied {
			t.Errorf("%s: %s by %s: %s", text, v.Action, v.Rule, v.Reason)
		}
	}
}
