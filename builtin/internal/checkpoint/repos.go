package checkpoint

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// What is in a directory .git is not kept. A command that removes a repository, or moves it, is told what an undo will
// not bring back. A file .git, of a submodule or a linked work tree, is kept as any other.

const gitName = ".git"

// maxRepoFiles bounds how many files of a repository are counted.
const maxRepoFiles = 100_000

// repo is the .git of a directory; the zero repo is none.
type repo struct {
	id    walk.ID
	files int // when it was seen first
}

// lostRepo is a repository that is not where it was.
type lostRepo struct {
	seq  uint64
	path string
	repo
}

// setRepo looks at the .git of a directory that was listed.
func (t *Tracker) setRepo(d *dir, there bool) {
	was := d.repo
	if d.repo = (repo{}); there {
		info, err := t.files.root.Stat(d.rel + ".git")
		if err != nil {
			return
		}
		d.repo = repo{walk.ID{Device: info.Device, Inode: info.Inode}, was.files}
	}
	switch {
	case d.repo.id == was.id:
		return
	case was != repo{}:
		t.loseRepo(d.rel, was)
	}
	if there {
		d.repo.files = countFiles(filepath.Join(t.cfg.Root, d.rel, ".git"))
		t.reposAt[d.repo.id] = d.rel + ".git"
	}
}

func (t *Tracker) loseRepo(rel string, r repo) {
	if t.events.marked() {
		t.lostRepos = append(t.lostRepos, lostRepo{t.seq.Add(1), rel + ".git", r})
	}
	if t.reposAt[r.id] == rel+".git" {
		delete(t.reposAt, r.id)
	}
}

// repoNotes tells of the repositories that were removed or moved while a command ran.
func (t *Tracker) repoNotes(m *Mark) (notes []string) {
	for _, l := range t.lostRepos {
		if now := t.reposAt[l.id]; l.seq > m.start && now != "" && now != l.path {
			notes = append(notes, fmt.Sprintf("%s is at %s now: an undo does not move it back", strconv.Quote(l.path),
				strconv.Quote(now)))
		} else if l.seq > m.start && now == "" {
			notes = append(notes, fmt.Sprintf("%s with %d files was removed: it is not kept, and no undo brings it back",
				strconv.Quote(l.path), l.files))
		}
	}
	return notes
}

// countFiles counts the files in a directory.
func countFiles(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		if n == maxRepoFiles {
			return fs.SkipAll
		}
		return nil
	})
	return n
}
