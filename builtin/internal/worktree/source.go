package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoRepository reports that a directory is not in a git repository.
var ErrNoRepository = errors.New("not a git repository")

// A source is the repository that a worktree is made of, as git found it from the caller's directory.
type source struct {
	top    string // its work tree
	git    string // its git directory, which differs from common in a linked worktree
	common string
	below  string // the caller's directory, relative to top
	head   string // the commit of HEAD; "" where that is not examined
	base   string // the commit to begin at
	config map[string]string
	hidden Hidden
}

// inspect examines the repository of dir, and the commit base, HEAD if that is empty. It runs only rev-parse and
// config, with which git runs no other programs.
func inspect(ctx context.Context, dir, base string, hidden Hidden) (*source, error) {
	if _, err := (gitRun{dir: dir}).git(ctx, "--version"); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	r := gitRun{dir: real}
	s := &source{config: map[string]string{}, hidden: hidden}
	if s.git, err = r.text(ctx, "rev-parse", "--absolute-git-dir"); err != nil {
		if hasRepository(real) {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", dir, ErrNoRepository)
	}
	if bare, err := r.text(ctx, "rev-parse", "--is-inside-work-tree"); err != nil || bare != "true" {
		return nil, fmt.Errorf("%s: the repository has no work tree here (it is bare, or this is its .git): call it from a "+
			"checkout", dir)
	}
	if s.top, err = r.text(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	if s.common, err = r.text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return nil, err
	}
	if err := s.place(real); err != nil {
		return nil, err
	}
	if err := s.readable(); err != nil {
		return nil, err
	}
	s.head, err = r.text(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if s.base = s.head; err != nil && base == "" {
		return nil, fmt.Errorf("%s: the repository has no commit to start from: commit something first", s.top)
	}
	if base != "" {
		if s.base, err = r.text(ctx, "rev-parse", "--verify", "-q", "--end-of-options", base+"^{commit}"); err != nil ||
			!isObject(s.base) || !s.reachable(ctx, r) {
			return nil, fmt.Errorf("base: expected a branch, a tag, or a commit that one of them contains, of %s, got %q", s.top,
				base)
		}
	}
	return s, s.configure(ctx, r)
}

// reachable reports whether the base is on a branch or another ref, so that object names cannot be guessed.
func (s *source) reachable(ctx context.Context, r gitRun) bool {
	if _, err := r.git(ctx, "merge-base", "--is-ancestor", s.base, "HEAD"); err == nil {
		return true
	}
	refs, err := r.text(ctx, "for-each-ref", "--count=1", "--contains", s.base)
	return err == nil && refs != ""
}

// gitParts are what git reads in a git directory. None may be a symbolic link, or hold one.
var gitParts = []string{"HEAD", "index", "commondir", "objects", "refs", "packed-refs", "shallow", "info"}

// maxAlternates is how deep alternates are followed, as git does.
const maxAlternates = 5

// readable refuses a git directory that leads to files that rules hide: the host reads it with rights that programs
// in the work tree, which can write there, do not have.
func (s *source) readable() error {
	for _, git := range []string{s.git, s.common} {
		for _, name := range gitParts {
			if err := plain(filepath.Join(git, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
		if err := errors.Join(visible(git, s.hidden),
			alternates(filepath.Join(git, "objects"), s.hidden, 0)); err != nil {
			return err
		}
	}
	return nil
}

// plain refuses symbolic links and special files at a path and below it.
func plain(path string) error {
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a program works there
			return nil
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link: isolation is refused", path)
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory: isolation is refused", path)
		}
		return nil
	})
}

// visible refuses a directory that a rule hides, or a part of which git reads.
func visible(dir string, hidden Hidden) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for at := real; at != filepath.Dir(at); at = filepath.Dir(at) {
		if hidden.of(at, true) {
			return fmt.Errorf("%s, which the repository consists of, is denied by a rule: isolation is refused", dir)
		}
	}
	for _, name := range append([]string{"pack", "objects/info", "objects/pack", "refs/heads"}, gitParts...) {
		if part := filepath.Join(real, filepath.FromSlash(name)); hidden.of(part, true) || hidden.of(part, false) {
			return fmt.Errorf("%s, a part of the repository, is denied by a rule: isolation is refused", part)
		}
	}
	return nil
}

// alternates refuses objects of other repositories that a rule hides.
func alternates(objects string, hidden Hidden, depth int) error {
	root, err := os.OpenRoot(objects)
	if errors.Is(err, fs.ErrNotExist) { // of a linked worktree
		return nil
	} else if err != nil {
		return err
	}
	text := readRef(root, "info/alternates")
	if err := root.Close(); err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '"' || depth >= maxAlternates:
			return fmt.Errorf("%s/info/alternates cannot be followed: isolation is refused", objects)
		case !filepath.IsAbs(line):
			line = filepath.Join(objects, line)
		}
		if _, err := os.Stat(line); err != nil {
			continue // git leaves it out
		}
		real, err := filepath.EvalSymlinks(line)
		if err != nil {
			return err
		}
		if err := errors.Join(visible(line, hidden), plain(real), alternates(line, hidden, depth+1)); err != nil {
			return err
		}
	}
	return nil
}

