package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// minToken is the length of the shortest token that a person may choose, in characters.
const minToken = 16

// ReadToken reads the token in a file, which may be a pipe. A token that no request could carry is refused here, where
// a person sees the error, and not with each request.
func ReadToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 2*maxBearer))
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }
	switch {
	case strings.HasPrefix(token, "\uFEFF"):
		return "", fmt.Errorf("the token file %s begins with a byte order mark, which no client sends: save it without",
			file)
	case len(token) < minToken || len(token) > maxBearer || strings.ContainsFunc(token, odd):
		return "", fmt.Errorf("the token file %s must hold one token of at least %d and at most %d characters, printable "+
			"ASCII without blanks and commas: no request could carry another one", file, minToken, maxBearer)
	}
	return token, nil
}

// A staticToken accepts one token, which gives every right. The zero staticToken accepts none.
type staticToken struct {
	who Identity
	sum [sha256.Size]byte
}

// NewStaticToken returns a verifier of one token. Neither the token nor the principal may be empty.
func NewStaticToken(token, principal string) (*staticToken, error) {
	if token == "" || principal == "" {
		return nil, errors.New("a server on a port needs a token and a name for its bearer: any page in a browser can " +
			"reach it")
	}
	return &staticToken{who: Identity{Principal: principal, Rights: All}, sum: sha256.Sum256([]byte(token))}, nil
}

// Verify implements [Verifier]. It compares digests in constant time, so that timing reveals neither content nor length
// of the token.
func (s *staticToken) Verify(_ context.Context, bearer string) (Identity, error) {
	if bearer == "" {
		return Identity{}, refuse(Missing, "no token was sent")
	}
	sum := sha256.Sum256([]byte(bearer))
	if subtle.ConstantTimeCompare(sum[:], s.sum[:]) != 1 || s.who.Principal == "" {
		return Identity{}, refuse(Invalid, unknownToken)
	}
	return s.who, nil
}
