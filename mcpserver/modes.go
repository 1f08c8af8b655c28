package mcpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// Bounds of the file of modes.
const (
	// maxModes is the longest file of modes, in bytes.
	maxModes = 1 << 20
	// modeAge is how long a scope in plan mode is remembered.
	modeAge = 90 * 24 * time.Hour
)

// A modes records which scopes are in plan mode, independently of the settings. They are stored in a file that all
// hosts of a state directory share. No tool and no contained command can write it.
type modes struct {
	file     string // "": in memory only
	host     string // a random id of this process
	children *children

	mu    sync.Mutex
	stamp fs.FileInfo // of the file when it was read; nil if it did not exist
	kept  []planned
	err   error // why the file cannot be read
}

// A planned scope is in plan mode.
type planned struct {
	Scope     string    `json:"scope"`               // its label
	Principal string    `json:"principal,omitempty"` // empty: of every caller
	Host      string    `json:"host,omitempty"`      // the process that the scope ends with
	Since     time.Time `json:"since"`
}

// policy returns the policy of a call in a scope. If the modes cannot be read, everything is refused.
func (m *modes) policy(p *guard.Policy, s *scope.Scope) *guard.Policy {
	planning := m.isPlanning(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.err != nil:
		return p.Refusing(fmt.Errorf("cannot read the modes of conversations: %w. Correct or remove the file", m.err))
	case !planning:
		return p
	}
	return p.Planning()
}

// isPlanning reports whether a scope was put into plan mode, whatever the settings say.
func (m *modes) isPlanning(s *scope.Scope) bool { return m.plan(s) != "" }

// plan identifies the plan of a scope that was put into plan mode; "" if there is none.
func (m *modes) plan(s *scope.Scope) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	// An agent is in plan mode if its caller is.
	for one := m.children.of(s.Principal()); one != nil; one = m.children.of(one.parent) {
		if plan := m.holds(one.parent, one.scope.Label); plan != "" {
			return plan
		}
	}
	return m.holds(s.Principal(), s.Label)
}

// holds is plan for a scope with this label. The caller holds the lock.
func (m *modes) holds(principal, label string) string {
	for _, p := range m.kept {
		if p.Scope == label && (p.Principal == "" || p.Principal == principal) && (p.Host == "" || p.Host == m.host) {
			return p.Since.Format(time.RFC3339Nano)
		}
	}
	return ""
}

// look reads the file again if it has changed. The caller holds the lock.
func (m *modes) look() {
	if m.file == "" {
		return
	}
	now, err := os.Stat(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		m.stamp, m.kept, m.err = nil, nil, nil
		return
	}
	if errors.Is(err, syscall.ENOTDIR) { // the state directory is damaged: keep the known modes
		return
	}
	if err == nil && m.stamp != nil && os.SameFile(now, m.stamp) && now.ModTime().Equal(m.stamp.ModTime()) &&
		now.Size() == m.stamp.Size() {
		return
	}
	m.kept, m.err = readModes(m.file)
	if m.stamp = now; m.err != nil {
		m.stamp = nil
	}
}

func readModes(file string) (all []planned, err error) {
	if err = statedir.Load(file, maxModes, &all); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// change puts a scope into plan mode, or ends plan mode.
func (m *modes) change(s *scope.Scope, planning bool) error {
	mode := planned{Scope: s.Label, Principal: s.Principal(), Since: time.Now().UTC()}
	if !s.Exact { // another conversation may have the same label after a restart
		mode.Host = m.host
	}
	if m.file != "" {
		return keepMode(m.file, mode, planning)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = changed(m.kept, mode, planning)
	return nil
}

// keepMode changes the file of modes. A mode that ends does so for all callers that share the scope.
func keepMode(file string, mode planned, planning bool) error {
	return privatefile.Locked(file+".lock", func() error {
		all, err := readModes(file)
		if err != nil {
			return err
		}
		return statedir.Save(file, changed(all, mode, planning))
	})
}

// changed returns the modes with one of them set or ended.
func changed(all []planned, mode planned, planning bool) []planned {
	all = slices.DeleteFunc(all, func(p planned) bool {
		same := p.Scope == mode.Scope && (p.Principal == mode.Principal || p.Principal == "" && !planning ||
			mode.Principal == "")
		return same || time.Since(p.Since) > modeAge
	})
	if planning {
		all = append(all, mode)
	}
	return all
}

// scopeLabel matches the names of scopes in the history and the audit log. All but one kind contain a digest.
var scopeLabel = regexp.MustCompile(`^(principal|[A-Za-z][\w./ -]*:[0-9a-f]{12})$`)

// Modes returns the plan modes of a host's conversations, for its owner.
func Modes(h *Host) *modes { return h.modes }

// Set puts a scope into plan mode, or ends that, on a person's decision. The scope has its name in the history. Set
// applies to every caller that has a scope of that name.
func (m *modes) Set(name string, planning bool) error {
	if !scopeLabel.MatchString(name) {
		return fmt.Errorf("%q is not a scope: use a name that toolhost history or toolhost log shows, such as "+
			"threadId:0f1e2d3c4b5a", clipped(name))
	}
	if m.file == "" {
		return errors.New("cannot write the state directory, where modes are stored: correct its permissions, or set " +
			"--state-dir")
	}
	return keepMode(m.file, planned{Scope: name, Since: time.Now().UTC()}, planning)
}

// Planning reports whether a caller's scope was put into plan mode, independently of the settings.
func (m *modes) Planning(principal, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	return m.holds(principal, name) != ""
}
