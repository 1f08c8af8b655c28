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
	runningName = "running"
	roomsName   = "rooms"
	// maxRunning is the longest description of a command that runs, in bytes.
	maxRunning = 64 << 10
)

// A Running is a command that a host with this history runs now. It is announced on disk before the command starts,
// so that the next process can settle the entry of a killed host.
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

// Announce lets other hosts know that a command runs, until end is called or this process dies. It returns the ID of
// the entry that the command will make.
func Announce(j *Journal, r Running) (id string, end func(), err error) {
	r.ID = shortID()
	if j.cfg.Dir == "" {
		return r.ID, func() {}, nil
	}
	r.PID, r.Begun, r.Command = os.Getpid(), r.Begun.UTC().Round(0), shortened(r.Command)
	raw, err := json.Marshal(r)
	if err != nil {
		return "", nil, err
	}
	dir := filepath.Join(j.cfg.Dir, runningName)
	if err := os.MkdirAll(dir, ownerDir); err != nil {
		return "", nil, err
	}
	file := filepath.Join(dir, j.owners.name+"."+r.ID)
	return r.ID, func() { _ = os.Remove(file) }, os.WriteFile(file, raw, ownerFile) // what stays is settled once its owner is gone
}

// Room makes a directory for the base of a root. The caller removes it; one of a killed host is removed when no
// command needs it any more. It returns "" without a history.
func (j *Journal) Room() (dir string, err error) {
	if j.cfg.Dir == "" {
		return "", nil
	}
	dir = j.roomAt(j.owners.name + "." + shortID())
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
	if err := eachRunning(j, func(_ string, r Running, _ bool) {
		for _, b := range r.Bases {
			needed[b.Room] = true
		}
	}); err != nil {
		return err
	}
	for _, e := range entries {
		owner, _, _ := strings.Cut(e.Name(), ".")
		if !needed[e.Name()] && idNames.MatchString(owner) && !j.owners.alive(owner) {
			err = errors.Join(err, os.RemoveAll(j.roomAt(e.Name())))
		}
	}
	return err
}

// RunningIn returns the commands that run and may write in or above a directory, the oldest first.
func RunningIn(j *Journal, path string) (all []Running, err error) {
	err = eachRunning(j, func(file string, r Running, alive bool) {
		if alive && (r.Roots == nil || slices.ContainsFunc(r.Roots, func(root string) bool { return isWithin(root, path) || isWithin(path, root) })) {
			all = append(all, r)
		}
	})
	slices.SortFunc(all, func(a, b Running) int { return a.Begun.Compare(b.Begun) })
	return all, err
}

// UnsettledRoots returns the roots of commands whose host was killed and whose entries are not settled.
func UnsettledRoots(j *Journal) (roots []string, err error) {
	err = eachRunning(j, func(_ string, r Running, alive bool) {
		if !alive {
			roots = append(roots, r.Roots...)
		}
	})
	return roots, err
}

// Settle settles the entries of commands whose host was killed while they ran: those that mine selects, each by one
// process. changes returns what the command changed; its last results are what Record takes, and what releases the
// contents. What cannot be settled is tried again.
func Settle(j *Journal, mine func(Running) bool, changes func(r Running, room func(name string) string) (Change, []PathChange, func(), error)) (settled []Running, err error) {
	if j.cfg.Dir == "" {
		return nil, nil
	}
	err = eachRunning(j, func(file string, r Running, alive bool) {
		own := filepath.Join(filepath.Dir(file), j.owners.name+"."+r.ID)
		if alive || !idNames.MatchString(r.ID) || !mine(r) || os.Rename(file, own) != nil { // another process settles it
			return
		}
		if err := j.settleOne(r, changes); err != nil {
			j.cfg.Log.Warn("what a command of a killed host changed cannot be settled", "command", r.Command,
				"error", err)
			_ = os.Rename(own, file)
			return
		}
		_ = os.Remove(own)
		settled = append(settled, r)
	})
	return settled, errors.Join(err, j.sweepRooms())
}

func (j *Journal) settleOne(r Running, changes func(Running, func(string) string) (Change, []PathChange, func(),
	error)) error {
	all, err := j.records(r.Principal)
	if err != nil || slices.ContainsFunc(all, func(o record) bool { return o.ID == r.ID }) { // it was recorded, and its host killed then
		return err
	}
	c, paths, release, err := changes(r, j.roomAt)
	if err != nil {
		return err
	}
	defer release()
	c.ID, c.Principal, c.Scope, c.Tool, c.Time, c.Command = r.ID, r.Principal, r.Scope, r.Tool, r.Begun, r.Command
	c.Lasting, c.Open = r.Lasting, r.Open
	_, err = j.Record(c, paths)
	return err
}

// eachRunning reads the announcements of commands. Those of killed hosts stay until they are settled, or are old. An
// announcement that cannot be read has no roots.
func eachRunning(j *Journal, do func(file string, r Running, alive bool)) error {
	if j.cfg.Dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(j.cfg.Dir, runningName, "*.*"))
	for _, file := range files {
		owner, _, _ := strings.Cut(filepath.Base(file), ".")
		alive := idNames.MatchString(owner) && j.owners.alive(owner)
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