// read reads a file of the repository without following links; nil if it cannot be read.
func (s *source) read(name string) []byte {
	root, err := os.OpenRoot(s.common)
	if err != nil {
		return nil
	}
	defer root.Close()
	return readRef(root, name)
}

// free refuses the name of a branch that exists.
func (s *source) free(ctx context.Context, branch string) error {
	if s.common == "" {
		return nil
	}
	if _, err := (gitRun{dir: s.top}).text(ctx, "rev-parse", "--verify", "-q", "refs/heads/"+branch); err == nil {
		return fmt.Errorf("the branch %s exists already: take another name", branch)
	}
	return nil
}

// hasRepository reports whether a directory, or one above it, has a .git: git has refused it, then.
func hasRepository(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// place refuses a repository whose parts are not in their default places: operations could reach other files.
func (s *source) place(dir string) error {
	below, err := filepath.Rel(s.top, dir)
	if err != nil || !filepath.IsLocal(below) {
		return fmt.Errorf("%s: the work tree of its repository is %s (core.worktree), which does not hold it: isolation is "+
			"refused", dir, s.top)
	}
	s.below = below
	info, err := os.Lstat(filepath.Join(s.top, ".git"))
	if err != nil {
		return fmt.Errorf("%s: its repository is elsewhere (core.worktree): isolation is refused", s.top)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s/.git is a symbolic link: isolation is refused", s.top)
	}
	return nil
}

// configure takes the values of the configuration that the store and the child need, and refuses what a worktree does
// not support.
func (s *source) configure(ctx context.Context, r gitRun) error {
	out, err := r.git(ctx, "config", "--list", "-z", "--includes")
	if err != nil {
		return err
	}
	for _, entry := range fields(out) {
		key, value, has := strings.Cut(entry, "\n")
		if !has {
			value = "true"
		}
		section, name := key[:max(strings.IndexByte(key, '.'), 0)], key[strings.LastIndexByte(key, '.')+1:]
		switch {
		case key == "extensions.partialclone" || section == "remote" && name == "promisor" && value == "true":
			return fmt.Errorf("%s is a partial clone, whose objects may be missing: isolation is refused", s.top)
		case key == "extensions.refstorage" && value != "files":
			return fmt.Errorf("%s keeps its refs as %s: isolation is refused", s.top, value)
		case taken[key], section == "remote" && (name == "url" || name == "fetch"):
			s.config[key] = value
		}
	}
	s.config["core.repositoryformatversion"] = "0"
	if s.config["extensions.objectformat"] != "" {
		s.config["core.repositoryformatversion"] = "1"
	}
	return nil
}

// openStore makes the store of a worktree. It is linked to the repository's objects and refs, as git-new-workdir does
// it.
func (s *source) openStore(st store, branch string) (store, error) {
	dir := st.dir
	st.objects = filepath.Join(s.common, "objects")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return st, err
	}
	if err := s.link(dir); err != nil {
		return st, err
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/"+branch+"\n"), 0o600); err != nil {
		return st, err
	}
	return st, writeConfig(filepath.Join(dir, "config"), s.config, ours, map[string]string{
		"core.hookspath": os.DevNull, "core.fsmonitor": "false", "core.untrackedcache": "false", "core.logallrefupdates": "false",
	})
}

// link makes the entries of a store that lead to the repository.
func (s *source) link(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"exclude": s.exclude(), "attributes": s.read("info/attributes")} {
		if err := os.WriteFile(filepath.Join(dir, "info", name), text, 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{"objects", "refs", "packed-refs", "shallow"} {
		to := filepath.Join(s.common, name)
		info, err := os.Lstat(to)
		if err != nil && name == "shallow" {
			continue
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 { // what the host writes there would be elsewhere
			return fmt.Errorf("%s is a symbolic link: isolation is refused", to)
		}
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// settingsFiles are those of a workspace. They are copied if git ignores them, because they deny files; they are not
// changes of the child.
var settingsFiles = []string{".claude/settings.json", ".claude/settings.local.json", ".toolhost/toolhost.json",
	".toolhost/toolhost.local.json"}

// exclude returns the rules of the repository that ignore files, besides .gitignore.
func (s *source) exclude() []byte {
	return []byte(strings.TrimSuffix(string(s.read("info/exclude")), "\n") + "\n/" +
		strings.Join(settingsFiles, "\n/") + "\n")
}

// bringSettings copies the settings of the workspace that git has not checked out.
func (s *source) bringSettings(tree string) error {
	from, err := os.OpenRoot(s.top)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, name := range settingsFiles {
		if info, err := from.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if _, err := to.Lstat(name); err == nil {
			continue
		}
		if err := errors.Join(to.MkdirAll(filepath.Dir(name), 0o700), copyFile(from, name, to, name)); err != nil {
			return err
		}
	}
	return nil
}
