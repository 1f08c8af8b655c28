package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// inProject returns an error if a symbolic link in the path of a file of a project leads outside of the project, or
// to nothing. A repository may contain links, and an edit through one would change a file of the user.
func inProject(project, file string) error {
	root, err := filepath.EvalSymlinks(project)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(project, file)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%s does not lie in %s", file, project)
	}
	at := root
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return nil // it will be created here
		}
		to, err := filepath.EvalSymlinks(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is a symbolic link to a file that does not exist: remove it first", at)
		case err != nil:
			return err
		}
		if below, err := filepath.Rel(root, to); err != nil || !filepath.IsLocal(below) {
			return fmt.Errorf("%s is a symbolic link to %s, outside of %s, and is not followed: "+
				"replace it with a file or directory of the project, or edit that file yourself", at, to, project)
		}
		at = to
	}
	return nil
}
