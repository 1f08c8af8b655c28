package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	runningName = "running"
	// maxRunning is the longest description of a command that runs, in bytes.
	maxRunning = 64 << 10
)

// A Running is a command that a host with this history runs now.
type Running struct {
	PID       int       `json:"pid"`       // of the host
	Principal string    `json:"principal"` // whose command it is
	Command   string    `json:"command"`
	Roots     []string  `json:"roots"` // that it may write in
	Begun     time.Time `json:"begun"`
}

// Announce lets other hosts know that a command runs, until end is called or this process dies.
func Announce(s *Store, r Running) (end func(), err error) {
	if s.cfg.Dir == "" {
		return func() {}, nil
	}
	r.PID, r.Begun, r.Command = os.Getpid(), time.Now().UTC().Round(0), shortened(r.Command)
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.cfg.Dir, runningName)
	if err := os.MkdirAll(dir, ownerDir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, s.owners.name+"."+shortID())
	return func() { _ = os.Remove(file) }, os.WriteFile(file, raw, ownerFile) // what stays is removed once its owner is gone
}

// RunningIn returns the commands that run and may write in or above a directory, the oldest first.
func RunningIn(s *Store, path string) (all []Running, err error) {
	err = eachRunning(s, func(file string, r Running, alive bool) {
		if alive && (r.Roots == nil || slices.ContainsFunc(r.Roots, func(root string) bool { return isWithin(root, path) || isWithin(path, root) })) {
			all = append(all, r)
		}
	})
	slices.SortFunc(all, func(a, b Running) int { return a.Begun.Compare(b.Begun) })
	return all, err
}

// Abandoned returns the commands of a principal whose host was killed while they ran, each once.
func Abandoned(s *Store, principal string) (all []Running, err error) {
	err = eachRunning(s, func(file string, r Running, alive bool) {
		if !alive && r.Principal == principal && os.Remove(file) == nil {
			all = append(all, r)
		}
	})
	return all, err
}

// eachRunning reads the announcements of commands. Those of killed hosts stay until Abandoned returns them, or they are old. An announcement that
// cannot be read has no roots.
func eachRunning(s *Store, do func(file string, r Running, alive bool)) error {
	if s.cfg.Dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(s.cfg.Dir, runningName, "*.*"))
	for _, file := range files {
		owner, _, _ := strings.Cut(filepath.Base(file), ".")
		alive := idNames.MatchString(owner) && s.owners.alive(owner)
		var r Running
		raw, err := privatefile.Read(file, maxRunning)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has just ended
		}
		if err = errors.Join(err, json.Unmarshal(raw, &r)); err != nil {
			r = Running{Command: fmt.Sprintf("(unknown: %v)", err)}
		}
		if !alive && time.Since(r.Begun) > DefaultMaxAge {
			_ = os.Remove(file)
			continue
		}
		do(file, r, alive)
	}
	return err
}

// shortened is the part of a command line that the history keeps.
func shortened(command string) string {
	return strings.ToValidUTF8(command[:min(len(command), maxCommand)], "\uFFFD")
}
