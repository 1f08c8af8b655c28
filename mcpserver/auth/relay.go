package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
)

// relayPrefix begins the bearer tokens of relays.
const relayPrefix = "relay."

// maxRelayed is how many different identities one host takes from relays.
const maxRelayed = 4096

// relayed is what a relay says of a caller. The relay itself ends streams of credentials that expire.
type relayed struct {
	Principal string   `json:"principal"`
	Rights    Rights   `json:"rights"`
	Servers   []string `json:"servers,omitzero"`
	Root      string   `json:"root,omitempty"`
}

// RelayBearer returns the bearer token with which a relay passes on the requests of a caller.
func RelayBearer(who Identity) string {
	raw, _ := json.Marshal(relayed{who.Principal, who.Rights, who.Servers, who.Root}) // all of it can be marshalled
	return relayPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// A Relay is a [Verifier] of the callers of relays. It believes what a relay says of them: the listener must let only
// relays in.
type Relay struct {
	mu    sync.Mutex
	valid map[string]credential // by bearer token
}

// A credential is the identity of one bearer token, until it is revoked.
type credential struct {
	Identity
	revoke context.CancelFunc
}

// NewRelay returns a verifier that knows no caller yet.
func NewRelay() *Relay { return &Relay{valid: map[string]credential{}} }

// Verify implements [Verifier].
func (r *Relay) Verify(_ context.Context, bearer string) (Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.valid[bearer]; ok {
		return known.Identity, nil
	}
	who, err := parseRelayed(bearer)
	if err != nil {
		return Identity{}, err
	}
	if len(r.valid) >= maxRelayed {
		return Identity{}, refuse(Insufficient, "the host of this workspace has had %d callers, which are the most: try "+
			"again after it has ended", maxRelayed)
	}
	var revoke context.CancelFunc
	who.Valid, revoke = context.WithCancel(context.Background())
	r.valid[bearer] = credential{who, revoke}
	return who, nil
}

// Revoke ends all that a principal has open. Its next request is that of a new credential.
func (r *Relay) Revoke(principal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for bearer, c := range r.valid {
		if c.Principal == principal {
			c.revoke()
			delete(r.valid, bearer)
		}
	}
}

// parseRelayed returns the identity in a bearer token of a relay.
func parseRelayed(bearer string) (Identity, error) {
	unknown := refuse(Invalid, unknownToken)
	text, ok := strings.CutPrefix(bearer, relayPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(bearer) > maxBearer {
		return Identity{}, unknown
	}
	var said relayed
	if err := json.Unmarshal(raw, &said); err != nil || said.Principal == "" {
		return Identity{}, unknown
	}
	return Identity{Principal: said.Principal, Rights: said.Rights, Servers: said.Servers, Root: said.Root}, nil
}
