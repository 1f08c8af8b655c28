package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/gitrepo"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// commandFiles is the settings, beyond the rules, on the files that contained commands may access: sandbox.filesystem
// and sandbox.credentials.files. The kernel enforces them.
type commandFiles struct {
	// unread and unwritten match what commands must not read and write.
	unread, unwritten *rules.Matcher
	// readable and writable are allowRead and allowWrite. The directories of git outside the boundary are writable too.
	readable, writable []string
	git                []gitDir
	// masked are files of which commands read a copy with sentinels. denied matches files that are withheld as a
	// whole.
	masked []MaskedFile
	// values are files with the values of masked credentials, which no tool uses.
	values []string
	denied *rules.Matcher
}

// A MaskedFile is a file of which commands read a copy with sentinels.
type MaskedFile struct {
	settings.Mask
	Path string // its real name
}

func newCommandFiles(c *rules.Compiler, set settings.Sandbox, s pathname.Spelling) commandFiles {
	f := set.Filesystem
	var masked []MaskedFile
	for _, mask := range set.Credentials.MaskedFiles {
		for _, path := range c.Opened([]settings.Entry{mask.Entry}) {
			masked = append(masked, MaskedFile{mask, path})
		}
	}
	var sources []settings.Entry // files that hold the values of variables
	for _, mask := range set.Credentials.MaskedVars {
		if e := mask.Entry; mask.File != "" {
			e.Text, e.Object = mask.File, ""
			sources = append(sources, e)
		}
	}
	denied := slices.DeleteFunc(slices.Clone(set.Credentials.Files), func(e settings.Entry) bool {
		return slices.ContainsFunc(set.Credentials.MaskedFiles,
			func(m settings.Mask) bool { return m.Entry.Text == e.Text })
	})
	var values []string
	for _, m := range masked {
		values = append(values, m.Path)
	}
	return commandFiles{
		masked: masked, values: append(values, c.Opened(sources)...),
		denied:    c.Withheld(slices.Concat(f.DenyRead, denied, sources), s),
		unread:    c.Withheld(slices.Concat(f.DenyRead, set.Credentials.Files, sources), s),
		unwritten: c.Withheld(slices.Concat(f.DenyWrite, sources), s),
		readable:  c.Opened(f.AllowRead), writable: slices.DeleteFunc(c.Opened(f.AllowWrite),
			func(dir string) bool { return neverWritable(c, dir) }),
	}
}

// A gitDir is the directory of the repository of a root, outside of the boundary.
type gitDir struct{ root, dir string }

// firstNamed caches the git directories that a root named with its .git file or link when this process first saw the
// root: a command may have written another name since. Package settle removes that name, so it is not there at the
// next start.
var firstNamed sync.Map

// addGit makes the directories of git writable that lie outside of the boundary, but not in the state directory: git
// could not commit otherwise.
func (k *policyData) addGit(state string) {
	for _, root := range k.outermost() {
		if root == k.scratch || state != "" && withinAny(root, []string{state}) {
			continue
		}
		found := gitrepo.Find(root)
		if found.Named != "" && (withinAny(found.Named, k.outermost()) || withinAny(found.Named, k.files.writable)) {
			first, _ := firstNamed.LoadOrStore(root, found)
			found = first.(gitrepo.Found)
		} else {
			firstNamed.LoadOrStore(root, gitrepo.Found{})
		}
		dir := found.Dir
		if dir == "" || withinAny(dir, k.outermost()) || withinAny(dir, k.files.writable) || state != "" &&
			withinAny(dir, []string{state}) {
			continue
		}
		k.files.git = append(k.files.git, gitDir{root, dir})
		k.files.writable = append(k.files.writable, dir)
	}
}

// neverWritable reports whether no sandbox can make a directory writable: it is the root, or every sandbox replaces it.
func neverWritable(c *rules.Compiler, dir string) bool {
	never := dir == filepath.Dir(dir) || slices.ContainsFunc([]string{"/dev", "/proc", "/sys"},
		func(own string) bool { return pathname.Within(pathname.Slashed(dir), own) })
	if never {
		c.Warnings = append(c.Warnings, fmt.Sprintf("sandbox.filesystem.allowWrite: %s cannot be opened to commands; name "+
			"the directories that are meant", dir))
	}
	return never
}

