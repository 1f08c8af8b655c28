package builtin

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"toolhost/builtin/internal/shell"
	"toolhost/guard/sandbox/gitconfig"
)

// A spot is where a command runs: in a cell, or on the host.
type spot struct {
	runner *shell.Runner
	cell   *cell
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
	c, err := env.Box.cells.enter(ctx, env.Principal, env.Policy)
	if err != nil {
		return spot{}, fmt.Errorf("its sandbox could not be started: %w", err)
	}
	s := spot{runner: c.runner, cell: c, box: env.Box}
	s.settle = sync.OnceValue(settler(c, env.Policy.Roots()))
	s.leave = func() {
		for _, note := range s.settle() { // the end of a task has no result that could tell it
			env.Box.log.Warn(note)
		}
		env.Box.cells.leave(c)
	}
	return s, nil
}

// onHost is the place of a command that nothing contains; the excuse tells why, where it could be contained.
func onHost(env *Env, excuse string) (spot, error) {
	runner, err := env.Box.shell.get(env.Policy.Environment())
	return spot{runner: runner, box: env.Box, excuse: excuse, leave: func() {}}, err
}

// settler notes what a command must not leave behind, and returns what takes it away again and says so: a
// protected path that did not exist before, and git settings that execute something.
func settler(c *cell, roots []string) func() []string {
	var git []*gitconfig.Guard
	for _, root := range roots {
		if g, err := gitconfig.NewGuard(root); err == nil { // where we cannot look, a command without our rights cannot write
			git = append(git, g)
		}
	}
	return func() []string {
		var notes []string
		found, err := c.box.Expel()
		for _, f := range found {
			notes = append(notes, fmt.Sprintf("%s is protected: what the command put there was moved to %s.", f.Path, f.Moved))
		}
		if err != nil {
			notes = append(notes, err.Error())
		}
		for _, g := range git {
			removed, err := g.Clean()
			for _, r := range removed {
				notes = append(notes, removal(r))
			}
			if err != nil {
				notes = append(notes, err.Error())
			}
		}
		return notes
	}
}

// removal says what was done about a git setting.
func removal(r gitconfig.Removed) string {
	why := strings.TrimSuffix(r.Why, ".")
	if r.Key == "" {
		return fmt.Sprintf("The file %s was put back as it was before the command: %s.", r.File, why)
	}
	return fmt.Sprintf("The setting %s was taken out of %s: %s.", r.Key, r.File, why)
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
	if !s.cell.policy.Containment().Denies {
		s.box.admitted.Do(func() { all = append(all, halfContained) })
	}
	for _, r := range s.cell.box.Refused() {
		all = append(all, fmt.Sprintf("The sandbox refused the host %s: %s. A person can allow it in sandbox.network.allowedDomains.", r.Host, strings.TrimSuffix(r.Why, ".")))
	}
	return all
}
