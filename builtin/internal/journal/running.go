package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/checkpoint"
	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	roomsName = "rooms"
	// maxRunning is the longest description of a command that runs, in bytes.
	maxRunning = 64 << 10
)

// A Running is a command that a host with this journal runs now. It is the content of the file of its entry, so that
// the next process can settle the entry of a killed host.
type Running struct {
	ID        string    `json:"id"`        // of its entry
	PID       int       `json:"pid"`       // of the host
	Principal string    `json:"principal"` // whose command it is
	Scope     string    `json:"scope,omitempty"`
	Tool      string    `json:"tool,omitempty"`
	Command   string    `json:"command"`
	Roots     []string  `json:"roots"` // that it may write in
	Bases     []Base    `json:"bases,omitempty"`
	Open      []string  `json:"open,omitempty"` // other entries that had not ended
	Begun     time.Time `json:"begun"`
	Lasting   bool      `json:"lasting,omitempty"` // of [Call]
}

// A Base says where the state of a root is recorded that stood when a command began.
type Base struct {
	Root  string           `json:"root"`
	Room  string           `json:"room"` // name of a directory that [Journal.Room] made
	Begun checkpoint.Begun `json:"begun"`
}

// Room makes a directory for the base of a root. The caller removes it; one of a killed host is removed when no
// command needs it any more. It returns "" without a journal.
func (j *Journal) Room() (dir string, err error) {
	if j.cfg.Dir == "" {
		return "", nil
	}
	dir = j.roomAt(j.owner.name + "." + shortID())
	return dir, os.MkdirAll(dir, ownerDir)
}

func (j *Journal) roomAt(name string) string { return filepath.Join(j.cfg.Dir, roomsName, name) }

// sweepRooms removes the rooms of dead owners that no command needs.
func (j *Journal) sweepRooms() error {
	entries, err := os.ReadDir(filepath.Join(j.cfg.Dir, roomsName))
	if len(entries) == 0 {
		return nil
	}
	needed := map[string]bool{}
	if err := j.eachRunning(false, func(_ string, r Running, _ bool) {
		for _, b := range r.Bases {
			needed[b.Room] = true
		}
	}); err != nil {
		return err
	}
	for _, e := range entries {
		owner, _, _ := strings.Cut(e.Name(), ".")
		if !needed[e.Name()] && idNames.MatchString(owner) && !j.owner.alive(owner) {
			err = errors.Join(err, os.RemoveAll(j.roomAt(e.Name())))
		}
	}
	return err
}

// RunningIn returns the commands that run and may write in or above one of some directories, the oldest first.
func (j *Journal) RunningIn(dirs ...string) (all []Running, err error) {
	err = j.eachRunning(false, func(_ string, r Running, alive bool) {
		if alive && (r.Roots == nil || slices.ContainsFunc(r.Roots, func(root string) bool {
			return slices.ContainsFunc(dirs, func(dir string) bool { return isWithin(root, dir) || isWithin(dir, root) })
		})) {
			all = append(all, r)
		}
	})
	slices.SortFunc(all, func(a, b Running) int { return a.Begun.Compare(b.Begun) })
	return all, err
}

// UnsettledRoots returns the roots of commands whose host was killed and whose entries are not settled.
func (j *Journal) UnsettledRoots() (roots []string, err error) {
	err = j.eachRunning(true, func(_ string, r Running, _ bool) { roots = append(roots, r.Roots...) })
	return roots, err
}

// Killed takes over the entries of commands whose host was killed while they ran: those that mine selects, each by one
// process. The caller ends each with Settle, or gives it back.
func (j *Journal) Killed(mine func(Running) bool) (all []*Entry, err error) {
	err = j.eachRunning(true, func(file string, r Running, _ bool) {
		// If it cannot be renamed, another process has it.
		if idNames.MatchString(r.ID) && mine(r) && os.Rename(file, j.owner.openFile(r.ID)) == nil {
			all = append(all, &Entry{Running: r, journal: j, taken: file})
		}
	})
	return all, err
}

// RoomOf returns the directory of a base.
func (j *Journal) RoomOf(b Base) string { return j.roomAt(b.Room) }

// GiveBack leaves an entry that was taken over to the next process, or to the next time.
func (e *Entry) GiveBack() { _ = os.Rename(e.journal.owner.openFile(e.ID), e.taken) }

// eachRunning reads the files of the entries of commands, or with killed only those of killed hosts. These stay until
// they are settled, or are old. What cannot be read has no roots.
func (j *Journal) eachRunning(killed bool, do func(file string, r Running, alive bool)) error {
	if j.cfg.Dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(j.cfg.Dir, openName, "*.*"))
	living := map[string]bool{}
	for _, file := range files {
		owner, _, _ := strings.Cut(filepath.Base(file), ".")
		alive, known := living[owner]
		if !known {
			alive = idNames.MatchString(owner) && j.owner.alive(owner)
			living[owner] = alive
		}
		if alive && killed {
			continue // a host with many tasks would read all of them before each command
		}
		raw, readErr := privatefile.Read(file, maxRunning)
		if errors.Is(readErr, os.ErrNotExist) || readErr == nil && len(raw) == 0 {
			continue // it has just ended, or is an entry whose files are announced
		}
		var r Running
		if err := errors.Join(readErr, json.Unmarshal(raw, &r)); err != nil {
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
