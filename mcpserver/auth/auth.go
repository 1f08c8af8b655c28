// Package auth authenticates callers over a network and limits their rights.
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

// An Identity identifies a caller. The zero Identity has no rights.
type Identity struct {
	// Principal names the owner of the state that a call works on. Verifiers of different kinds never return the same
	// name: see [tokenPrincipal] and [oauth].
	Principal string
	// Rights are the kinds of tools that the caller may call.
	Rights Rights
	// Servers are the other servers whose tools, prompts and resources may be used. Nil: all of them.
	Servers []string
	// Root is the directory in the host's roots that the caller works in, absolute. "": the host's roots.
	Root string
	// Expires is when the credential expires; zero: never. Running calls continue.
	Expires time.Time
	// Scopes returns the scopes, separated by spaces, that an authorization server would have to grant for these
	// rights. If nil, there is no such server, and the caller cannot get more rights by itself.
	Scopes func(Rights) string
	// Valid is done when the credential is revoked, which ends everything that uses it. If nil, it is never revoked.
	Valid context.Context
}

// A Verifier identifies callers by their bearer tokens.
type Verifier interface {
	// Verify returns the identity of the token's bearer, or an [*Error]. It has no side effects and is safe for
	// concurrent use. bearer is the token without a scheme; it may be empty or malformed.
	Verify(ctx context.Context, bearer string) (Identity, error)
}

// maxBearer is the longest token that is examined, in bytes. Access tokens with many claims reach about 4 KB.
const maxBearer = 16 << 10

// Any accepts the tokens that any of the verifiers accepts, in order. Without a verifier it accepts none.
type Any []Verifier

// unknownToken is the least specific reason: another verifier may have a better one.
const unknownToken = "the token is not known here"

// Verify implements [Verifier]. Of several refusals it returns the most specific: a token that is unknown to one
// verifier may be expired for another.
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
		if errors.As(err, &e) && (e.Kind > worst.Kind || e.Kind == worst.Kind && worst.Scope == "" &&
			e.Reason != unknownToken) {
			worst = e
		}
	}
	return Identity{}, worst
}