// any reports whether commands are denied a file.
func (f commandFiles) any() bool { return !f.unread.Empty() || !f.unwritten.Empty() }

// withholds reports whether a path is denied to commands as a whole. It does not check the directories above the path.
func (f commandFiles) withholds(name string, dir bool) bool {
	return f.unread.MatchLeaf(pathname.Slashed(name), dir) != nil && !withinAny(name, f.readable) &&
		!slices.ContainsFunc(f.readable,
			func(open string) bool { return pathname.Within(pathname.Slashed(open), pathname.Slashed(name)) })
}

// widen adds the directories outside the boundary that commands may write.
func (f commandFiles) widen(k *policyData, c *SandboxPaths) {
	for _, name := range f.writable {
		at := slices.IndexFunc(f.git, func(g gitDir) bool { return g.dir == name })
		if at >= 0 && k.readOnlyRoot(f.git[at].root) {
			continue
		}
		if realpath.Exists(name) {
			c.Writable = append(c.Writable, name)
			c.addProtected(name)
		}
	}
	c.Writable = outermostOf(c.Writable)
}

// withhold adds the paths that the settings deny to commands by name.
func (f commandFiles) withhold(c *SandboxPaths, scratch string) {
	c.ReadOnly = append(c.ReadOnly, f.unwritten.Absolute()...)
	for _, name := range f.unread.Absolute() {
		f.hide(c, name, scratch)
	}
}

// hide hides a path from commands. The paths below it that are opened again, and the directory of the commands'
// temporary files, stay visible.
func (f commandFiles) hide(c *SandboxPaths, name, scratch string) {
	if c.Harmless(name) {
		return
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // in the form of all other paths
	}
	if withinAny(name, f.readable) {
		return
	}
	below := func(dir string) bool { return pathname.Within(pathname.Slashed(dir), pathname.Slashed(name)) }
	open := slices.DeleteFunc(slices.Clone(f.readable),
		func(dir string) bool { return !below(dir) || !realpath.Exists(dir) })
	if len(open) == 0 && !c.aroundScratch(name, scratch) {
		c.Denied = append(c.Denied, name)
		return
	}
	if realpath.Exists(name) { // a path that is absent is looked for before every command
		c.mask(name, scratch, open)
	}
}

// aroundScratch reports whether the directory of the commands' own temporary files, which no program works without,
// lies in a denied path: a rule on all of the home directory means the files of the user.
func (c *SandboxPaths) aroundScratch(name, scratch string) bool {
	if scratch == "" {
		return false
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	return pathname.Within(pathname.Slashed(scratch), pathname.Slashed(name))
}

// mask hides a directory, except for the open paths in it and the commands' temporary files.
func (c *SandboxPaths) mask(name, scratch string, open []string) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if name == scratch {
		return
	}
	c.Masked = append(c.Masked, name)
	for _, dir := range c.Writable {
		if dir != scratch && pathname.Within(pathname.Slashed(dir), pathname.Slashed(name)) && !withinAny(dir, open) {
			c.Denied = append(c.Denied, dir)
		}
	}
	for _, dir := range open {
		if !withinAny(dir, c.Writable) || withinAny(name, c.Writable) {
			c.Shown = append(c.Shown, dir)
		}
	}
}

// addProtected adds the hooks of a repository in a directory that is opened to commands.
func (c *SandboxPaths) addProtected(dir string) {
	if gitrepo.Is(dir) {
		c.ReadOnly = append(c.ReadOnly, gitrepo.Hooks(dir)...)
		return
	}
	entries, _ := os.ReadDir(dir) // what cannot be listed cannot be written by a command either
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && pathname.Folded.Of(e.Name()) == ".git" {
			c.ReadOnly = append(c.ReadOnly, gitrepo.Hooks(path)...)
		}
	}
}

// outermostOf drops directories that lie in another one of dirs.
func outermostOf(dirs []string) []string {
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(other string) bool {
			return other != dir && pathname.Within(pathname.Slashed(dir), pathname.Slashed(other))
		})
	})
}

// withinAny reports whether a path is one of dirs or lies in one.
func withinAny(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs,
		func(dir string) bool { return pathname.Within(pathname.Slashed(name), pathname.Slashed(dir)) })
}
