package realpath

import (
	"errors"
	"io/fs"
	"strings"
)

// makeDirs returns what it has created even with an error. It refuses a link that has been put into the path since it
// was resolved.
func makeDirs(dir string, perm fs.FileMode) (made CreatedDirs, err error) {
	root, rest, err := openVolume(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := noLinks(root, rest); err != nil {
		return nil, err
	}
	above := strings.TrimSuffix(dir, rest)
	for i := range len(rest) + 1 {
		if i < len(rest) && rest[i] != '\\' {
			continue
		}
		if _, err := root.Lstat(rest[:i]); err == nil { // Mkdir of an existing one may be denied
			continue
		}
		switch err := root.Mkdir(rest[:i], perm.Perm()); {
		case err == nil:
			made = append(made, createdDir{path: above + rest[:i]})
		case !errors.Is(err, fs.ErrExist):
			return made, err
		}
	}
	return made, nil
}

func (d createdDir) remove() bool {
	root, rest, err := openVolume(d.path)
	if err != nil {
		return false
	}
	defer root.Close()
	return noLinks(root, rest) == nil && root.Remove(rest) == nil
}
