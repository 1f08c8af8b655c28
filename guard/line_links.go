package guard

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// maxFollowed bounds the entries of directories that are looked at for links that
// lead out of the boundary.
const maxFollowed = 20_000

var errLeadsOut = errors.New("a link leads to what Read may not look at")

// leadOut reports whether a command that follows links (grep -R, find -L) could come
// to what Read may not look at: a link below what it is given leads there, or there
// is too much to tell.
func (l *commandJudge) leadOut(files []command.Word, dirs []Path) bool {
	var starts []string
	for _, w := range files {
		for _, dir := range dirs {
			if w.Glob {
				names, _ := l.expand(w, dir)
				starts = append(starts, names...)
			} else if p, err := l.resolve(w, w.Text, dir); err == nil {
				starts = append(starts, p.real)
			}
		}
	}
	if len(files) == 0 {
		for _, dir := range dirs {
			starts = append(starts, dir.real)
		}
	}
	left := maxFollowed
	return slices.ContainsFunc(starts, func(start string) bool { return l.leadsOut(start, &left) })
}

func (l *commandJudge) leadsOut(start string, left *int) bool {
	err := filepath.WalkDir(start, func(path string, entry fs.DirEntry, err error) error {
		if *left--; *left < 0 {
			return errLeadsOut
		}
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return nil // what cannot be opened here the command does not open either
		}
		if p, err := l.data.resolve(Path{given: filepath.Dir(path), real: filepath.Dir(path)}, filepath.Base(path)); err == nil && !l.readable(p) {
			return errLeadsOut
		}
		return nil
	})
	return err != nil
}
