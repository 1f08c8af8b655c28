// Package skill reads Agent Skills (https://agentskills.io): directories with a file SKILL.md.
package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/mdfile"
	"github.com/toolhost/toolhost/builtin/internal/roottree"
)

// Limits of skills.
const (
	maxSkills = 256      // in a directory
	maxFiles  = 512      // of a skill, as SEP-2640 limits them
	maxBytes  = 16 << 20 // of the files of a skill together
	// MaxText is the largest SKILL.md, in bytes.
	MaxText = 1 << 20
	// File is the name of the file that makes a directory a skill.
	File = "SKILL.md"
)

// name matches the names that the specification permits.
var name = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

const maxName = 64

// A Source is a directory with skills.
type Source struct {
	// Prefix says whose skills they are. It precedes their names in their paths.
	Prefix, Dir string
}

// A Skill is a skill.
type Skill struct {
	Name, Description string
	// Path is the prefix of the source and the name.
	Path string
	// Members are the members at the head of SKILL.md, as JSON.
	Members json.RawMessage
	// Dir is the directory, and Text what follows the members.
	Dir, Text string
}

// A Content is the content of one file of a skill. Name is its path in the directory of the skill, with slashes.
type Content struct {
	Name, Digest string
	Size         int64
}

// Load reads the skills of the sources, by path. It leaves out those with a file that may not be read. The error has
// a line for each directory that is left out.
func Load(sources []Source, mayRead func(file string) bool) (all []Skill, wrong error) {
	for _, source := range sources {
		root, err := mdfile.OpenDir(source.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		names, err := list(root, source.Dir)
		wrong = errors.Join(wrong, err)
		for _, name := range names {
			s, err := load(root, source, name, mayRead)
			if err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s: the skill is left out: %w", filepath.Join(source.Dir, name), err))
			} else if s != nil {
				all = append(all, *s)
			}
		}
		root.Close()
	}
	slices.SortFunc(all, func(a, b Skill) int { return strings.Compare(a.Path, b.Path) })
	return all, wrong
}

// list returns the names of the directories in a directory. The error names the links to directories, which are not
// followed.
func list(root *os.Root, dir string) (names []string, wrong error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxSkills)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		} else if link := filepath.Join(dir, e.Name()); e.Type() == fs.ModeSymlink {
			if info, err := os.Stat(link); err == nil && info.IsDir() {
				wrong = errors.Join(wrong, fmt.Errorf("%s: the skill is left out: it is a symbolic link: replace it with the "+
					"directory", link))
			}
		}
	}
	return names, wrong
}

// load reads a skill, or returns nil if the directory has no SKILL.md that may be read.
func load(root *os.Root, source Source, dir string, mayRead func(string) bool) (*Skill, error) {
	file := filepath.Join(source.Dir, dir, File)
	if !mayRead(file) {
		return nil, nil
	}
	text, err := mdfile.Read(root, filepath.Join(dir, File), MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	members, body, err := mdfile.Split(text)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("its members cannot be sent to clients: %w", err)
	}
	s := &Skill{Members: encoded, Dir: filepath.Join(source.Dir, dir), Text: body, Path: source.Prefix + "/" + dir}
	s.Name, _ = members["name"].(string)
	s.Description, _ = members["description"].(string)
	switch {
	case s.Name != dir:
		return nil, fmt.Errorf("its name is %q, but its directory is %q: use the same", s.Name, dir)
	case !name.MatchString(s.Name) || len(s.Name) > maxName:
		return nil, fmt.Errorf("its name is %q: at most %d of a-z, 0-9 and single - are expected", s.Name, maxName)
	case strings.TrimSpace(s.Description) == "":
		return nil, errors.New("it has no description")
	}
	return s, nil
}

// Files returns the files of the skill.
func (s *Skill) Files(mayRead func(file string) bool) (files []Content, err error) {
	root, err := mdfile.OpenDir(s.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	left := int64(maxBytes)
	err = roottree.Walk(root, ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case len(files) == maxFiles:
			return fmt.Errorf("it has more than %d files", maxFiles)
		case !mayRead(filepath.Join(s.Dir, filepath.FromSlash(path))):
			return fmt.Errorf("%s may not be read", path)
		}
		text, err := mdfile.Read(root, filepath.FromSlash(path), left)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		left -= int64(len(text))
		sum := sha256.Sum256(text)
		files = append(files, Content{path, "sha256:" + hex.EncodeToString(sum[:]), int64(len(text))})
		return nil
	})
	return files, err
}

// IsDir reports whether the skill has a directory with this name.
func (s *Skill) IsDir(name string) bool {
	root, err := mdfile.OpenDir(s.Dir)
	if err != nil || !fs.ValidPath(name) {
		return false
	}
	defer root.Close()
	info, err := root.Lstat(filepath.FromSlash(name))
	return err == nil && info.IsDir()
}

// Read returns the content of a file of the skill.
func (s *Skill) Read(file string) ([]byte, error) {
	if !fs.ValidPath(file) {
		return nil, fs.ErrNotExist
	}
	root, err := mdfile.OpenDir(s.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return mdfile.Read(root, filepath.FromSlash(file), maxBytes)
}
