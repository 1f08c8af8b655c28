// Package auth says who calls over a network and what they may do.
//
// A [Verifier] turns the bearer token of a request into an [Identity]: the holder of the host's single token
// ([staticToken]), of one of the named tokens in a file ([TokenFile]), or of an access token that an OAuth
// authorization server has issued ([oauth]). What none of them knows is an [Error], which says what kind of failure
// it is; [Challenge] writes it as HTTP wants it.
//
// The package imports none of ours. The zero values refuse: no rights, no identity, no verifier that accepts.
//
// Its Go API is not stable.
package auth

import (
	"context"
	"errors"
	"time"
)

// An Identity is who calls. The zero Identity has no rights.
type Identity struct {
	// Principal names whose state a call works on. Verifiers of different kinds never give the same name: see
	// [tokenPrincipal] and [oauth].
	Principal string
	// Rights are the kinds of tools that may be called.
	Rights Rights
	// Servers are the other servers whose tools, prompts and resources may be used. Nil: all of them.
	Servers []string
	// Expires is when the credential ends; zero: never. Calls that run then go on.
	Expires time.Time
	// Scopes names what an authorization server would have to grant for these rights, separated by blanks. Nil: there is
	// none to ask, and the caller can get no more rights by itself.
	Scopes func(Rights) string
	// Valid is done when the credential was taken back: nothing of it goes on. Nil: that never happens.
	Valid context.Context
}

// A Verifier knows callers by their bearer tokens.
type Verifier interface {
	// Verify returns who bears the token, or an [*Error]. It does not change anything and may be called by many
	// at once. bearer is the token alone, without a scheme; it may be empty or anything at all.
	Verify(ctx context.Context, bearer string) (Identity, error)
}

// maxBearer is the longest token that is looked at, in bytes. Access tokens with many claims reach some 4 KB.
const maxBearer = 16 << 10

// Any accepts the tokens that any of the verifiers accepts, in order. Without a verifier it accepts none.
type Any []Verifier

// unknownToken is the reason that tells least: another verifier may know what is wrong.
const unknownToken = "the token is not known here"

// Verify implements [Verifier]. Of several refusals the most telling is returned: what is merely unknown to one may
// be expired for another.
func (a Any) Verify(ctx context.Context, bearer string) (Identity, error) {
	worst := refuse(Invalid, unknownToken)
	if bearer == "" {
		worst = refuse(Missing, "no token was sent")
	}
	for _, v := range a {
		who, err := v.Verify(ctx, bearer)
		if err == nil {
			return who, nil
		}
		var e *Error
		if errors.As(err, &e) && (e.Kind > worst.Kind || e.Kind == worst.Kind && worst.Scope == "" && e.Reason != unknownToken) {
			worst = e
		}
	}
	return Identity{}, worst
}
