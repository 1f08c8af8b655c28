package settle

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// maxLeaves bounds the protected files of a workspace that are looked at.
const maxLeaves = 20_000

// A scan is what stands at protected names.
type scan struct {
	marks  []string
	leaves map[name]stamp // everything but directories
	dirs   map[name]bool  // at and below protected names
	states []string       // directories of git with the state of an operation
	litter []string       // copies that a killed host left
	over   bool           // there are more than maxLeaves
}

// scanOf looks at what stands at and below marks: the paths whose last element [IsMark] reports below a directory, and
// [IsGitState] in directories of git.
func scanOf(dir string, marks []string) scan {
	s := scan{marks: marks, leaves: map[name]stamp{}, dirs: map[name]bool{}}
	s.scanGitFile(dir)
	for _, mark := range marks {
		if IsGitState(filepath.Base(mark)) {
			s.states = append(s.states, mark)
			s.scanSequencer(dir, mark)
			continue
		}
		_ = filepath.WalkDir(mark, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // what cannot be listed, package baseline makes readable first
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil || s.over {
				return fs.SkipAll
			}
			if strings.HasPrefix(d.Name(), copyPrefix) && d.Type().IsRegular() {
				s.litter = append(s.litter, path)
				return nil
			}
			class := ClassOf(filepath.ToSlash(rel))
			if d.IsDir() {
				if path != mark && (class == Free || pathname.Folded.Of(d.Name()) == ".git") {
					return fs.SkipDir // protected names in it are marks of their own
				}
				s.dirs[name(rel)] = true
				return nil
			}
			if info, err := d.Info(); err == nil && class != Free {
				s.leaves[name(rel)] = stampOf(info)
				s.over = len(s.leaves) >= maxLeaves
			}
			return nil
		})
	}
	return s
}

// respell gives a file its recorded name if the file system takes that for the same name as its present one.
func (s *scan) respell(dir string, r *record) {
	var known map[string]name // the recorded names, folded
	for rel, st := range maps.Clone(s.leaves) {
		if _, ok := r.Files[rel]; ok || r.Held[rel] != nil {
			continue
		}
		if known == nil {
			known = map[string]name{}
			for _, was := range namesOf(r, scan{}) {
				known[pathname.Folded.Of(string(was))] = was
			}
		}
		was, ok := known[pathname.Folded.Of(string(rel))]
		if _, stands := s.leaves[was]; !ok || stands {
			continue
		}
		here, err := os.Lstat(filepath.Join(dir, string(rel)))
		there, errThere := os.Lstat(filepath.Join(dir, string(was)))
		if err == nil && errThere == nil && os.SameFile(here, there) {
			delete(s.leaves, rel)
			s.leaves[was] = st
		}
	}
}

func (s *scan) scanGitFile(dir string) {
	if info, err := os.Lstat(filepath.Join(dir, gitFile.Pattern)); err == nil && !info.IsDir() {
		s.leaves[name(gitFile.Pattern)] = stampOf(info)
	}
}

// again looks once more at the same files. It reports whether that is enough; otherwise a whole scan is needed. It is
// called only if no file has come, gone or been replaced.
func (s *scan) again(dir string) bool {
	leaves := make(map[name]stamp, len(s.leaves))
	for rel := range s.leaves {
		if rel == name(gitFile.Pattern) {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, string(rel)))
		if err != nil || info.IsDir() {
			return false
		}
		leaves[rel] = stampOf(info)
	}
	s.leaves = leaves
	s.scanGitFile(dir)
	return len(s.states) == 0 && len(s.litter) == 0 && !s.over
}

// namesOf returns the names of some maps, sorted.
func namesOf(r *record, s scan) []name {
	all := slices.Collect(maps.Keys(r.Files))
	all = slices.AppendSeq(all, maps.Keys(r.Held))
	all = slices.AppendSeq(all, maps.Keys(s.leaves))
	slices.Sort(all)
	return slices.Compact(all)
}

// at returns the identity and stamp of what stands at a name.
func (p *place) at(rel name) (id identity, st stamp, err error) {
	path := p.path(rel)
	if _, err := os.Lstat(path); missing(err) || p.goneOf(rel) != "" {
		return absent, stamp{}, nil
	}
	err = inDir(path, func(file side) (err error) {
		if isSequencer(rel) {
			id, st, err = programsOf(rel, file.dir, file.name)
		} else {
			id, st, err = identify(file.dir, file.name)
		}
		return err
	})
	return id, st, err
}

func (p *place) path(rel name) string { return filepath.Join(p.dir, string(rel)) }
