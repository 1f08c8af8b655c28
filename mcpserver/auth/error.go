package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A kind is what is wrong with a token. A greater kind tells more.
type kind uint8

// The kinds of refusals.
const (
	// Missing: the request carries no token.
	Missing kind = iota
	// Invalid: the token is not one of ours, or was not made for us.
	Invalid
	// expiredToken: the token was good once.
	expiredToken
	// Insufficient: the token is good, but gives no right.
	Insufficient
	// unavailable: the token cannot be checked now, because its issuer cannot be reached.
	unavailable
)

// An Error says why a token is refused. Its text goes to the client: it names nothing that the client does not know.
type Error struct {
	Kind   kind
	Reason string
	// Scope are the scopes to ask for, separated by blanks, if there are any.
	Scope string
	// Retry is when to try again, if waiting helps.
	Retry time.Duration
	// Cause is what the owner of the host should know beyond that, and no client.
	Cause error
}

func (e *Error) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func refuse(k kind, format string, args ...any) *Error {
	return &Error{Kind: k, Reason: fmt.Sprintf(format, args...)}
}

// Status is the HTTP status for a refusal, by RFC 6750, section 3.1: 401, 403 for too few rights, 503 when it cannot
// be told now.
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

// Challenge is the WWW-Authenticate header for a refusal (RFC 6750, section 3). A request without a token gets no
// error code. metadata is the address of the protected resource metadata (RFC 9728, section 5.1); "" where there is none.
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

// maxDescription bounds what a header says of a refusal, in characters: it can repeat what a token claims, and clients
// bound the headers that they take. The body says all of it.
const maxDescription = 200

func clip(reason string) string {
	if r := []rune(reason); len(r) > maxDescription {
		return string(r[:maxDescription]) + "..."
	}
	return reason
}

// quotable leaves what may stand in the parameters of a challenge: printable ASCII without quote and backslash
// (RFC 6750, section 3).
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}

// ParseAuthorization takes the token out of the Authorization headers of a request: "" when there is none, and then wrong says what stands
// in its place, without repeating it.
func ParseAuthorization(headers []string) (bearer, wrong string) {
	switch len(headers) {
	case 0:
		return "", ""
	case 1:
		return parseBearer(headers[0])
	}
	return "", fmt.Sprintf("the Authorization header is there %d times, and somebody on the way could have taken another one", len(headers))
}

// parseBearer takes the token out of an Authorization header, or says what is wrong with it.
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
