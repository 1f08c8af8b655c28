// Package scope finds out which conversation of a principal a call belongs to, and keeps what each has between its
// calls: what it has read, its working directory, and the order of its calls.
package scope

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/readstate"
)

// Limits of what is remembered, and of what one scope may hold. Each protects the other callers from one.
const (
	// Idle is how long a scope that does nothing is remembered.
	Idle = 24 * time.Hour
	// MaxScopes is how many scopes are remembered; beyond it the longest idle one goes.
	MaxScopes = 10_000
	// MaxCalls is how many calls of one scope may be queued or running.
	MaxCalls = 256
)

// Keys of a request's _meta that tell one conversation of a principal from another.
const (
	// MetaHandle carries a session handle of ours; the value "new" asks for one.
	MetaHandle = "toolhost/session"
	NewHandle  = "new"
	// Argument is the argument of a tool that may carry the handle instead.
	Argument = "session"
)

// An identity says whose state a call works on.
type identity struct {
	principal string
	kind      string // kindHandle, a _meta key, kindSession, process or principal
	value     string
}

const (
	kindHandle = "handle"
	// kindSession is the kind of the scopes of legacy MCP sessions.
	kindSession = "mcp-session"
)

func (k identity) String() string { return k.principal + "\x00" + k.kind + "\x00" + k.value }

// label is how the audit log names the scope. Values can be secrets of a client, so a digest is used.
func (k identity) label() string {
	if k.value == "" {
		return k.kind
	}
	sum := sha256.Sum256([]byte(k.String()))
	return fmt.Sprintf("%s:%x", k.kind, sum[:6])
}

// A Scope is what one conversation keeps between its calls: what it has read, its working directory and
// the order of its calls.
type Scope struct {
	key   identity
	Label string // how the audit log names it, without secrets of its client
	Exact bool   // it is one agent's conversation, and no other's
	// Personal says that all its calls come from the client of one person: what the person allows may be remembered.
	// Several agents may share it.
	Personal bool
	Gate     *Gate
	Seen     *readstate.Scope
	Dir      *builtin.WorkDir

	used    time.Time
	element *list.Element
}

// Principal is whose scope it is.
func (s *Scope) Principal() string { return s.key.principal }

// Conversation identifies the scope over restarts, without secrets of its client; "" where it is not one agent's
// conversation.
func (s *Scope) Conversation() string {
	if !s.Exact {
		return ""
	}
	return s.key.principal + " " + s.Label
}

// Session is the digest of the id of the legacy MCP session that the scope belongs to; "" if it does not belong to one.
func (s *Scope) Session() string {
	if s.key.kind != kindSession {
		return ""
	}
	_, digest, _ := strings.Cut(s.Label, ":")
	return digest
}

// Asked names the scope in a question about a call in it. A call that a session was made for will ask for one again
// when it is repeated.
func (s *Scope) Asked(minted bool) string {
	key := s.key
	if minted {
		key.value = NewHandle
	}
	return key.String()
}

// A Config says how scopes are found and what they work with.
type Config struct {
	Seen   *readstate.Store
	Gate   func() GateOptions
	Secret []byte // signs handles
	Keys   []Key  // further ones, which go before the known ones
	Strict bool   // only exact scopes, except on stdio
}

// A Table holds the scopes in use, the longest idle one last.
type Table struct {
	cfg     Config
	process string // tells this process's stdio scope from another's

	mu     sync.Mutex
	byKey  map[identity]*Scope
	byUsed *list.List
	of     map[string]int // principal → how many scopes it has
}

// New makes a table without scopes.
func New(cfg Config) *Table {
	cfg.Keys = allKeys(cfg.Keys)
	return &Table{cfg: cfg, process: rand.Text(), byKey: map[identity]*Scope{}, byUsed: list.New(), of: map[string]int{}}
}

// ErrBusy refuses a call of a scope that has as many as it may.
var ErrBusy = fmt.Errorf("too many calls of this session are queued or running (limit: %d): repeat the call after some have finished", MaxCalls)

// errHandle refuses a handle that was not made here, or too long ago.
var errHandle = errors.New(`this session handle is unknown or has expired. To get a new one send "` + MetaHandle + `": "` + NewHandle + `" in _meta, ` +
	`or "` + Argument + `": "` + NewHandle + `" where the tool has that argument`)

