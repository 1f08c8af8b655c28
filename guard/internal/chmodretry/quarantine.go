package chmodretry

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// quarantined and a number are added to the name of what is moved away.
const quarantined = ".quarantined-"

// maxQuarantine bounds the search for a free number.
const maxQuarantine = 100

// Quarantine renames a file of a tree, with ".quarantined-1" and so on added: nothing is lost, but no program
// loads it by its name any more. It returns the new name.
func Quarantine(tree *os.Root, name string) (string, error) {
	to := freeName(tree, name)
	return to, Do(tree, filepath.Dir(name), func() error { return tree.Rename(name, to) })
}

// Quarantined reports whether a name is one that [Quarantine] gives.
func Quarantined(name string) bool { return strings.Contains(name, quarantined) }

// freeName returns an unused name in the directory of name: with the next number, or if many are used, a
// random one.
func freeName(tree *os.Root, name string) string {
	for i := 1; i <= maxQuarantine; i++ {
		free := name + quarantined + strconv.Itoa(i)
		if _, err := tree.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free
		}
	}
	return name + quarantined + rand.Text()
}
