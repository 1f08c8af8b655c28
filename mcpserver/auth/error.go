package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A kind classifies a refusal. Greater kinds are more specific.
type kind uint8

// The kinds of refusals.
const (
	// Missing: the request has no token.
	Missing kind = iota
	// Invalid: the token is unknown, or was issued for another audience.
	Invalid
	// expiredToken: the token has expired.
	expiredToken
	// Insufficient: the token is valid but gives no right.
	Insufficient
	// unavailable: the token cannot be checked now, because its issuer cannot be reached.
	unavailable
)

// An Error is the reason for refusing a token. Its text is sent to the client: it contains nothing that the client does
// not know.
type Error struct {
	Kind   kind
	Reason string
	// Scope lists the scopes to request, separated by spaces, if there are any.
	Scope string
	// Retry is the time after which to try again, if waiting helps.
	Retry time.Duration
	// Cause holds details for the owner of the host. It is not sent to clients.
	Cause error
}

func (e *Error) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func refuse(k kind, format string, args ...any) *Error {
	return &Error{Kind: k, Reason: fmt.Sprintf(format, args...)}
}

// Status returns the HTTP status for a refusal, by RFC 6750, section 3.1: 401, or 403 for insufficient rights. It
// returns 503 if the token cannot be checked now.
func Status(err error) int {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return http.StatusUnauthorized
	case e.Kind == Insufficient:
		return http.StatusForbidden
	case e.Kind == unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusUnauthorized
}

// Challenge returns the WWW-Authenticate header for a refusal (RFC 6750, section 3). A request without a token gets no
// error code. metadata is the address of the protected resource metadata (RFC 9728, section 5.1), or "" if there is
// none.
func Challenge(err error, metadata string) string {
	params := []string{`realm="toolhost"`}
	var e *Error
	if errors.As(err, &e) && e.Kind != Missing && e.Kind != unavailable {
		code := "invalid_token"
		if e.Kind == Insufficient {
			code = "insufficient_scope"
		}
		params = append(params, `error="`+code+`"`, `error_description="`+quotable(clip(e.Reason))+`"`)
	}
	if e != nil && e.Scope != "" {
		params = append(params, `scope="`+quotable(e.Scope)+`"`)
	}
	if metadata != "" {
		params = append(params, `resource_metadata="`+quotable(metadata)+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

// maxDescription bounds the description in a header, in characters: it can repeat what a token claims, and clients
// limit the size of headers. The body has the full text.
const maxDescription = 200

func clip(reason string) string {
	if r := []rune(reason); len(r) > maxDescription {
		return string(r[:maxDescription]) + "..."
	}
	return reason
}

// quotable returns the characters of s that are valid in the parameters of a challenge: printable ASCII without quote
// and backslash (RFC 6750, section 3).
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}

// ParseAuthorization returns the token in the Authorization headers of a request. If there is none, bearer is "" and
// wrong describes what was found instead, without repeating it.
func ParseAuthorization(headers []string) (bearer, wrong string) {
	switch len(headers) {
	case 0:
		return "", ""
	case 1:
		return parseBearer(headers[0])
	}
	return "", fmt.Sprintf("the Authorization header is there %d times, and somebody on the way could have taken "+
		"another one", len(headers))
}

// parseBearer returns the token in an Authorization header, or describes what is wrong with the header.
func parseBearer(header string) (token, wrong string) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", "the Authorization header does not begin with the word Bearer and a blank"
	case token == "":
		return "", "the Authorization header holds no token after the word Bearer"
	case len(token) > maxBearer:
		return "", fmt.Sprintf("the token is longer than %d bytes", maxBearer)
	case strings.ContainsAny(token, " \t\r\n,"):
		return "", "the text after the word Bearer is not one token: it has a blank or a comma"
	}
	return token, ""
}