// Resolve finds the scope of a call, in the order: handle, a client's own key, the MCP session, the stdio
// process, the principal. minted is the handle that was made because the call asked for one.
func (t *Table) Resolve(p string, meta map[string]any, session string, stdio bool) (s *Scope, minted string, err error) {
	key, exact := t.find(p, meta, session, stdio)
	if key.kind == kindHandle {
		if key.value == NewHandle {
			minted = t.mint(p, time.Now())
			key.value = minted
		} else if !t.genuine(p, key.value, time.Now()) {
			return nil, "", errHandle
		}
	}
	if t.cfg.Strict && !exact && !stdio {
		return nil, "", t.errShared()
	}
	s = t.use(key, exact, exact || stdio || session != "" || key.kind == claudeSession)
	if s.Gate.Len() >= MaxCalls {
		return nil, "", ErrBusy
	}
	return s, minted, nil
}

// find is the key of a call's scope, as the call names it.
func (t *Table) find(p string, meta map[string]any, session string, stdio bool) (key identity, exact bool) {
	if v := meta[MetaHandle]; v != nil {
		handle, _ := v.(string) // what is none is refused as one that we did not make
		return identity{p, kindHandle, handle}, true
	}
	for _, key := range t.cfg.Keys {
		if v, ok := meta[key.Name].(string); ok && v != "" {
			return identity{p, key.Name, short(v)}, key.Exact
		}
	}
	switch {
	case session != "":
		return identity{p, kindSession, session}, false
	case stdio:
		return identity{p, "process", t.process}, false
	}
	return identity{p, "principal", ""}, false
}

// short is a value that clients made up, or its digest: what is kept of it must not be as long as they like.
func short(value string) string {
	const longest = 128
	if len(value) <= longest {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return fmt.Sprintf("sha256:%x", sum)
}

// errShared tells how to say whose conversation a call belongs to.
func (t *Table) errShared() error {
	var names []string
	for _, key := range t.cfg.Keys {
		if key.Exact {
			names = append(names, key.Name)
		}
	}
	return fmt.Errorf(`this server takes only calls that name their conversation (--strict-scope): send "%s": "%s" in _meta, `+
		`and from then on the handle that the result carries there; or one of %s with an id of the conversation. `+
		`Where the tool has an argument "%s", the handle can go there`, MetaHandle, NewHandle, strings.Join(names, ", "), Argument)
}

// use returns the scope of a key, made on first use, and lets go of what has been idle too long.
func (t *Table) use(key identity, exact, personal bool) *Scope {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.byKey[key]
	if !ok {
		s = &Scope{
			key: key, Label: key.label(), Exact: exact, Personal: personal, Gate: NewGate(t.cfg.Gate()),
			Seen: t.cfg.Seen.Scope(key.String(), exact), Dir: &builtin.WorkDir{},
		}
		s.element = t.byUsed.PushFront(s)
		t.byKey[key] = s
		t.of[key.principal]++
	}
	s.used = now
	t.byUsed.MoveToFront(s.element)
	t.collect(now)
	return s
}

// Named returns the scope of the calls of one name from the command line.
func (t *Table) Named(principal, name string) *Scope {
	return t.use(identity{principal, "command line", name}, true, true)
}

// collect forgets idle scopes, the longest idle first. When there are too many, they are those of the principal
// that has the most: no principal's conversations push out another's. A scope with a call in it stays. The caller holds
// the lock.
func (t *Table) collect(now time.Time) {
	for e := t.byUsed.Back(); e != nil && e.Prev() != nil; {
		s, previous := e.Value.(*Scope), e.Prev()
		old, full := now.Sub(s.used) >= Idle, t.byUsed.Len() > MaxScopes
		if !old && !full {
			return
		}
		if (old || s.key.principal == t.largestHolder()) && s.Gate.Idle() {
			t.forget(s)
		}
		e = previous
	}
}

// largestHolder is the principal with the most scopes.
func (t *Table) largestHolder() (p string) {
	for name, n := range t.of {
		if n > t.of[p] || n == t.of[p] && name < p {
			p = name
		}
	}
	return p
}

func (t *Table) forget(s *Scope) {
	t.byUsed.Remove(s.element)
	delete(t.byKey, s.key)
	if t.of[s.key.principal]--; t.of[s.key.principal] == 0 {
		delete(t.of, s.key.principal)
	}
}

// EndSession forgets the scope of a legacy MCP session that has ended.
func (t *Table) EndSession(principal, session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byKey[identity{principal, kindSession, session}]; s != nil && s.Gate.Idle() {
		t.forget(s)
	}
}

// Count tells how many scopes of each kind there are.
func (t *Table) Count() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := map[string]int{}
	for key := range t.byKey {
		by[key.kind]++
	}
	return by
}
