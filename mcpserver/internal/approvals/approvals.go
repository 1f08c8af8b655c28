// Package approvals issues the state of questions about calls and redeems it with their answers. The state, which the
// client carries, is signed, bound to its call, valid once, and expires.
package approvals

import (
	"bytes"
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lifetime is how long a person has to answer.
const Lifetime = 5 * time.Minute

// Kept is how long a question stays open. It is longer than [Lifetime], so that the refusal at the end of the wait for
// a person still reaches the call.
const Kept = Lifetime + 10*time.Second

// MaxOpen is how many questions about the calls of one principal may be open. Beyond it the oldest is dropped.
const MaxOpen = 256

// A Store holds the open questions.
type Store struct {
	secret []byte

	mu           sync.Mutex
	pending      map[string]*list.Element // nonce → question that is not yet answered
	byAge        *list.List               // the oldest first
	perPrincipal map[string]int           // principal → how many are open
}

// A pending is a question that is not yet answered.
type pending struct {
	nonce, principal string
	end              time.Time
}

// New returns an empty store.
func New() *Store {
	b := &Store{secret: make([]byte, secretSize), pending: map[string]*list.Element{}, byAge: list.New(),
		perPrincipal: map[string]int{}}
	_, _ = rand.Read(b.secret) // crypto/rand never fails; a restart ends every open question
	return b
}

// secretSize is the length of the key that signs the state of questions, in bytes.
const secretSize = 32

// nonceSize is the length of the nonce of a question, in bytes.
const nonceSize = 16

// NewID returns the id of a question, which names it in logs and addresses. It is not secret.
func NewID() string { return strings.ToLower(rand.Text()[:idLength]) }

// idLength is the length of an id in characters of 5 bits.
const idLength = 16

// Issue opens a question about a call of a principal and returns its state: a nonce, the digest of the call, and a
// signature of both.
func (b *Store) Issue(principal string, call []byte) string {
	now := time.Now()
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // crypto/rand never fails
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := b.byAge.Front(); e != nil && now.After(e.Value.(pending).end); e = b.byAge.Front() {
		b.drop(e)
	}
	for e := b.byAge.Front(); e != nil && b.perPrincipal[principal] >= MaxOpen; {
		next := e.Next()
		if e.Value.(pending).principal == principal {
			b.drop(e)
		}
		e = next
	}
	b.pending[string(nonce)] = b.byAge.PushBack(pending{string(nonce), principal, now.Add(Kept)})
	b.perPrincipal[principal]++
	return base64.RawURLEncoding.EncodeToString(slices.Concat(nonce, call, b.sign(nonce, call)))
}

// drop closes a question. The caller holds the lock.
func (b *Store) drop(e *list.Element) {
	was := b.byAge.Remove(e).(pending)
	delete(b.pending, was.nonce)
	if b.perPrincipal[was.principal]--; b.perPrincipal[was.principal] == 0 {
		delete(b.perPrincipal, was.principal)
	}
}

// errForged refuses a state that is not from this process, or was changed on its way.
var errForged = errors.New("the requestState is not from this host, or the host was restarted since: return it " +
	"unchanged, or repeat the call without it to be asked again")

// parse splits a state and checks its signature.
func (b *Store) parse(state string) (nonce, call []byte, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(raw) != nonceSize+2*sha256.Size || base64.RawURLEncoding.EncodeToString(raw) != state {
		return nil, nil, errForged
	}
	nonce, call, mac := raw[:nonceSize], raw[nonceSize:nonceSize+sha256.Size], raw[nonceSize+sha256.Size:]
	if !hmac.Equal(mac, b.sign(nonce, call)) {
		return nil, nil, errForged
	}
	return nonce, call, nil
}

// Redeem closes a question. The error says why its answer does not count.
func (b *Store) Redeem(state string, call []byte) error {
	nonce, asked, err := b.parse(state)
	if err != nil {
		return err
	}
	if !hmac.Equal(asked, call) {
		return errors.New("the answer was given to another call, or what the call would do has changed since")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.pending[string(nonce)]
	if ok {
		b.drop(e)
	}
	if !ok || time.Now().After(e.Value.(pending).end) {
		return fmt.Errorf("the answer came twice, later than %s, or after %d newer questions: call again without it to be "+
			"asked again", Lifetime, MaxOpen)
	}
	return nil
}

func (b *Store) sign(nonce, call []byte) []byte {
	mac := hmac.New(sha256.New, b.secret)
	mac.Write(bytes.Join([][]byte{[]byte("question"), nonce, call}, []byte{0}))
	return mac.Sum(nil)
}

// Verify returns nil for a state that this process issued, whether its question is still open or not.
func (b *Store) Verify(state string) error {
	_, _, err := b.parse(state)
	return err
}
