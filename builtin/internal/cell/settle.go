package cell

import (
	"fmt"
	"strings"

	"toolhost/guard/sandbox/gitconfig"
)

// Settler notes what a command must not leave behind, and returns what takes it away again and says so: a
// protected path that did not exist before, and git settings that execute something.
func (c *Cell) Settler(roots []string) func() []string {
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

// Refused tells which hosts commands were refused since the last call, and what can be done about it.
func (c *Cell) Refused() []string {
	var all []string
	for _, r := range c.box.Refused() {
		all = append(all, fmt.Sprintf("The sandbox refused the host %s: %s. A person can allow it in sandbox.network.allowedDomains.", r.Host, strings.TrimSuffix(r.Why, ".")))
	}
	return all
}
