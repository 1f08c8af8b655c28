package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// originals returns the places that roots in a worktree stand for, and adds them to the bounds that rules are
// compiled for: the roots and additional directories of the workspace, which are readable, and the work tree. None is
// writable.
func (cfg Config) originals(c *rules.Compiler, more []settings.Entry) (all, readable []pathname.Place) {
	if cfg.CopyOf == "" || len(cfg.Originals) == 0 {
		return nil, nil
	}
	c.Copy, c.CopyOf = c.Place(cfg.Copy), c.Place(cfg.CopyOf)
	old := &rules.Compiler{Home: c.Home}
	for _, dir := range cfg.Originals {
		old.Roots = append(old.Roots, c.Place(dir))
	}
	readable = append(old.Roots, additional(old, more)...)
	c.Warnings = append(c.Warnings, old.Warnings...)
	for _, place := range append(slices.Clone(readable), c.CopyOf) {
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	c.Bounds = append(slices.Clip(c.Bounds), all...) // deny and ask rules apply there too
	return all, readable
}

// checkCopy refuses roots that lead out of the worktree, such as by a link in the commit.
func (cfg Config) checkCopy(c *rules.Compiler) error {
	for _, root := range c.Roots {
		if cfg.CopyOf != "" && !pathname.Within(pathname.Slashed(root.Real), pathname.Slashed(c.Copy.Real)) {
			return fmt.Errorf("the root %s leads out of the worktree %s", root.Given, cfg.Copy)
		}
	}
	return nil
}

// placesOf returns the real directories of places.
func placesOf(places []pathname.Place) (dirs []string) {
	for _, p := range places {
		dirs = append(dirs, p.Real)
	}
	return dirs
}

// original refuses writes to the places that a worktree was made of.
func (j *judge) original(t *target) (Part, bool) {
	if t.access != writing || !j.data.originals.Hold(t.given) && !j.data.originals.Hold(t.real) ||
		j.data.inside.Hold(t.real) {
		return Part{}, false
	}
	part := t.part(Deny, RuleBoundary, "This conversation works in a worktree. Until it leaves that, other directories "+
		"can only be read: "+t.path.given+".",
		"Work in "+strings.Join(j.policy.Roots(), ", ")+" instead, or leave the worktree first.")
	part.Final = true
	return part, true
}

// holdOriginals denies commands in a worktree to write the places it was made of, and to read what rules deny there.
func (c *SandboxPaths) holdOriginals(k *policyData) {
	for _, name := range k.originals.Names {
		dir := pathname.Native(name)
		c.Writable = slices.DeleteFunc(c.Writable, func(w string) bool {
			return pathname.Within(pathname.Slashed(w), name) && !k.inside.Hold(pathname.Slashed(w))
		})
		c.ReadOnly, c.Originals = append(c.ReadOnly, dir), append(c.Originals, dir)
		there := SandboxPaths{Writable: c.Writable}
		there.walk(k, dir, true)
		c.Denied, c.Masked, c.Shown = append(c.Denied, there.Denied...), append(c.Masked,
			there.Masked...), append(c.Shown, there.Shown...)
	}
}

// placesFor returns directories as places.
func placesFor(c *rules.Compiler, dirs []string) (all []pathname.Place) {
	for _, dir := range dirs {
		all = append(all, c.Place(dir))
	}
	return all
}
