package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A fileID tells one file from another. Windows does not tell it cheaply, so
// hard links are not recognised there.
type fileID struct{ dev, ino uint64 }

func identify(fs.FileInfo) (fileID, uint64) { return fileID{}, 0 }

// openFile opens path with flag below its volume through [os.Root], and refuses
// a path that a link has come into since it was resolved. Windows cannot do both
// in one step: a link put there in between is followed, though not to another
// volume.
func openFile(path string, flag int) (*os.File, error) {
	root, rest, err := openVolume(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := noLinks(root, rest); err != nil {
		return nil, err
	}
	return root.OpenFile(rest, flag, 0)
}

func openBare(path string) (*os.File, error) { return openFile(path, os.O_RDONLY) }

func makeDirs(dir string, perm fs.FileMode) error {
	root, rest, err := openVolume(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := noLinks(root, rest); err != nil {
		return err
	}
	return root.MkdirAll(rest, perm.Perm())
}

func openVolume(path string) (*os.Root, string, error) {
	volume := filepath.VolumeName(path) + `\`
	root, err := os.OpenRoot(volume)
	rest := strings.TrimPrefix(path[len(volume)-1:], `\`)
	if rest == "" {
		rest = "."
	}
	return root, rest, err
}

func noLinks(root *os.Root, rest string) error {
	for i := range len(rest) + 1 {
		if i < len(rest) && rest[i] != '\\' {
			continue
		}
		info, err := root.Lstat(rest[:i])
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			return ErrSwapped
		}
	}
	return nil
}
