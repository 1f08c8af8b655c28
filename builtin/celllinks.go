package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/builtin/internal/roottree"
)

// linkPlaces are the directories of the user that a program in a cell may write besides the roots, with their symbolic
// links as they were: path below the directory → target. The user's own programs work in these directories later, and
// would follow a link that the program has left there.
type linkPlaces map[string]map[string]string

// notePlaces records the links in directories. It leaves out files.
func notePlaces(paths []string) linkPlaces {
	places := linkPlaces{}
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			if links, err := linksBelow(real); err == nil {
				places[real] = links
			}
		}
	}
	return places
}

// linksBelow returns the links below a directory. It follows no link.
func linksBelow(dir string) (map[string]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err // also if it is a file
	}
	defer root.Close()
	links := map[string]string{}
	err = roottree.Walk(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return nil // a directory that cannot be listed was not made by the program, which could list its own
		}
		if to, err := root.Readlink(name); err == nil {
			links[name] = to
		}
		return nil
	})
	return links, err
}

// removeNew removes the links that are new or lead elsewhere than before, unless they lead to a place in the same
// directory. It returns lines of a report. No process of the program may be left.
func (p linkPlaces) removeNew() (lines []string) {
	for dir, known := range p {
		now, err := linksBelow(dir)
		if err != nil {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue
		}
		for name, to := range now {
			if was, old := known[name]; old && was == to {
				continue
			}
			if _, err := root.Stat(name); err == nil {
				continue // it leads to a place in the same directory
			}
			path, to := quoteOdd(filepath.Join(dir, name)), quoteOdd(to)
			line := fmt.Sprintf("Removed %s: a link to %s, which programs outside of the sandbox would have followed.",
				path, to)
			if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				line = fmt.Sprintf("The link %s to %s is new and could not be removed: %v. "+
					"Remove it before you use a program that works there.", path, to, err)
			}
			lines = append(lines, line)
		}
		root.Close()
	}
	return lines
}
