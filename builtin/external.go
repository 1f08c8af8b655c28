package builtin

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/toolhost/toolhost/guard"
)

// External completes the description d of a tool that is not declared in this package: its arguments go to run
// as they came, once they are known to be one JSON object. What such a tool does is not known, so that an allow
// rule on its name or a person must permit each call. It runs alone in its scope.
func External(d Def, run func(ctx context.Context, env *Env, args json.RawMessage) (Result, error)) *Def {
	return Foreign(d, false, func(_ context.Context, env *Env, args json.RawMessage) (Plan, error) {
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.CallTool{}}},
			Run:    func(ctx context.Context) (Result, error) { return run(ctx, env, args) },
		}, nil
	})
}

// Foreign is [External] for a tool that says itself what a call would do. Concurrent says that calls may run
// concurrently with others that may.
func Foreign(d Def, concurrent bool, plan func(ctx context.Context, env *Env, args json.RawMessage) (Plan, error)) *Def {
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
