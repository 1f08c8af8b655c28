package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/guard/privatefile"
)

// parentRules are the git ignore rules of the directories above a root, and how much of the room they take.
func parentRules(root string, room *ignore.Budget) (chain *ignore.Chain, size int64) {
	var levels []*ignore.DirRules
	above := ""
	for dir := root; filepath.Dir(dir) != dir; {
		above = filepath.Base(dir) + "/" + above
		dir = filepath.Dir(dir)
		if opened, err := walk.OpenRoot(dir); err == nil { // else it has no rules that can be read
			files, _ := ignore.StatFiles(opened, dir, "", room)
			level := gitRules(files, 0, above, room)
			levels = append(levels, level)
			size += files.Size() + level.Size()
			opened.Close()
		}
	}
	chain = ignore.NewChain(&ignore.DirRules{})
	for _, level := range slices.Backward(levels) {
		chain = chain.Push(level)
	}
	return chain, size
}

// gitRules are the rules of git alone: what other files ignore for searches only is kept.
func gitRules(files ignore.Files, depth int, above string, room *ignore.Budget) *ignore.DirRules {
	files.Rg, files.Dot = nil, nil
	return files.Parse(depth, above, room)
}

func isRepo(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// readRules reads the ignore files of a directory that was listed. Those for which there is no room are left out: more
// is covered then.
func (t *Tracker) readRules(d *dir, listed []walk.Entry) {
	t.dropRules(d)
	if d.up != nil {
		d.chain = d.up.chain
	} else {
		d.chain, d.rules = parentRules(t.cfg.Root, t.room)
	}
	if !d.ignored {
		files, _ := ignore.ReadFiles(t.files.root, t.cfg.Root, d.rel, listed, t.room)
		level := gitRules(files, len(d.rel), "", t.room)
		d.chain = d.chain.Push(level)
		d.rules += files.Size() + level.Size()
	}
}

// dropRules gives back what the ignore files of a directory take of the room.
func (t *Tracker) dropRules(d *dir) {
	t.room.Give(d.rules)
	d.rules = 0
}

// maxGitFile bounds what is read of a file of git's own, in bytes: packed-refs with some 100,000 references.
const maxGitFile = 8 << 20

// readSmall reads a regular file that commands may have replaced by anything. It returns nothing if it cannot be read.
func readSmall(path string) []byte {
	content, err := privatefile.Read(path, maxGitFile)
	if err != nil {
		return nil
	}
	return content
}

// gitDir returns the directory of the repository whose work tree is dir, with its objects, references and excludes.
func gitDir(dir string) string {
	git := filepath.Join(dir, ".git")
	if file := readSmall(git); len(file) > 0 {
		git = pathIn(dir, strings.TrimPrefix(string(file), "gitdir: "))
	}
	if common := readSmall(filepath.Join(git, "commondir")); len(common) > 0 {
		return pathIn(git, string(common))
	}
	return git
}

// pathIn is the path that the first line of a file in dir names.
func pathIn(dir, line string) string {
	line, _, _ = strings.Cut(line, "\n")
	if filepath.IsAbs(line) {
		return filepath.Clean(line)
	}
	return filepath.Join(dir, line)
}

// repoOf returns the work tree that a directory belongs to, "" if there is none.
func repoOf(dir string) string {
	for !isRepo(dir) {
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
	return dir
}

// headOf identifies the commit that is checked out, for comparisons.
func headOf(root string) string {
	repo := repoOf(root)
	if repo == "" {
		return ""
	}
	git := filepath.Join(repo, ".git")
	if file := readSmall(git); len(file) > 0 { // a linked work tree has a HEAD of its own
		git = pathIn(repo, strings.TrimPrefix(string(file), "gitdir: "))
	}
	head := readSmall(filepath.Join(git, "HEAD"))
	ref, found := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if !found || !filepath.IsLocal(ref) {
		return string(head)
	}
	if commit := readSmall(filepath.Join(gitDir(repo), ref)); len(commit) > 0 {
		return string(head) + string(commit)
	}
	for line := range strings.Lines(string(readSmall(filepath.Join(gitDir(repo), "packed-refs")))) {
		if strings.HasSuffix(strings.TrimSpace(line), " "+ref) {
			return string(head) + line
		}
	}
	return string(head)
}
