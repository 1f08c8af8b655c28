package realpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Identify returns zero values, see [ID].
func Identify(fs.FileInfo) (ID, uint64) { return ID{}, 0 }

// Open opens path with flag below its volume through [os.Root], and refuses
// a path that a link has come into since it was resolved. Windows cannot do both
// in one step: a link put there in between is followed, though not to another
// volume.
func Open(path string, flag int) (*os.File, error) {
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

func openBare(path string) (*os.File, error) { return Open(path, os.O_RDONLY) }

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
