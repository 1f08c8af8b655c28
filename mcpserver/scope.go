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
	"strings"
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

// A scopeKey says whose state a call works on.
type scopeKey struct {
	principal string
	kind      string // kindHandle, a _meta key, kindSession, process or principal
	value     string
}

const (
	kindHandle = "handle"
	// kindSession is the kind of the scopes of legacy MCP sessions.
	kindSession = "mcp-session"
)

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
	label string // see [scopeKey.label]
	exact bool
	gate  *gate.Gate
	seen  *readstate.Scope
	dir   *builtin.WorkDir

	used    time.Time
	element *list.Element
}

// A scopeConfig says how scopes are found and what they work with.
type scopeConfig struct {
	seen   *readstate.Store
	gate   func() gate.Options
	secret []byte     // signs handles
	keys   []ScopeKey // in the order in which they are looked for; see [scopeKeys]
	strict bool       // only exact scopes, except on stdio
}

// A scopeTable holds the scopes in use, the longest idle one last.
type scopeTable struct {
	scopeConfig
	process string // tells this process's stdio scope from another's

	mu     sync.Mutex
	byKey  map[scopeKey]*scope
	byUsed *list.List
	of     map[string]int // principal → how many scopes it has
}

func newScopeTable(cfg scopeConfig) *scopeTable {
	return &scopeTable{scopeConfig: cfg, process: rand.Text(), byKey: map[scopeKey]*scope{}, byUsed: list.New(), of: map[string]int{}}
}

// Why a call has no scope.
var (
	errHandle = errors.New(`this session handle is unknown or has expired. To get a new one send "` + metaHandle + `": "` + newHandle + `" in _meta, ` +
		`or "` + argumentSession + `": "` + newHandle + `" where the tool has that argument`)
	errBusy = fmt.Errorf("%d calls of this session are queued or running, no more are taken until some are answered", MaxScopeCalls)
)

// resolve finds the scope of a call, in the order: handle, a client's own key, the MCP session, the stdio
// process, the principal. minted is the handle that was made because the call asked for one.
func (t *scopeTable) resolve(p string, meta map[string]any, session string, stdio bool) (s *scope, minted string, err error) {
	key, exact := t.find(p, meta, session, stdio)
	if key.kind == kindHandle {
		if key.value == newHandle {
			minted = t.mint(p, time.Now())
			key.value = minted
		} else if !t.genuine(p, key.value, time.Now()) {
			return nil, "", errHandle
		}
	}
	if t.strict && !exact && !stdio {
		return nil, "", t.errShared()
	}
	s = t.use(key, exact)
	if s.gate.Len() >= MaxScopeCalls {
		return nil, "", errBusy
	}
	return s, minted, nil
}

// find is the key of a call's scope, as the call names it.
func (t *scopeTable) find(p string, meta map[string]any, session string, stdio bool) (key scopeKey, exact bool) {
	if v := meta[metaHandle]; v != nil {
		handle, _ := v.(string) // what is none is refused as one that we did not make
		return scopeKey{p, kindHandle, handle}, true
	}
	for _, key := range t.keys {
		if v, ok := meta[key.Name].(string); ok && v != "" {
			return scopeKey{p, key.Name, short(v)}, key.Exact
		}
	}
	switch {
	case session != "":
		return scopeKey{p, kindSession, session}, false
	case stdio:
		return scopeKey{p, "process", t.process}, false
	}
	return scopeKey{p, "principal", ""}, false
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
func (t *scopeTable) errShared() error {
	var names []string
	for _, key := range t.keys {
		if key.Exact {
			names = append(names, key.Name)
		}
	}
	return fmt.Errorf(`this server takes only calls that name their conversation (--strict-scope): send "%s": "%s" in _meta, `+
		`and from then on the handle that the result carries there; or one of %s with an id of the conversation. `+
		`Where the tool has an argument "%s", the handle can go there`, metaHandle, newHandle, strings.Join(names, ", "), argumentSession)
}

// use returns the scope of a key, made on first use, and lets go of what has been idle too long.
func (t *scopeTable) use(key scopeKey, exact bool) *scope {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.byKey[key]
	if !ok {
		s = &scope{
			key: key, label: key.label(), exact: exact, gate: gate.New(t.gate()),
			seen: t.seen.Scope(key.String(), exact), dir: &builtin.WorkDir{},
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

// collect forgets idle scopes, the longest idle first. When there are too many, they are those of the principal
// that has the most: nobody's conversations push out another's. A scope with a call in it stays. The caller holds
// the lock.
func (t *scopeTable) collect(now time.Time) {
	for e := t.byUsed.Back(); e != nil && e.Prev() != nil; {
		s, previous := e.Value.(*scope), e.Prev()
		old, full := now.Sub(s.used) >= ScopeIdle, t.byUsed.Len() > MaxScopes
		if !old && !full {
			return
		}
		if (old || s.key.principal == t.greediest()) && s.gate.Idle() {
			t.forget(s)
		}
		e = previous
	}
}

// greediest is the principal with the most scopes.
func (t *scopeTable) greediest() (p string) {
	for name, n := range t.of {
		if n > t.of[p] || n == t.of[p] && name < p {
			p = name
		}
	}
	return p
}

func (t *scopeTable) forget(s *scope) {
	t.byUsed.Remove(s.element)
	delete(t.byKey, s.key)
	if t.of[s.key.principal]--; t.of[s.key.principal] == 0 {
		delete(t.of, s.key.principal)
	}
}

// end forgets the scope of a session that its client has ended.
func (t *scopeTable) end(key scopeKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byKey[key]; s != nil && s.gate.Idle() {
		t.forget(s)
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
	if err != nil || len(raw) != handleRandom+handleTime+handleMAC || base64.RawURLEncoding.EncodeToString(raw) != handle {
		return false
	}
	body, mac := raw[:handleRandom+handleTime], raw[handleRandom+handleTime:]
	made := time.Unix(int64(binary.BigEndian.Uint64(body[handleRandom:])), 0)
	return hmac.Equal(mac, t.sign(principal, body)) && now.Sub(made).Abs() < HandleAge // a clock may have been set back
}

func (t *scopeTable) sign(principal string, body []byte) []byte {
	mac := hmac.New(sha256.New, t.secret)
	mac.Write([]byte("session\x00" + principal + "\x00"))
	mac.Write(body)
	return mac.Sum(nil)[:handleMAC]
}
