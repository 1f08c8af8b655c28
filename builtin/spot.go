package builtin

import (
	"context"
	"fmt"
	"sync"

	"toolhost/builtin/internal/cell"
	"toolhost/builtin/internal/shell"
)

// A spot is where a command runs: in a cell, or on the host.
type spot struct {
	runner *shell.Runner
	cell   *cell.Cell
	box    *Toolbox
	excuse string // why it is not in a cell, when that was asked for
	leave  func() // gives the place up when the command has ended
	// settle takes away what the command must not leave behind, once, and tells it as often as it is called.
	settle func() []string
}

// place finds where a command runs. It was judged for exactly that place.
func place(ctx context.Context, env *Env, in BashInput) (spot, error) {
	switch {
	case !env.Policy.Containment().Writes:
		return onHost(env, "")
	case in.Unsandboxed:
		return onHost(env, "The command ran outside the sandbox, as it was allowed to.")
	case env.Policy.Excluded(in.Command):
		return onHost(env, "The command ran outside the sandbox, as sandbox.excludedCommands says.")
	}
	c, err := env.Box.cells.Enter(ctx, env.Principal, env.Policy)
	if err != nil {
		return spot{}, fmt.Errorf("its sandbox could not be started: %w", err)
	}
	s := spot{runner: c.Runner(), cell: c, box: env.Box}
	s.settle = sync.OnceValue(c.Settler(env.Policy.Roots()))
	s.leave = func() {
		for _, note := range s.settle() { // the end of a task has no result that could tell it
			env.Box.log.Warn(note)
		}
		env.Box.cells.Leave(c)
	}
	return s, nil
}

// onHost is the place of a command that nothing contains; the excuse tells why, where it could be contained.
func onHost(env *Env, excuse string) (spot, error) {
	runner, err := env.Box.shell.get(env.Policy.Environment())
	return spot{runner: runner, box: env.Box, excuse: excuse, leave: func() {}}, err
}

// remarks tell what the place had to do with the result: hosts that the sandbox refused, or that there is none.
func (s spot) remarks() []string {
	if s.cell == nil {
		if s.excuse != "" {
			return []string{s.excuse}
		}
		var all []string
		s.box.admitted.Do(func() { all = append(all, uncontained) })
		return all
	}
	all := s.settle()
	if !s.cell.Denies() {
		s.box.admitted.Do(func() { all = append(all, halfContained) })
	}
	return append(all, s.cell.Refused()...)
}
