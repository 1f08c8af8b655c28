package settle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// A command can put content of a protected name into git without a file: a commit, a branch, an entry of the index. The
// person's own checkout or stash brings it out. Such content is named and recorded as that of a call.

// A gitState is what the repository of a workspace had when it was looked at last.
type gitState struct {
	Mark    string            // equal only if neither refs nor the index have changed
	Refs    map[string]string // HEAD too
	Skipped map[name]bool     // protected names whose files git does not look at
}

const (
	// maxMoved bounds the refs that are compared after a command, and maxPlanted the contents that are read.
	maxMoved, maxPlanted = 64, 256
	// maxBlob bounds a content that is read, in bytes.
	maxBlob = 1 << 20
	// gitTime is how long one command of git may take.
	gitTime = 10 * time.Second
)

// gitDir returns the directory of the repository of the workspace; "" if there is none in it.
func (p *place) gitDir() string {
	dir := filepath.Join(p.dir, ".git")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// gitMark returns a text that changes with the refs and the index. Git replaces these files, so directories tell.
func gitMark(git string) string {
	sum := sha256.New()
	add := func(path string, info fs.FileInfo) {
		st := stampOf(info)
		fmt.Fprintln(sum, path, st)
		if st.racy() {
			fmt.Fprintln(sum, time.Now())
		}
	}
	for _, file := range []string{"HEAD", "packed-refs", "index"} {
		if info, err := os.Lstat(filepath.Join(git, file)); err == nil {
			add(file, info)
		}
	}
	_ = filepath.WalkDir(filepath.Join(git, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if info, err := d.Info(); err == nil {
				add(path, info)
			}
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// gitNow returns the state of the repository, and whether it may be another than was.
func gitNow(git string, was gitState) (now gitState, changed bool) {
	if git == "" {
		return gitState{}, was.Mark != ""
	}
	if now.Mark = gitMark(git); now.Mark == was.Mark {
		return was, false
	}
	now.Refs, now.Skipped = refsOf(git), map[name]bool{}
	index, _ := os.ReadFile(filepath.Join(git, "index")) // without one nothing is skipped
	for _, rel := range skippedIn(index, len(now.Refs["HEAD"])/2) {
		if ClassOf(rel) == Held {
			now.Skipped[name(filepath.FromSlash(rel))] = true
		}
	}
	return now, true
}

// refsOf returns the objects that refs name.
func refsOf(git string) map[string]string {
	refs := map[string]string{}
	packed, _ := os.ReadFile(filepath.Join(git, "packed-refs")) // there may be none
	for line := range strings.Lines(string(packed)) {
		if id, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && isObject(id) {
			refs[ref] = id
		}
	}
	_ = filepath.WalkDir(filepath.Join(git, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		text, _ := os.ReadFile(path) // a ref that is removed meanwhile names nothing
		if rel, err := filepath.Rel(git, path); err == nil && isObject(strings.TrimSpace(string(text))) {
			refs[filepath.ToSlash(rel)] = strings.TrimSpace(string(text))
		}
		return nil
	})
	head, _ := os.ReadFile(filepath.Join(git, "HEAD")) // without it there is no repository
	text := strings.TrimSpace(string(head))
	if ref, ok := strings.CutPrefix(text, "ref: "); ok {
		text = refs[ref]
	}
	if isObject(text) {
		refs["HEAD"] = text
	}
	return refs
}

func isObject(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && (len(id) == 40 || len(id) == 64)
}

// skippedIn returns the names in an index that have skip-worktree set; see gitformat-index(5). digest is the size of an
// object's name, 0 if that is not known.
func skippedIn(index []byte, digest int) (names []string) {
	const header, stat, extended, skip = 12, 40, 0x4000, 0x4000
	digest = cmp.Or(digest, 20)
	if len(index) < header || string(index[:4]) != "DIRC" || index[7] < 3 { // version 2 has no such flag
		return nil
	}
	count := int(index[8])<<24 | int(index[9])<<16 | int(index[10])<<8 | int(index[11])
	last := ""
	for at := header; count > 0; count-- {
		begin, flags := at, at+stat+digest
		if flags+4 > len(index) {
			return names
		}
		skipped := false
		if at = flags + 2; int(index[flags])<<8&extended != 0 {
			skipped, at = int(index[at])<<8&skip != 0, at+2
		}
		if index[7] == 4 { // the name says how much of the last one it replaces
			drop := int(index[at] & 0x7f)
			for ; index[at]&0x80 != 0 && at+1 < len(index); at++ {
				drop = (drop+1)<<7 | int(index[at+1]&0x7f)
			}
			at++
			last = last[:max(len(last)-drop, 0)]
		} else {
			last = ""
		}
		length := bytes.IndexByte(index[min(at, len(index)):], 0)
		if length < 0 {
			return names
		}
		last += string(index[at : at+length])
		if at += length + 1; index[7] != 4 {
			at = begin + (at-begin+7)/8*8
		}
		if skipped {
			names = append(names, last)
		}
	}
	return names
}

// settleGit names and records what commands have put into git only.
func (p *place) settleGit() {
	git := p.gitDir()
	now, changed := gitNow(git, p.rec.Git)
	if !changed {
		return
	}
	was := p.rec.Git
	p.rec.Git = now
	var skipped []string
	for rel := range now.Skipped {
		if !was.Skipped[rel] {
			skipped = append(skipped, rel.String())
		}
	}
	slices.Sort(skipped)
	p.noteAll("Marked skip-worktree by a command, so that git does not show their changes: %s.", skipped)
	if git == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	found, err := p.plantedIn(ctx, git, was, now)
	if err != nil {
		p.note("What a command has put into git could not be compared: %v.", err)
	}
	var names []string
	var made []answer
	for _, b := range found {
		h := p.rec.Held[b.rel]
		if p.memory.known[b.rel][b.id] || p.memory.made[b.rel][b.id] || p.rec.Files[b.rel].ID == b.id ||
			h != nil && (h.Now == b.id || h.Former == b.id) {
			continue
		}
		names = append(names, fmt.Sprintf("%s (%s)", b.rel, name(b.in)))
		made = append(made, answer{madeWord, b.rel, b.id})
	}
	p.noteAll("New content of protected files in git, which a checkout, merge or stash brings out: %s. "+
		"Tell the user to look at it first.", names)
	if err := errors.Join(p.store.write(&p.memory, made), p.store.save(&p.rec)); err != nil {
		p.note("It could not be recorded which protected files a command wrote: %v.", err)
	}
}

// A blob is what git has for a protected name.
type blob struct {
	rel      name
	in       string // a ref, or the index
	mode, of string
	id       identity
}

// plantedIn returns what the index and the refs that have moved have for protected names.
func (p *place) plantedIn(ctx context.Context, git string, was, now gitState) (found []blob, err error) {
	g := gitRunner{ctx: ctx, git: git, own: filepath.Join(p.store.dir, "git"), format: len(now.Refs["HEAD"])}
	if err := g.init(); err != nil {
		return nil, err
	}
	seen, moved := map[string]bool{}, 0
	for _, ref := range slices.Sorted(maps.Keys(now.Refs)) {
		to, from := now.Refs[ref], cmp.Or(was.Refs[ref], was.Refs["HEAD"])
		if to == was.Refs[ref] || seen[from+to] {
			continue
		}
		if seen[from+to] = true; moved == maxMoved {
			p.note("A command moved more than %d refs of git: not all were compared.", maxMoved)
			break
		}
		moved++
		found = append(found, g.changed(ref, from, to)...)
	}
	if head := now.Refs["HEAD"]; head != "" {
		staged, _ := g.list("index", "diff-index", "--cached", "-z", head) // without an index nothing is staged
		found = append(found, staged...)
	}
	found = slices.DeleteFunc(found, func(b blob) bool { return classOf(b.rel) != Held })
	if len(found) > maxPlanted {
		p.note("A command put more than %d protected files into git: not all were compared.", maxPlanted)
		found = found[:maxPlanted]
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found, g.identify(found)
}

// A gitRunner runs git with a repository of its own, which has no settings, on the objects of another.
type gitRunner struct {
	ctx      context.Context
	git, own string
	format   int
}

func (g gitRunner) init() error {
	err := os.MkdirAll(filepath.Join(g.own, "refs"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(g.own, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600)
	}
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
	if g.format == 64 {
		config += "[extensions]\n\tobjectformat = sha256\n"
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(g.own, "config"), []byte(config), 0o600)
	}
	return err
}

func (g gitRunner) run(in string, args ...string) ([]byte, error) {
	cmd := hostprogram.Command(g.ctx, "git", args...)
	cmd.Dir, cmd.Stdin = g.own, strings.NewReader(in)
	cmd.Env = slices.DeleteFunc(slices.Clone(cmd.Environ()),
		func(e string) bool { return strings.HasPrefix(e, "GIT_") })
	cmd.Env = append(cmd.Env, "GIT_DIR="+g.own, "GIT_OBJECT_DIRECTORY="+filepath.Join(g.git, "objects"),
		"GIT_INDEX_FILE="+filepath.Join(g.git, "index"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
	return cmd.Output()
}

// changed returns what differs between two commits; all of the second without a first.
func (g gitRunner) changed(ref, from, to string) []blob {
	if from != "" {
		if found, err := g.list(ref, "diff-tree", "-r", "-z", "--no-renames", from, to); err == nil {
			return found
		}
	}
	found, _ := g.list(ref, "ls-tree", "-r", "-z", "--full-tree", to) // what is no commit cannot be checked out
	return found
}

// list runs a command that lists files, raw as diff-tree or as ls-tree.
func (g gitRunner) list(in string, args ...string) (found []blob, err error) {
	out, err := g.run("", args...)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i < len(fields); i++ {
		about, path, tree := strings.Cut(fields[i], "\t")
		words := strings.Fields(about)
		var b blob
		switch {
		case tree && len(words) == 3:
			b = blob{rel: name(path), in: in, mode: words[0], of: words[2]}
		case !tree && len(words) == 5 && i+1 < len(fields):
			i++
			b = blob{rel: name(fields[i]), in: in, mode: words[1], of: words[3]}
		}
		if strings.HasPrefix(b.mode, "10") || b.mode == "120000" {
			b.rel = name(filepath.FromSlash(string(b.rel)))
			found = append(found, b)
		}
	}
	return found, nil
}

// identify gives contents the identities that their files would have. What is large or not there is known by its name
// only.
func (g gitRunner) identify(list []blob) error {
	var read []*blob
	var in strings.Builder
	for i := range list {
		fmt.Fprintln(&in, list[i].of)
	}
	sizes, err := g.run(in.String(), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return err
	}
	in.Reset()
	for i, line := range strings.Split(strings.TrimSuffix(string(sizes), "\n"), "\n") {
		if size, err := strconv.Atoi(line); i >= len(list) {
			break
		} else if list[i].id = identity("git:" + list[i].of); err == nil && size <= maxBlob {
			read = append(read, &list[i])
			fmt.Fprintln(&in, list[i].of)
		}
	}
	out, err := g.run(in.String(), "cat-file", "--batch=%(objectsize)")
	if err != nil {
		return err
	}
	for _, b := range read {
		line, rest, _ := bytes.Cut(out, []byte("\n"))
		size, err := strconv.Atoi(string(line))
		if err != nil || size < 0 || size >= len(rest) {
			return fmt.Errorf("git cat-file of %s: %q, %w", b.of, line, cmp.Or(err, io.ErrUnexpectedEOF))
		}
		b.id, out = identityOf(b.mode, rest[:size]), rest[size+1:]
	}
	return nil
}

// identityOf returns the identity that a file of git would have, as [identify] does.
func identityOf(mode string, content []byte) identity {
	if mode == "120000" {
		sum := sha256.Sum256(content)
		return identity("link:" + hex.EncodeToString(sum[:]))
	}
	kind := "file"
	if mode == "100755" {
		kind = "program"
	}
	sum := lineSum{Hash: sha256.New()}
	_, _ = sum.Write(content)
	return identity(kind + ":" + hex.EncodeToString(sum.end()))
}
