// Package gitconfig keeps commands from leaving behind a git configuration that executes something: what they add is
// taken out after each command, what stood there before stays.
package gitconfig

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"toolhost/guard/internal/gitconf"
	"toolhost/guard/sandbox/internal/mend"
)

// A Guard keeps commands from leaving behind a git configuration that
// executes something when somebody runs git outside of the sandbox. git must be
// able to write its configuration, so the files stay writable and are cleaned
// after each command. Repositories deeper in the work tree are not looked at.
type Guard struct {
	root  string          // the work tree
	known map[string]bool // settings that were there before
	text  map[string][]byte
	odd   map[string]bool // files that could not be read before: they are not ours to judge while that is so
}

// A Removed is a setting that was taken out.
type Removed struct {
	File string
	Key  string // "core.fsmonitor"; "" if the whole file was put back
	Why  string
}

// Names of gitrepository-layout(5).
const (
	repository = ".git"      // the repository; a file of this name leads to it
	head       = "HEAD"      // what makes a directory a repository, with two others
	config     = "config"    // and config.worktree, if an extension is on
	common     = "commondir" // leads to a directory with the configuration and the hooks that count instead
	trees      = "worktrees" // in whose directories commondir says where they belong
)

// maxSize is the size from which a configuration is put back unread; real
// ones have a few KiB.
const maxSize = 1 << 20

// NewGuard notes the configuration of the repository whose work tree is
// root, before a command runs. Without a repository there is nothing to note,
// and everything that appears counts as new.
func NewGuard(root string) (*Guard, error) {
	g := &Guard{root: root, known: make(map[string]bool), text: make(map[string][]byte), odd: make(map[string]bool)}
	err := g.each(func(tree *os.Root, name string) error {
		text, err := readFile(tree, name)
		if err != nil {
			g.odd[name] = true
			return nil
		}
		g.text[name] = text
		if leads(name) {
			return nil
		}
		settings, err := gitconf.Parse(text)
		if err != nil {
			return nil // git will not read it either; if a command mends it, all in it is new
		}
		for _, s := range settings {
			g.known[name+"\x00"+s.Key+"\x00"+s.Value] = true
		}
		return nil
	})
	return g, err
}

// leads reports whether a file leads git to a repository, and is no configuration.
func leads(name string) bool {
	return name == repository || filepath.Base(name) == head || filepath.Base(name) == common
}

// each calls f for the names that a configuration, or a file that leads to a
// repository, has or may have in the work tree. Without a repository there are
// none.
func (g *Guard) each(f func(tree *os.Root, name string) error) error {
	list, err := g.find()
	if err != nil {
		return fmt.Errorf("sandbox: looking for git configuration: %w", err)
	}
	if len(list) == 0 {
		return nil
	}
	tree, err := os.OpenRoot(g.root)
	if err != nil {
		return fmt.Errorf("sandbox: git configuration: %w", err)
	}
	defer tree.Close()
	var errs []error
	for _, name := range list {
		errs = append(errs, f(tree, name))
	}
	return errors.Join(errs...)
}

// find lists the names for each. The work tree itself is a repository if it has
// what one consists of, and no other.
func (g *Guard) find() ([]string, error) {
	files := func(dir string) []string {
		return []string{filepath.Join(dir, config), filepath.Join(dir, config+".worktree"), filepath.Join(dir, common)}
	}
	st, err := os.Lstat(filepath.Join(g.root, repository))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, name := range []string{head, "objects", "refs"} {
			if _, err := os.Lstat(filepath.Join(g.root, name)); err != nil {
				return nil, nil
			}
		}
		return append(files("."), head), nil
	case err != nil:
		return nil, err
	case !st.IsDir() && st.Mode()&fs.ModeSymlink == 0:
		return []string{repository}, nil
	}
	list := files(repository)
	for _, dir := range []string{"modules", trees} { // of submodules and further work trees
		if list, err = g.appendDeeper(list, filepath.Join(repository, dir)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// appendDeeper appends the names of the files at any depth below dir.
func (g *Guard) appendDeeper(list []string, dir string) ([]string, error) {
	err := filepath.WalkDir(filepath.Join(g.root, dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "objects" || d.Name() == "refs" || d.Name() == "logs"):
			return filepath.SkipDir
		case d.Name() == config || d.Name() == config+".worktree" || d.Name() == common:
			rel, err := filepath.Rel(g.root, path)
			list = append(list, rel)
			return err
		}
		return nil
	})
	return list, err
}

// readFile returns a file's text; nil if it does not exist.
func readFile(tree *os.Root, name string) ([]byte, error) {
	st, err := tree.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: git configuration: %w", err)
	}
	odd := fmt.Errorf("sandbox: %s is no ordinary configuration file", filepath.Join(tree.Name(), name))
	if !st.Mode().IsRegular() || st.Size() > maxSize {
		return nil, odd
	}
	f, err := tree.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe meanwhile
	if err != nil {
		return nil, fmt.Errorf("sandbox: git configuration: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, odd
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("sandbox: git configuration: %w", err)
	case len(text) > maxSize:
		return nil, odd
	}
	return text, nil
}

// Clean takes settings that execute something out of the configuration, unless
// they were there when the guard was made. A file that cannot be understood is
// put back as it was, and so is one that leads to a repository elsewhere. Call it
// when nothing of the command runs any more.
func (g *Guard) Clean() ([]Removed, error) {
	var removed []Removed
	err := g.each(func(tree *os.Root, name string) error {
		r, err := g.clean(tree, name)
		removed = append(removed, r...)
		return err
	})
	return removed, err
}

