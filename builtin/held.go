package builtin

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/guard"
)

// seesHeld has a tool work on the files that commands see: the held ones are exchanged in while it looks and while it runs, but
// not while a person is asked. What it writes with a person's consent is known.
func seesHeld(ctx context.Context, env *Env, plan func(context.Context, *Env) (Plan, error)) (Plan, error) {
	leave, err := env.enterHeld()
	if err != nil {
		return Plan{}, err
	}
	p, err := plan(ctx, env)
	leave()
	run := p.Run
	if err != nil || run == nil || env.Runtime == nil {
		return p, err
	}
	p.Run = func(ctx context.Context) (Result, error) {
		leave, err := env.enterHeld()
		if err != nil {
			return Result{}, err
		}
		defer leave()
		result, err := run(ctx)
		for _, e := range p.Intent.Effects {
			w, ok := e.(guard.Write)
			if !ok || err != nil {
				continue
			}
			if err := env.Runtime.baseline.Settle().Know(w.Path.Real()); err != nil {
				env.Runtime.log.Warn("cannot record that a person agreed to a protected file", "file", w.Path.String(), "error", err)
			}
		}
		return result, err
	}
	return p, nil
}

// enterHeld exchanges held files of the roots in, if there are any, and returns what exchanges them out.
func (e *Env) enterHeld() (leave func(), err error) {
	if e.Runtime == nil || e.Policy == nil {
		return func() {}, nil
	}
	keeper := e.Runtime.baseline.Settle()
	dirs := keeper.Holding(e.Policy.Roots())
	if len(dirs) == 0 {
		return func() {}, nil
	}
	c, notes, err := keeper.Begin(dirs, e.Policy.Commands().KeepsChanges())
	if err != nil {
		return nil, fmt.Errorf("the files that are held cannot be looked at: %w", err)
	}
	return func() {
		for _, note := range append(notes, c.End()...) {
			e.Runtime.log.Debug(note)
		}
	}, nil
}
