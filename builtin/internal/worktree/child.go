package worktree

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/roottree"
)

const (
	// refsFile, in the worktree's directory, lists the refs of the child at its start.
	refsFile = "refs"
	// maxRefs bounds the branches of a child that are imported.
	maxRefs = 100
	// maxRefFile is how much is read of a file of refs, in bytes.
	maxRefFile = 16 << 20
)

// makeChild makes the repository in the worktree, which programs there work with.
func (w *Worktree) makeChild(ctx context.Context, s *source, tree, concealed string) error {
	git := filepath.Join(w.Tree(), ".git")
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads/toolhost", "info"} {
		if err := os.MkdirAll(filepath.Join(git, dir), 0o700); err != nil {
			return err
		}
	}
	refs, err := w.store.run(index).git(ctx, "for-each-ref", "--format=%(objectname) %(refname)%0a^%(*objectname)",
		"--sort=refname",
		"refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return err
	}
	packed := "# pack-refs with: peeled fully-peeled sorted \n" + strings.ReplaceAll(string(refs), "^\n", "")
	files := map[string]string{
		"info/exclude": string(s.exclude()), "HEAD": "ref: refs/heads/" + w.BranchName() + "\n", "packed-refs": packed, "objects/info/alternates": w.store.objects + "\n",
	}
	if raw := s.read("shallow"); len(raw) > 0 {
		files["shallow"] = string(raw)
	}
	if err := os.WriteFile(filepath.Join(w.dir, refsFile), []byte(packed), 0o600); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(git, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := writeConfig(filepath.Join(git, "config"), s.config, ours); err != nil {
		return err
	}
	if tree == w.Begun {
		raw, err := os.ReadFile(filepath.Join(w.store.dir, index))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(git, "index"), raw, 0o600)
	}
	r := w.store.run(index) // what was brought along is not staged
	r.env = append(r.env, "GIT_INDEX_FILE="+filepath.Join(git, "index"))
	if _, err = r.git(ctx, "read-tree", tree); err != nil || concealed == "" {
		return err
	}
	known, err := r.git(ctx, "ls-files", "-z")
	if err != nil {
		return err
	}
	r.in = strings.NewReader(strings.Join(slices.DeleteFunc(fields(known), func(name string) bool {
		return !strings.Contains("\x00"+concealed, "\x00"+name+"\x00")
	}), "\x00"))
	_, err = r.git(ctx, skipWorktree...)
	return err
}

// A tip is a branch of the child that has moved since its start.
type tip struct{ ref, commit string }

// tips reads the commits of the child's HEAD and branches. The child can write them, so they are read as text, below
// the worktree. A ref that cannot be read is not imported.
func (w *Worktree) tips() (head string, moved []tip) {
	tree, err := os.OpenRoot(w.Tree())
	if err != nil {
		return "", nil
	}
	defer tree.Close()
	git, err := tree.OpenRoot(".git") // not one that a link leads to outside
	if err != nil {
		return "", nil
	}
	defer git.Close()
	refs := parseRefs(readRef(git, "packed-refs"))
	_ = roottree.Walk(git, "refs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if text := strings.TrimSpace(string(readRef(git, path))); isObject(text) {
			refs[path] = text
		}
		return nil
	})
	head = strings.TrimSpace(string(readRef(git, "HEAD")))
	if name, ok := strings.CutPrefix(head, "ref: "); ok {
		head = refs[name]
	}
	if !isObject(head) {
		head = ""
	}
	raw, _ := os.ReadFile(filepath.Join(w.dir, refsFile)) // an absent one says that all have moved
	began := parseRefs(raw)
	for ref, commit := range refs {
		if (strings.HasPrefix(ref, "refs/heads/") || ref == "refs/stash") && began[ref] != commit && commit != head &&
			len(moved) < maxRefs {
			moved = append(moved, tip{ref, commit})
		}
	}
	return head, moved
}

// readRef reads a file of a git directory, nil if it cannot be read.
func readRef(git *os.Root, name string) []byte {
	f, err := openRegular(git, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(limited(f)); err != nil {
		return nil
	}
	return b.Bytes()
}

// parseRefs reads packed-refs.
func parseRefs(text []byte) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if commit, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && isObject(commit) {
			refs[ref] = commit
		}
	}
	return refs
}

// isObject reports whether a text is the name of an object.
func isObject(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && (len(text) == 40 || len(text) == 64)
}

// objectFiles are the names of the files of objects.
var objectFiles = regexp.MustCompile(`^([0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]{40,64}\.(pack|idx))$`)

// bringHome imports the objects of the child's commits into the repository. They are copied to a directory that only
// the host writes, without the child's alternates, and git checks each of them as in a fetch.
func (w *Worktree) bringHome(ctx context.Context, commits []string) (err error) {
	step("bring")
	quarantine, err := os.MkdirTemp(w.dir, "objects-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(quarantine)) }()
	if err := copyObjects(w.Tree(), quarantine); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, refsFile))
	if err != nil {
		return err
	}
	revs := strings.Join(commits, "\n") + "\n--not\n" + w.Base + "\n"
	if w.Commit != "" {
		revs += w.Commit + "\n"
	}
	for _, commit := range parseRefs(raw) {
		revs += commit + "\n"
	}
	r := w.store.run(index)
	r.env = append(r.env, "GIT_OBJECT_DIRECTORY="+quarantine, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+w.store.objects)
	pack, err := os.CreateTemp(quarantine, "commits-") // not in memory: a child may have committed gigabytes
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	r.in, r.out = strings.NewReader(revs), pack
	if _, err := r.git(ctx, "pack-objects", "--revs", "--stdout", "-q"); err != nil {
		return fmt.Errorf("the commits made in the worktree cannot be read: %w", err)
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r = w.store.run(index)
	r.in = pack
	if _, err = r.git(ctx, "index-pack", "--stdin", "--fix-thin", "--strict"); err != nil {
		return fmt.Errorf("the commits made in the worktree are not sound: %w", err)
	}
	return nil
}

// copyObjects copies the objects that the child made.
func copyObjects(from, dir string) error {
	tree, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer tree.Close()
	objects, err := tree.OpenRoot(".git/objects")
	if err != nil {
		return err
	}
	defer objects.Close()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	return roottree.Walk(objects, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !objectFiles.MatchString(path) {
			return err
		}
		if err := to.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return copyFile(objects, path, to, path)
	})
}
