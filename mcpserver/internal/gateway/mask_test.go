package gateway

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestMaskedVariables: a mask counts from a person's configuration only, in a sandbox, for hosts that the server may reach.
func TestMaskedVariables(t *testing.T) {
	for _, tt := range []struct {
		entry   string
		trust   Trust
		refused string // "": it can be used
	}{
		{`{"command":"x","network":{"allowedDomains":["a.example"]},"env":{"A":"b","T":{"mask":["a.example"]}}}`, User, ""},
		{`{"command":"x","network":{"allowedDomains":["a.example"]},"env":{"T":{"mask":["a.example"],"value":"${HOME}"}}}`, Managed, ""},
		{`{"command":"x","network":{"allowedDomains":["a.example"]},"env":{"T":{"mask":["a.example"]}}}`, Project, "your own configuration only"},
		{`{"command":"x","network":{"allowedDomains":["a.example"]},"env":{"T":{"mask":["b.example"]}}}`, User, "not in its network.allowedDomains"},
		{`{"command":"x","env":{"T":{"mask":["a.example"]}}}`, User, "not in its network.allowedDomains"},
		{`{"command":"x","sandbox":false,"env":{"T":{"mask":["a.example"]}}}`, User, "only a process in a sandbox"},
		{`{"command":"x","env":{"T":{"mask":[]}}}`, User, "neither a string nor an object"},
		{`{"command":"x","env":{"T":7}}`, User, "neither a string nor an object"},
	} {
		entries, problems := parseEntries(map[string]json.RawMessage{"s": json.RawMessage(tt.entry)},
			"f.json", tt.trust)
		e := entries[0]
		if len(problems) > 0 || tt.refused == "" && e.Refused != "" || !strings.Contains(e.Refused, tt.refused) {
			t.Errorf("%s: %q, %v", tt.entry, e.Refused, problems)
		}
		if tt.refused == "" {
			if e.masks["T"].Hosts[0] != "a.example" || strings.Contains(strings.Join(serverEnv(e), " "), "T=") {
				t.Errorf("%s: masks %v, variables %q", tt.entry, e.masks, serverEnv(e))
			}
			plain := *e
			plain.masks = nil
			if e.Hash() == plain.Hash() {
				t.Errorf("%s: the mask is not part of its hash", tt.entry)
			}
		}
	}
}