func (g *Guard) clean(tree *os.Root, name string) ([]Removed, error) {
	path := filepath.Join(g.root, name)
	putBack := func(why string) ([]Removed, error) {
		return []Removed{{path, "", why}}, writeFile(tree, name, g.text[name])
	}
	text, err := readFile(tree, name)
	switch {
	case err != nil && g.odd[name]:
		return nil, nil // as it was
	case err != nil:
		return putBack("it is no ordinary file any more")
	case text == nil || bytes.Equal(text, g.text[name]):
		return nil, nil
	case name == head && g.text[name] != nil, belongs(name, text):
		return nil, nil
	case name == head:
		return putBack("it made the work tree itself a repository, with settings and hooks of the command's")
	case leads(name):
		return putBack("it led git to another repository")
	}
	settings, err := gitconf.Parse(text)
	if err != nil {
		return putBack(err.Error())
	}
	var removed []Removed
	kept := make([]byte, 0, len(text))
	last := 0
	for _, s := range settings {
		if g.known[name+"\x00"+s.Key+"\x00"+s.Value] {
			continue
		}
		why := executes(s)
		if s.Key == "core.worktree" && !g.keeps(name, s.Value) {
			why = "git would write files elsewhere"
		}
		if why != "" {
			removed = append(removed, Removed{path, s.Key, why})
			kept = append(kept, text[last:s.Start]...)
			last = s.End
		}
	}
	if removed == nil {
		return nil, nil
	}
	return removed, writeFile(tree, name, append(kept, text[last:]...))
}

// belongs reports whether a commondir says what git itself writes for a further
// work tree.
func belongs(name string, text []byte) bool {
	return filepath.Base(name) == common && filepath.Base(filepath.Dir(filepath.Dir(name))) == trees &&
		strings.TrimSpace(string(text)) == filepath.Join("..", "..")
}

// keeps reports whether the work tree that the configuration of a submodule names
// is inside of ours. A repository of its own needs no such setting.
func (g *Guard) keeps(name, tree string) bool {
	dir := filepath.Dir(name)
	return dir != repository && dir != "." && !filepath.IsAbs(tree) && filepath.IsLocal(filepath.Join(dir, tree))
}

// writeFile replaces a file, whatever is in its place; nil removes it.
func writeFile(tree *os.Root, name string, text []byte) error {
	err := mend.Writing(tree, filepath.Dir(name), func() error {
		if st, err := tree.Lstat(name); err == nil && (text == nil || !st.Mode().IsRegular()) {
			if err := tree.RemoveAll(name); err != nil {
				return err
			}
		}
		if text == nil {
			return nil
		}
		// Anew, and at a name that nobody expects: a task could put a link there.
		next := name + "." + rand.Text()
		f, err := tree.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err == nil {
			err = tree.Rename(next, name)
		}
		if err != nil {
			return errors.Join(err, tree.Remove(next))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sandbox: git configuration: %w", err)
	}
	return nil
}

// executing maps settings of git-config(1) whose value is a command, or leads to
// one. "*" stands for any subsection.
var executing = func() map[string]bool {
	set := make(map[string]bool)
	for _, key := range strings.Fields(`
		core.fsmonitor core.sshcommand core.hookspath core.pager core.editor core.askpass core.gitproxy
		core.alternaterefscommand sequence.editor
		credential.helper credential.*.helper gpg.program gpg.*.program gpg.ssh.defaultkeycommand
		diff.external diff.*.command diff.*.textconv filter.*.clean filter.*.smudge filter.*.process merge.*.driver
		mergetool.*.cmd mergetool.*.path difftool.*.cmd difftool.*.path guitool.*.cmd
		man.*.cmd man.*.path man.viewer browser.*.cmd browser.*.path web.browser help.browser instaweb.httpd instaweb.browser
		remote.*.uploadpack remote.*.receivepack remote.*.vcs
		uploadpack.packobjectshook interactive.difffilter imap.tunnel gc.recentobjectshook hook.*.command core.virtualfilesystem
		sendemail.sendmailcmd sendemail.smtpserver sendemail.tocmd sendemail.cccmd sendemail.headercmd
		sendemail.*.sendmailcmd sendemail.*.smtpserver sendemail.*.tocmd sendemail.*.cccmd
		trailer.*.command trailer.*.cmd tar.*.command init.templatedir
		include.path includeif.*.path protocol.allow protocol.*.allow
		lfs.customtransfer.*.path lfs.customtransfer.*.args lfs.standalonetransferagent lfs.extension.*.clean lfs.extension.*.smudge
	`) {
		set[key] = true
	}
	return set
}()

// executes says why a setting can make git execute something, or "".
func executes(s gitconf.Setting) string {
	section, rest, _ := strings.Cut(s.Key, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	wild := section + "." + name
	if len(rest) > len(name) {
		wild = section + ".*." + name
	}
	switch {
	case (wild == "core.fsmonitor" || section == "pager") && gitconf.IsBool(s.Value):
		return ""
	case executing[wild], section == "lfs" && executing[lfsKey(s.Key)]:
		return "git can execute a command because of it"
	case section == "pager":
		return "git would execute it as a pager"
	case section == "alias" && strings.HasPrefix(strings.TrimSpace(s.Value), "!"):
		return "the alias executes a command"
	case section == "alias" && strings.HasPrefix(strings.TrimSpace(s.Value), "-"):
		return "the alias changes git's configuration"
	case section == "submodule" && name == "update" && strings.HasPrefix(strings.TrimSpace(s.Value), "!"):
		return "git would execute it to update a submodule"
	case strings.Contains(strings.ToLower(s.Key+s.Value), "ext::"):
		return "the address executes a command"
	}
	return ""
}

// lfsKey gives lfs.a.NAME.b the form of the table.
func lfsKey(key string) string {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) < 3 {
		return key
	}
	return parts[0] + "." + parts[1] + ".*" + parts[2][max(strings.LastIndexByte(parts[2], '.'), 0):]
}
