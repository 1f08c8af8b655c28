package builtin

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/cell"
	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// A spot is where a command runs: in a cell, or on the host.
type spot struct {
	runner *shell.Runner
	cell   *cell.Cell
	box    *Toolbox
	excuse string // why it is not in a cell, when that was asked for
	leave  func() // gives the place up when the command has ended
	// refused tells which hosts were refused since the command began; nil where none are.
	refused func() []string
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
	s := spot{runner: c.Runner(), cell: c, box: env.Box, refused: c.Refusing()}
	s.settle = sync.OnceValue(env.Box.cells.Settler())
	s.leave = func() {
		for _, note := range s.settle() { // nobody may ask how a task has ended
			env.Box.log.Warn(note)
		}
		env.Box.cells.Leave(c)
	}
	return s, nil
}

// onHost is the place of a command that nothing contains; the excuse tells why, where it could be contained.
func onHost(env *Env, excuse string) (spot, error) {
	runner, err := env.Box.shell.get(env.Policy)
	return spot{runner: runner, box: env.Box, excuse: excuse, leave: func() {}}, err
}

// news tells which hosts were refused so far.
func (s spot) news() []string {
	if s.refused == nil {
		return nil
	}
	return s.refused()
}

// admits tells that the place contains the command only in part, or not at all, where that was not told yet.
func (s spot) admits() string {
	once := ""
	switch {
	case s.cell == nil && s.excuse != "":
		return s.excuse
	case s.cell == nil:
		s.box.admitted.Do(func() { once = uncontained })
	case !s.cell.Denies():
		s.box.admitted.Do(func() { once = halfContained })
	}
	return once
}

// remarks tell what the place had to do with the result of a command that was started in dir: what was taken away again, and the
// files and hosts that the sandbox refused.
func (s spot) remarks(r *shell.Result, dir string) []string {
	if s.cell == nil {
		return nil
	}
	if r.Dir != "" {
		dir = r.Dir
	}
	return slices.Concat(s.settle(), s.cell.Barred(r.Text, dir), s.refused())
}
