package guard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/pathname"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/settings"
)

// A control is the set of files that the host obeys or writes itself, such as settings, as their names resolve at one
// moment. No tool and no command may write one by any of its names, or change where such a name leads. The judge and
// the sandbox both take their lists from it.
type control struct {
	// ends are the files and directories that the names lead to, existing or not.
	ends pathname.Places
	// steps are the links and directories on the way to ends, each by a path whose directory contains no links.
	steps map[string]fs.FileInfo // nil: nothing has that name
	// files are the regular files among the ends: a hard link or a mount gives them other names.
	files map[realpath.ID]bool
	names uint64 // how many names these files have
}

// controlNames returns the names by which the host knows the files that it obeys or writes.
func controlNames(cfg Config, bounds []pathname.Place) []string {
	names := slices.Concat(settings.ManagedDirs(), cfg.RuleFiles, cfg.OwnFiles)
	for _, b := range bounds {
		if b.Given == cfg.Scratch {
			continue // all of it is the caller's own
		}
		for _, name := range []string{"settings.json", "settings.local.json"} {
			names = append(names, filepath.Join(b.Given, ".claude", name),
				filepath.Join(b.Given, ".toolhost", "toolhost"+name[len("settings"):]))
		}
		names = append(names, filepath.Join(b.Given, ".toolhost"))
	}
	return names
}

// control resolves the names of control files.
func (k *policyData) control() *control { return controlOf(k, k.controlNames) }

// unsettledNames returns the names of control files that are not protected by settlement: those of a workspace that are
// reached without a link are, and those that are reached by a link that a running command has put where none was.
func (k *policyData) unsettledNames() (names []string) {
	for _, name := range k.controlNames {
		settled := false
		end, err := realpath.Trace(name, func(path string) (fs.FileInfo, error) {
			info, err := os.Lstat(path)
			planted, replaces := k.isPlanted(path, info)
			settled = settled || planted && !replaces
			return info, err
		})
		if !settled && (err != nil || !k.isSettled(name, end)) {
			names = append(names, name)
		}
	}
	return names
}

// isPlanted reports whether what was found at a path is a link that a running command has put there, and whether it
// stands in the place of another one. found is nil if nothing was.
func (k *policyData) isPlanted(path string, found fs.FileInfo) (planted, replaces bool) {
	if found == nil || found.Mode()&fs.ModeSymlink == 0 || k.planted == nil {
		return false, false
	}
	return k.planted(path, found)
}

// isSettled reports whether a name that leads to an end is that of a file in a directory of the boundary, without a
// link below that directory.
func (k *policyData) isSettled(name, end string) bool {
	return slices.ContainsFunc(k.bounds, func(b pathname.Place) bool {
		rel, err := filepath.Rel(b.Given, name)
		if err != nil || !filepath.IsLocal(rel) || !isSettingsFile(pathname.Slashed(name)) {
			return false
		}
		return slices.ContainsFunc(b.Names(),
			func(real string) bool { return pathname.Slashed(end) == real+"/"+pathname.Slashed(rel) })
	})
}

// controlOf resolves names. It takes about 50 µs, since each directory is looked up once.
func controlOf(k *policyData, names []string) *control {
	c := &control{steps: map[string]fs.FileInfo{}, files: map[realpath.ID]bool{}}
	lstat := func(path string) (fs.FileInfo, error) {
		info, seen := c.steps[path]
		if seen && info == nil {
			return nil, fs.ErrNotExist
		}
		if seen {
			return info, nil
		}
		info, err := os.Lstat(path)
		c.steps[path] = info
		return info, err
	}
	var ends []pathname.Place
	for _, name := range names {
		end, err := realpath.Trace(name, lstat)
		if err != nil {
			// A loop, or a directory that neither this process nor a command can open: the steps so far are
			// protected.
			continue
		}
		ends = append(ends, pathname.Place{Given: end})
		if info := c.steps[end]; info != nil && info.Mode().IsRegular() {
			id, names := realpath.Identify(info)
			c.files[id] = true
			c.names += names
		}
	}
	if k.stateDir != "" { // the state directory is masked, so commands see only its name
		if end, err := realpath.Trace(k.stateDir, lstat); err == nil {
			delete(c.steps, end)
		}
	}
	for _, end := range ends {
		delete(c.steps, end.Given)
	}
	delete(c.files, realpath.ID{}) // the system reports no identity of files
	c.ends = pathname.PlacesOf(pathname.Folded, ends...)
	return c
}

// holds reports whether a path names one of the files, or lies in one of the directories.
func (c *control) holds(p Path) bool {
	return c.ends.Hold(pathname.Slashed(p.real)) || c.ends.Hold(pathname.Slashed(p.given)) || c.files[p.file]
}

// isStep reports whether renaming or removing the link or directory of this name changes where the name of a control
// file leads.
func (c *control) isStep(name string) bool { return c.steps[name] != nil }

// ControlPaths are the files that commands must leave unchanged because the host obeys or writes them, existing or not.
// The paths have no links before the last element and are sorted. They may change whenever a link does.
type ControlPaths struct {
	Ends  []string // the files and directories themselves
	Steps []string // links and directories whose names lead there
	Names uint64   // how many names the files have
}

// ControlPaths resolves the names of the control files that settlement does not protect.
func (c Commands) ControlPaths() ControlPaths {
	k := controlOf(c.p.data, c.p.data.unsettledNames())
	out := ControlPaths{Names: k.names}
	for _, name := range k.ends.Names {
		out.Ends = append(out.Ends, pathname.Native(name))
	}
	for name, found := range k.steps {
		if planted, _ := c.p.data.isPlanted(name, found); !planted {
			out.Steps = append(out.Steps, name)
		}
	}
	slices.Sort(out.Ends)
	slices.Sort(out.Steps)
	out.Ends = slices.Compact(out.Ends)
	return out
}

// Equal reports whether both hold the same paths.
func (c ControlPaths) Equal(other ControlPaths) bool {
	return slices.Equal(c.Ends, other.Ends) && slices.Equal(c.Steps, other.Steps) && c.Names == other.Names
}

// PlantedLink returns an error if the way to a file that the host opens by name has a link that commands may have made:
// the host would write elsewhere.
func (p *Policy) PlantedLink(name string) error {
	var found string
	_, err := realpath.Trace(name, func(path string) (fs.FileInfo, error) {
		info, err := os.Lstat(path)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && p.data.writable(path) {
			found = path
		}
		return info, err
	})
	if found != "" {
		return fmt.Errorf("%s: %s is a symbolic link in a directory that tools may write, so it could lead anywhere: name "+
			"the file that is meant, or remove the link", name, found)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be followed: %w", name, err)
	}
	return nil
}

// Exposed reports whether the name of a file leads to where tools or commands may write.
func (p *Policy) Exposed(name string) bool {
	end, _, err := realpath.Follow(name)
	return err != nil || p.data.writable(end)
}

// writable reports whether a path without links lies where tools or commands may write.
func (k *policyData) writable(path string) bool {
	return withinAny(path, k.outermost()) || withinAny(path, k.files.writable)
}

// isControl reports whether the host takes its rules from the path, or would after a restart.
func (j *judge) isControl(p Path) bool {
	if isSettingsFile(pathname.Slashed(p.given)) || isSettingsFile(pathname.Slashed(p.real)) {
		return true
	}
	return j.controlled().holds(p)
}

// controlled returns the control of one judgement, resolving it on first use.
func (j *judge) controlled() *control {
	if j.controlPaths == nil {
		j.controlPaths = j.data.control()
	}
	return j.controlPaths
}
