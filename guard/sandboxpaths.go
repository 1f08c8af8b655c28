package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/gitrepo"
	"github.com/toolhost/toolhost/guard/internal/pathname"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settle"
)

// SandboxPaths are the rules on files as lists of real paths that a sandbox can enforce. Patterns are expanded to the
// existing files; [Policy.Hidden] decides on files that appear later.
type SandboxPaths struct {
	// Writable are the directories of the boundary, and those of sandbox.filesystem.allowWrite.
	Writable []string
	// ReadOnly are files and directories in Writable that must stay unchanged: what Edit rules and
	// sandbox.filesystem.denyWrite deny, protected paths, and [Commands.ControlPaths], which are listed even if absent.
	ReadOnly []string
	// Control are the control files that package settle does not protect, which are in ReadOnly or Masked too, and the
	// links and directories that lead to them: these must not be renamed, removed or replaced.
	Control ControlPaths
	// Denied are the files and directories that Read rules and sandbox.filesystem.denyRead deny. Those named without a
	// wildcard are listed even if absent.
	Denied []string
	// Masked are the host's state, the home directory's secrets, and paths of denyRead of which a part is open.
	Masked []string
	// Shown are the paths in Masked that this caller, or any command, may read.
	Shown []string
	// Originals are the places that a worktree was made of, with the additional directories of its workspace. Rules apply
	// there too, including to files that are created later.
	Originals []string
}

// SandboxPaths walks the boundary and returns what a sandbox must enforce. It takes about a millisecond for a thousand
// files.
func (c Commands) SandboxPaths() SandboxPaths {
	k := c.p.data
	out := SandboxPaths{Writable: k.outermost(), Shown: slices.Clone(c.p.caller.Own)}
	out.Denied = k.others()
	bounds := out.Writable
	k.files.widen(k, &out)
	for _, dir := range bounds {
		if dir == k.scratch {
			continue // large, and entirely the caller's own
		}
		frozen := k.readOnlyRoot(dir)
		if out.walk(k, dir, frozen); frozen {
			out.ReadOnly = append(out.ReadOnly, dir)
		}
	}
	out.holdOriginals(k)
	for _, m := range k.closed() {
		for _, name := range m.Absolute() {
			if out.aroundScratch(name, k.scratch) && !out.Harmless(name) {
				out.mask(name, k.scratch, nil)
			} else {
				out.Denied = append(out.Denied, name)
			}
		}
	}
	out.ReadOnly = append(out.ReadOnly, k.deny.Edit.Absolute()...)
	for _, f := range k.hostFiles.Names {
		out.ReadOnly = append(out.ReadOnly, pathname.Native(f))
	}
	out.ReadOnly = append(out.ReadOnly, c.OwnOfHome()...)
	out.Control = c.ControlPaths()
	for _, end := range out.Control.Ends {
		if !k.isState(pathname.Slashed(end)) || !realpath.Exists(end) { // masked paths are protected more strictly already
			out.ReadOnly = append(out.ReadOnly, end)
		}
	}
	for _, m := range slices.Concat(k.state.Names, k.rotated(), k.secrets.Names) {
		if name := pathname.Native(m); realpath.Exists(name) && (k.isState(m) || k.allow.Read.Match(m, true) == nil) {
			out.Masked = append(out.Masked, name)
		}
	}
	out.Masked = append(out.Masked, otherWorkspaces(k.scratch, out.Writable)...)
	for name := range k.allow.Read.Files() {
		if k.secrets.Hold(name) && !k.isState(name) && k.deny.Read.Match(name, false) == nil &&
			realpath.Exists(pathname.Native(name)) {
			out.Shown = append(out.Shown, pathname.Native(name))
		}
	}
	k.files.withhold(&out, k.scratch)
	out.dropStray()
	for _, list := range []*[]string{&out.Writable, &out.ReadOnly, &out.Denied, &out.Masked, &out.Shown} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return out
}

// readOnlyRoot reports whether every edit in a directory of the boundary is denied, including new files.
func (k *policyData) readOnlyRoot(dir string) bool {
	return k.deny.Every != nil || k.deny.Edit.All(pathname.Slashed(dir))
}

// rotated returns the rotated versions of the host's own files: audit.jsonl.1.
func (k *policyData) rotated() (names []string) {
	for _, name := range k.state.Names {
		entries, _ := os.ReadDir(filepath.Dir(pathname.Native(name))) // a directory that cannot be listed has none
		for _, e := range entries {
			path := pathname.Slashed(filepath.Join(filepath.Dir(pathname.Native(name)), e.Name()))
			if strings.HasPrefix(path, name+".") && k.isState(path) {
				names = append(names, path)
			}
		}
	}
	return names
}

