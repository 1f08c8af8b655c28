package mcpserver

import (
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"toolhost/builtin"
	"toolhost/mcpserver/internal/gate"
	"toolhost/readstate"
)

// Keys of a request's _meta that tell one conversation of a principal from another.
const (
	// metaHandle carries a session handle of ours; the value "new" asks for one.
	metaHandle = "toolhost/session"
	newHandle  = "new"
)

// metaKeys are the keys of clients that name one conversation each, and whether a key is exact: its
// conversation is one agent's alone. They partition what belongs to a principal and never authorise.
// Claude Code's is shared by the subagents of a session.
var metaKeys = []struct {
	name  string
	exact bool
}{
	{"threadId", true},
	{"vscode.conversationId", true},
	{"openai/session", true},
	{"claudecode/sessionId", false},
}

// A scopeKey says whose state a call works on.
type scopeKey struct {
	principal string
	kind      string // handle, a _meta key, kindSession, process or principal
	value     string
}

// kindSession is the kind of the scopes of legacy MCP sessions.
const kindSession = "mcp-session"

func (k scopeKey) String() string { return k.principal + "\x00" + k.kind + "\x00" + k.value }

// label is how the audit log names the scope. Values can be secrets of a client, so a digest stands for them.
func (k scopeKey) label() string {
	if k.value == "" {
		return k.kind
	}
	sum := sha256.Sum256([]byte(k.String()))
	return fmt.Sprintf("%s:%x", k.kind, sum[:6])
}

// A scope is what one conversation keeps between its calls: what it has read, its working directory and
// the order of its calls.
type scope struct {
	key   scopeKey
	exact bool
	gate  *gate.Gate
	seen  *readstate.Scope
	dir   *builtin.WorkDir

	used    time.Time
	element *list.Element
}

// A scopeTable holds the scopes in use, the longest idle one last.
type scopeTable struct {
	seen    *readstate.Store
	gate    func() gate.Options
	secret  []byte // signs handles
	process string // tells this process's stdio scope from another's

	mu     sync.Mutex
	byKey  map[scopeKey]*scope
	byUsed *list.List
}

func newScopeTable(seen *readstate.Store, secret []byte, options func() gate.Options) *scopeTable {
	return &scopeTable{
		seen: seen, secret: secret, gate: options, process: rand.Text(),
		byKey: map[scopeKey]*scope{}, byUsed: list.New(),
	}
}

// errHandle answers a session handle that is not one of ours, or another principal's.
var errHandle = errors.New(`this session handle is unknown or has expired: send "toolhost/session": "new" in _meta to get a new one`)

// resolve finds the scope of a call, in the order: handle, a client's own key, the MCP session, the
// stdio process, the principal. minted is the handle that was made because the call asked for one.
func (t *scopeTable) resolve(p string, meta map[string]any, session string, stdio bool) (s *scope, minted string, err error) {
	if handle, ok := meta[metaHandle].(string); ok && handle != "" {
		if handle == newHandle {
			minted = t.mint(p, time.Now())
			handle = minted
		} else if !t.genuine(p, handle, time.Now()) {
			return nil, "", errHandle
		}
		return t.use(scopeKey{p, "handle", handle}, true), minted, nil
	}
	for _, key := range metaKeys {
		if v, ok := meta[key.name].(string); ok && v != "" {
			return t.use(scopeKey{p, key.name, v}, key.exact), "", nil
		}
	}
	switch {
	case session != "":
		return t.use(scopeKey{p, kindSession, session}, false), "", nil
	case stdio:
		return t.use(scopeKey{p, "process", t.process}, false), "", nil
	}
	return t.use(scopeKey{p, "principal", ""}, false), "", nil
}

// use returns the scope of a key, made on first use, and lets go of what has been idle too long.
func (t *scopeTable) use(key scopeKey, exact bool) *scope {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.byKey[key]
	if !ok {
		s = &scope{
			key: key, exact: exact, gate: gate.New(t.gate()),
			seen: t.seen.Scope(key.String(), exact), dir: &builtin.WorkDir{},
		}
		s.element = t.byUsed.PushFront(s)
		t.byKey[key] = s
	}
	s.used = now
	t.byUsed.MoveToFront(s.element)
	t.collect(now)
	return s
}

// collect forgets idle scopes, the longest idle first. A scope with a call in it stays. The caller holds the lock.
func (t *scopeTable) collect(now time.Time) {
	for e := t.byUsed.Back(); e != nil; {
		s, previous := e.Value.(*scope), e.Prev()
		if now.Sub(s.used) < ScopeIdle && t.byUsed.Len() <= MaxScopes {
			return
		}
		if s.gate.Idle() && previous != nil {
			t.byUsed.Remove(e)
			delete(t.byKey, s.key)
		}
		e = previous
	}
}

// A handle is 128 bits that nobody can guess, the time it was made, and a signature that binds both to
// the principal, so that it outlives a restart without a store.
const (
	handleRandom = 16 // bytes
	handleTime   = 8
	handleMAC    = 16
	// HandleAge is how long a session handle is good for.
	HandleAge = 7 * 24 * time.Hour
)

func (t *scopeTable) mint(principal string, now time.Time) string {
	raw := make([]byte, handleRandom, handleRandom+handleTime+handleMAC)
	_, _ = rand.Read(raw) // crypto/rand never fails
	raw = binary.BigEndian.AppendUint64(raw, uint64(now.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(raw, t.sign(principal, raw)...))
}

func (t *scopeTable) genuine(principal, handle string, now time.Time) bool {
	raw, err := base64.RawURLEncoding.DecodeString(handle)
	if err != nil || len(raw) != handleRandom+handleTime+handleMAC {
		return false
	}
	body, mac := raw[:handleRandom+handleTime], raw[handleRandom+handleTime:]
	made := time.Unix(int64(binary.BigEndian.Uint64(body[handleRandom:])), 0)
	return hmac.Equal(mac, t.sign(principal, body)) && now.Sub(made) < HandleAge
}

func (t *scopeTable) sign(principal string, body []byte) []byte {
	mac := hmac.New(sha256.New, t.secret)
	mac.Write([]byte("session\x00" + principal + "\x00"))
	mac.Write(body)
	return mac.Sum(nil)[:handleMAC]
}
