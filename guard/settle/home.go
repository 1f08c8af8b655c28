package settle

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// ownFiles are files in the home directory that programs of the user change while commands run, or that hold
// credentials, of which no copies are made.
var ownFiles = map[string]bool{".claude.json": true, ".netrc": true, ".pypirc": true}

// OwnOfHome returns the paths directly in a home directory that have protected names but are not settled:
// directories, which hold caches, extensions and files that agents write all the time, and a few files. The sandbox
// protects them instead.
func OwnOfHome(home string) (own []string) {
	entries, _ := os.ReadDir(home) // what cannot be listed, commands cannot list either
	for _, e := range entries {
		if (e.IsDir() || ownFiles[pathname.Folded.Of(e.Name())]) && ClassOf(e.Name()) != Free {
			own = append(own, filepath.Join(home, e.Name()))
		}
	}
	return own
}

// ownOfHome returns the paths of OwnOfHome that lie in a directory.
func ownOfHome(dir string) map[name]bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if rel, err := filepath.Rel(dir, home); err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	own := map[name]bool{}
	for _, path := range OwnOfHome(home) {
		if rel, err := filepath.Rel(dir, path); err == nil {
			own[name(rel)] = true
		}
	}
	return own
}

// isOwn reports whether a name lies at or below one that is not settled.
func (p *place) isOwn(rel name) bool {
	for at := range prefixes(string(rel)) {
		if p.rec.Own[name(at)] {
			return true
		}
	}
	return false
}

// scan looks at what stands at the names that are settled.
func (p *place) scan() scan {
	marks, listed := p.marks(p.dir)
	marks = slices.DeleteFunc(marks, func(mark string) bool {
		rel, err := filepath.Rel(p.dir, mark)
		return err == nil && p.isOwn(name(rel))
	})
	same := listed != 0 && listed == p.listed && slices.Equal(marks, p.last.marks) && p.last.again(p.dir)
	if !same {
		p.last, p.listed = scanOf(p.dir, marks), listed
		p.last.respell(p.dir, &p.rec)
	}
	return p.last
}