// others returns the scratch directories of other callers.
func (k *policyData) others() []string {
	if k.scratch == "" {
		return nil
	}
	var out []string
	parent := filepath.Dir(k.scratch)
	entries, _ := os.ReadDir(parent) // what cannot be listed cannot be reached either
	for _, e := range entries {
		if path := filepath.Join(parent, e.Name()); path != k.scratch {
			out = append(out, path)
		}
	}
	return out
}

// otherWorkspaces returns the scratch directories of other workspaces, if they lie in a directory that commands write:
// where the home directory is a root. What a command leaves there would run in the other workspace.
func otherWorkspaces(scratch string, writable []string) []string {
	own := filepath.Dir(scratch)
	if scratch == "" || !withinAny(own, writable) {
		return nil
	}
	var out []string
	entries, _ := os.ReadDir(filepath.Dir(own)) // what cannot be listed cannot be reached either
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && name != filepath.Base(own) && len(name) == len(filepath.Base(own)) {
			out = append(out, filepath.Join(filepath.Dir(own), name))
		}
	}
	return out
}

// closed are the rules that hide files from commands: those that deny reading, and those that ask before.
func (k *policyData) closed() []*rules.Matcher { return []*rules.Matcher{k.deny.Read, k.ask.Read} }

// closes reports whether a path is hidden from commands. It checks the path itself, not the directories above it.
func (k *policyData) closes(name string, dir bool) bool {
	return slices.ContainsFunc(k.closed(), func(m *rules.Matcher) bool { return m.Holds(name, dir) })
}

// walk adds the paths in one directory of the boundary. frozen says that the directory is read-only as a whole.
func (c *SandboxPaths) walk(k *policyData, root string, frozen bool) {
	git, inGit := k.gitRules(), ""
	// A directory that cannot be listed cannot be opened by a command either.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		name, dir := pathname.Slashed(path), d.IsDir()
		if k.closes(name, dir) {
			c.Denied = append(c.Denied, path)
			return skip(dir)
		}
		if k.files.unread.Holds(name, dir) {
			k.files.hide(c, path, k.scratch)
			return skip(dir)
		}
		within := inGit != "" && pathname.Within(name, inGit)
		edit := !frozen && (k.files.unwritten.Holds(name, dir) || k.deny.Edit.Holds(name, dir) && (!within || git.edit))
		switch {
		case dir && d.Name() == ".git" && !within:
			// Git must work: only its hooks, which other programs run, are read-only. What a command adds to its configuration
			// is checked afterwards.
			c.ReadOnly = append(c.ReadOnly, gitrepo.Hooks(path)...)
			if inGit = name; edit {
				c.ReadOnly = append(c.ReadOnly, path)
			}
			if !git.any {
				return fs.SkipDir
			}
		case edit:
			c.ReadOnly = append(c.ReadOnly, path)
		case within && dir && !git.all && gitOwn(d.Name()):
			return fs.SkipDir
		case within || frozen:
		case d.Type()&fs.ModeSymlink != 0 && isProtectedLink(root, path): // its target has another name, which is not settled
			if info, err := d.Info(); err == nil {
				if planted, _ := k.isPlanted(path, info); !planted {
					c.ReadOnly = append(c.ReadOnly, path)
				}
			}
		}
		return nil
	})
}

// isProtectedLink reports whether a link in a root has a protected name: a name directly in the root, or one of several
// elements (.hg/hgrc).
func isProtectedLink(root, path string) bool {
	if isProtectedName(filepath.Base(path)) {
		return filepath.Dir(path) == root
	}
	above := filepath.Base(filepath.Dir(path))
	if !settle.IsMark(above) || isProtectedName(above) {
		return false
	}
	rel, err := filepath.Rel(root, path)
	return err == nil && settle.ClassOf(pathname.Slashed(rel)) == settle.Held
}

// gitRules says how rules may apply to names in a repository's own directory. Git must work, so a rule on a name that a
// branch may have too does not apply to the branch.
type gitRules struct {
	any  bool // rules may apply to some names
	all  bool // also to names that git chooses
	edit bool // also to files that commands write
}

func (k *policyData) gitRules() gitRules {
	named := func(m *rules.Matcher) bool {
		return slices.ContainsFunc(m.Rules(),
			func(r *rules.Rule) bool { return strings.Contains(pathname.Folded.Of(r.Text), "git") })
	}
	g := gitRules{all: slices.ContainsFunc(k.closed(), named) || named(k.files.unread) ||
		named(k.files.unwritten), edit: named(k.deny.Edit)}
	g.all = g.all || g.edit
	g.any = g.all || !k.deny.Read.Empty() || !k.ask.Read.Empty()
	return g
}

// gitOwn reports whether a directory of a repository holds names of commits and branches. It may be very large.
func gitOwn(name string) bool { return name == "objects" || name == "refs" || name == "logs" }

func skip(dir bool) error {
	if dir {
		return fs.SkipDir
	}
	return nil
}
