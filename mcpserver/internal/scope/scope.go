// Package scope determines which conversation of a principal a call belongs to, and keeps the state of each
// conversation between its calls: what it has read, its working directory, and the order of its calls.
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

// Limits of what is remembered, and of what one scope may hold. They protect callers from each other.
const (
	// Idle is how long a scope that does nothing is remembered.
	Idle = 24 * time.Hour
	// MaxScopes is how many scopes are remembered. Above it, the longest idle one is forgotten.
	MaxScopes = 10_000
	// MaxCalls is how many calls of one scope may be queued or running.
	MaxCalls = 256
)

// Keys in the _meta of a request that distinguish the conversations of a principal.
const (
	// MetaHandle has a session handle that this host has made; the value "new" requests one.
	MetaHandle = "toolhost/session"
	NewHandle  = "new"
	// Argument is the argument of a tool that may have the handle instead.
	Argument = "session"
)

// An identity identifies the scope of a call.
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

// label returns the name of the scope in the audit log. Values may be secrets of a client, so it contains a digest.
func (k identity) label() string {
	if k.value == "" {
		return k.kind
	}
	sum := sha256.Sum256([]byte(k.String()))
	return fmt.Sprintf("%s:%x", k.kind, sum[:6])
}

// A Scope is the state of one conversation between its calls: what it has read, its working directory and the order
// of its calls.
type Scope struct {
	key   identity
	Label string // its name in the audit log, without secrets of its client
	Exact bool   // it is the conversation of one agent only
	// Personal says that all its calls come from the client of one person: what the person allows may be remembered.
	// Several agents may share it.
	Personal bool
	Gate     *Gate
	Seen     *readstate.Scope
	Dir      *builtin.WorkDir

	used    time.Time
	element *list.Element
}

// Principal returns the principal that the scope belongs to.
func (s *Scope) Principal() string { return s.key.principal }

// Conversation returns a name of the scope that is the same after a restart and contains no secrets of its client. It
// returns "" if the scope is not that of one agent's conversation.
func (s *Scope) Conversation() string {
	if !s.Exact {
		return ""
	}
	return s.key.principal + " " + s.Label
}

// Session returns the digest of the id of the legacy MCP session that the scope belongs to, or "".
func (s *Scope) Session() string {
	if s.key.kind != kindSession {
		return ""
	}
	_, digest, _ := strings.Cut(s.Label, ":")
	return digest
}

// Asked returns the name of the scope in a question about one of its calls. minted says that the call has requested a
// new session: when it is repeated, it will request another one.
func (s *Scope) Asked(minted bool) string {
	key := s.key
	if minted {
		key.value = NewHandle
	}
	return key.String()
}

// A Config configures a [Table].
type Config struct {
	Seen   *readstate.Store
	Gate   func() GateOptions
	Secret []byte // signs handles
	Keys   []Key  // further keys, which precede the known ones
	Strict bool   // refuse calls without an exact scope, except on stdio
}

// A Table holds the scopes in use.
type Table struct {
	cfg     Config
	process string // identifies the stdio scope of this process

	mu     sync.Mutex
	byKey  map[identity]*Scope
	byUsed *list.List
	of     map[string]int // principal → how many scopes it has
}

// New returns a table without scopes.
func New(cfg Config) *Table {
	cfg.Keys = allKeys(cfg.Keys)
	return &Table{cfg: cfg, process: rand.Text(), byKey: map[identity]*Scope{}, byUsed: list.New(),
		of: map[string]int{}}
}

// ErrBusy is the error of a call whose scope has too many calls.
var ErrBusy = fmt.Errorf("too many calls of this session are queued or running (limit: %d): repeat the call after "+
	"some have finished", MaxCalls)

// errHandle is the error for a handle that this host did not make, or that has expired.
var errHandle = errors.New(`this session handle is unknown or has expired. To get a new one send "` + MetaHandle +
	`": "` + NewHandle + `" in _meta, ` +
	`or "` + Argument + `": "` + NewHandle + `" where the tool has that argument`)

// Resolve returns the scope of a call. It looks for a handle, a client's own key, the MCP session, the stdio process,
// and the principal, in this order. minted is the new handle if the call has requested one.
func (t *Table) Resolve(p string, meta map[string]any, session string, stdio bool) (s *Scope, minted string,
	err error) {
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

// find returns the key of the scope that a call names. A handle is not checked yet.
func (t *Table) find(p string, meta map[string]any, session string, stdio bool) (key identity, exact bool) {
	if v := meta[MetaHandle]; v != nil {
		handle, _ := v.(string) // another type counts as an unknown handle
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

// short returns a value from a client, or its digest if it is long: the length of what is kept must be limited.
func short(value string) string {
	const longest = 128
	if len(value) <= longest {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return fmt.Sprintf("sha256:%x", sum)
}

// errShared returns an error that tells how a call can name its conversation.
func (t *Table) errShared() error {
	var names []string
	for _, key := range t.cfg.Keys {
		if key.Exact {
			names = append(names, key.Name)
		}
	}
	return fmt.Errorf(`this server takes only calls that name their conversation (--strict-scope): send "%s": "%s" in `+
		`_meta, `+
		`and from then on the handle that the result carries there; or one of %s with an id of the conversation. `+
		`Where the tool has an argument "%s", the handle can go there`, MetaHandle, NewHandle, strings.Join(names, ", "), Argument)
}

// use returns the scope of a key, creating it if necessary, and forgets scopes that have been idle too long.
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

// Named returns the scope of the calls with one name on the command line.
func (t *Table) Named(principal, name string) *Scope {
	return t.use(identity{principal, "command line", name}, true, true)
}

// collect forgets scopes that have been idle too long. If there are too many scopes, it forgets the longest idle ones
// of the principal that has the most, so that no principal displaces the conversations of others. A scope with a call
// in it stays. The caller holds the lock.
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

// largestHolder returns the principal with the most scopes.
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

// Count returns how many scopes of each kind there are.
func (t *Table) Count() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := map[string]int{}
	for key := range t.byKey {
		by[key.kind]++
	}
	return by
}
