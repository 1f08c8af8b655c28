package clients

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// ErrTemporary is returned for a binary that `go run` built: it is deleted when the build cache is cleaned.
var ErrTemporary = errors.New("this is a temporary binary of go run, which a client cannot start later: run " +
	"CGO_ENABLED=0 go install ./cmd/toolhost, then toolhost install")

// Self returns the absolute path by which a client should start this program. It prefers a path that stays valid when
// the program is updated (a link on the PATH, as package managers create it) to its target.
func Self() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return ownExecutable(executable, os.Args[0], hostprogram.Find)
}

func ownExecutable(executable, called string, look func(string) (string, error)) (string, error) {
	if isGoRun(executable) {
		return "", ErrTemporary
	}
	names := []string{filepath.Base(called), "toolhost", called}
	for i, name := range names {
		path := name
		if i < 2 || !strings.ContainsRune(name, filepath.Separator) {
			found, err := look(name)
			if err != nil {
				continue
			}
			path = found
		}
		if path, err := filepath.Abs(path); err == nil && sameFile(path, executable) {
			return path, nil
		}
	}
	return filepath.Abs(executable)
}

// isGoRun reports whether a path is one where the go command builds programs to run: in a temporary directory
// go-build123, or in the build cache.
func isGoRun(path string) bool {
	if cache := os.Getenv("GOCACHE"); cache != "" &&
		strings.HasPrefix(path, filepath.Clean(cache)+string(filepath.Separator)) {
		return true
	}
	for element := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if rest, ok := strings.CutPrefix(element, "go-build"); ok && strings.Trim(rest, "0123456789") == "" {
			return true
		}
	}
	return false
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
