package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/toolhost/toolhost/builtin"
)

// A maskEntry is a variable in "env" for which the process of a server gets a sentinel instead of the value: {"mask":
// ["api.github.com"]}.
type maskEntry struct {
	// Hosts get the value. Each is one of network.allowedDomains.
	Hosts []string `json:"mask"`
	// Value is the value, with variables of the host; "": the variable of the same name.
	Value string `json:"value,omitempty"`
}

// UnmarshalJSON separates masks from the other variables.
func (e *Entry) UnmarshalJSON(text []byte) error {
	type plain Entry
	in := struct {
		*plain
		Env map[string]json.RawMessage `json:"env"`
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	for name, raw := range in.Env {
		var value string
		if err := json.Unmarshal(raw, &value); err == nil {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = value
			continue
		}
		var mask maskEntry
		if err := json.Unmarshal(raw, &mask); err != nil || len(mask.Hosts) == 0 {
			return fmt.Errorf(`its variable %s is neither a string nor an object such as {"mask": ["api.example.com"]}`,
				name)
		}
		if e.masks == nil {
			e.masks = map[string]maskEntry{}
		}
		e.masks[name] = mask
	}
	return nil
}

// checkMasks returns why the masks of the entry cannot be used, or "".
func (e *Entry) checkMasks() string {
	for _, name := range slices.Sorted(maps.Keys(e.masks)) {
		switch {
		case e.Trust == Project:
			return fmt.Sprintf("it masks the variable %s, which counts in your own configuration only: a mask spends your "+
				"credential", name)
		case !e.sandboxed() || e.Type != typeStdio:
			return fmt.Sprintf("it masks the variable %s, and only a process in a sandbox has sentinels", name)
		}
		for _, host := range e.masks[name].Hosts {
			if !slices.Contains(e.domains(), host) {
				return fmt.Sprintf("it sends the variable %s to %s, which is not in its network.allowedDomains", name,
					host)
			}
		}
	}
	return ""
}

// serverMasks returns the masked variables of a server.
func serverMasks(e *Entry) (list []builtin.ServerMask) {
	for _, name := range slices.Sorted(maps.Keys(e.masks)) {
		mask := e.masks[name]
		if mask.Value == "" {
			mask.Value = os.Getenv(name)
		}
		list = append(list, builtin.ServerMask{Variable: name, Value: mask.Value, Hosts: mask.Hosts})
	}
	return list
}
