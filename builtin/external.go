package builtin

import (
	"bytes"
	"context"
	"encoding/json"
)

// External completes the description d of a tool that is not declared in this package: its arguments go to plan
// as they came, once they are known to be one JSON object. What such a tool does is not known: its plan has the
// effect [guard.CallTool], so that an allow rule or a person must permit each call. Concurrent says that calls may
// run concurrently with others that may.
func External(d Def, concurrent bool, plan func(ctx context.Context, env *Env, args json.RawMessage) (Plan, error)) *Def {
	d.bind = func(raw json.RawMessage) (*Call, error) {
		given, _, err := object(raw)
		if err != nil {
			return nil, &bindError{Tool: d.Name, Problems: []string{err.Error()}}
		}
		args, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		if given == nil {
			args = json.RawMessage("{}")
		}
		return &Call{
			ConcurrencySafe: concurrent,
			Args:            scalars(given),
			Input:           func() (json.RawMessage, error) { return args, nil },
			plan: func(ctx context.Context, env *Env) (Plan, error) {
				p, err := plan(ctx, env, args)
				p.Intent.Tool = d.Name
				return p, err
			},
		}, nil
	}
	return &d
}

// scalars are the strings, numbers and booleans among the values.
func scalars(given map[string]json.RawMessage) map[string]any {
	all := map[string]any{}
	for name, raw := range given {
		var value any
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
			continue
		}
		if json.Unmarshal(raw, &value) == nil && value != nil {
			all[name] = value
		}
	}
	return all
}
