package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/toolhost/toolhost/guard"
)

// skew is the tolerated difference between the clock of an issuer and ours. RFC 7519, section 4.1.4, speaks of "usually
// no more than a few minutes"; one is enough if both clocks are synchronised.
const skew = time.Minute

// signatures are the accepted algorithms, all with key pairs. "none" needs no key, and with an HMAC the public key
// would be the secret (RFC 8725, section 2.1).
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384,
	jose.ES512, jose.EdDSA,
}

// An OAuthConfig configures whose access tokens are accepted.
type OAuthConfig struct {
	// Issuer is the authorization server's identifier: an https address, or http on loopback.
	Issuer string
	// Audience is the audience that tokens must have been issued for (RFC 8707), preferably the address of the MCP
	// endpoint.
	Audience string
	// ScopePrefix precedes read, write and exec in the scopes, such as "toolhost:".
	ScopePrefix string
	// Client fetches the issuer's metadata and keys. Nil: a client with time-outs.
	Client *http.Client
}

// An oauth verifies access tokens: JSON web tokens that an OAuth 2.1 authorization server has signed for this audience.
// It contacts the issuer when the first token arrives, so the issuer need not be reachable before.
type oauth struct {
	cfg  OAuthConfig
	keys *issuerKeys
}

// NewOAuth checks the configuration. It makes no request.
func NewOAuth(cfg OAuthConfig) (*oauth, error) {
	u, err := url.Parse(cfg.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		strings.ContainsAny(cfg.Issuer, " \t\r\n"):
		return nil, fmt.Errorf("the issuer %q is not an address such as https://login.example.com", cfg.Issuer)
	case u.Scheme != "https" && (u.Scheme != "http" || !guard.IsLoopback(u.Hostname())):
		return nil, fmt.Errorf("the issuer %s must be an https address: anyone who can change its answers can make tokens",
			cfg.Issuer)
	case cfg.Audience == "":
		return nil, errors.New("an issuer makes tokens for many: name the audience that says which are for this host, " +
			"with --oauth-audience")
	case strings.ContainsAny(cfg.ScopePrefix, " \t\r\n\"\\"):
		return nil, fmt.Errorf("the scope prefix %q has characters that no scope has", cfg.ScopePrefix)
	}
	return &oauth{cfg: cfg, keys: newIssuerKeys(cfg.Issuer, cfg.Client)}, nil
}

// Metadata returns the metadata that tells clients where to get a token. The resource is the audience if that is an
// address.
func (o *oauth) Metadata() Metadata {
	m := Metadata{
		AuthorizationServers: []string{o.cfg.Issuer}, Scopes: strings.Fields(o.scopes(All)),
		BearerMethods: []string{"header"}, Name: "toolhost",
	}
	if u, err := url.Parse(o.cfg.Audience); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		m.Resource = o.cfg.Audience
	}
	return m
}

// scopes returns the scopes that give these rights, separated by spaces.
func (o *oauth) scopes(set Rights) string {
	var all []string
	for _, name := range set.Names() {
		all = append(all, o.cfg.ScopePrefix+name)
	}
	return strings.Join(all, " ")
}

// Ready fetches the issuer's metadata, to report early that it cannot be reached.
func (o *oauth) Ready(ctx context.Context) error {
	_, err := o.keys.find(ctx)
	return err
}

// Verify implements [Verifier].
func (o *oauth) Verify(ctx context.Context, bearer string) (Identity, error) {
	if bearer == "" {
		return Identity{}, &Error{Kind: Missing, Reason: "no token was sent", Scope: o.scopes(All)}
	}
	if err := checkHeader(bearer); err != nil {
		return Identity{}, err
	}
	set, err := o.keys.find(ctx)
	if err != nil {
		return Identity{}, err
	}
	// These are the checks of an ID token: signature, issuer, audience. The times are checked below.
	asked := &keySet{issuer: o.keys, set: set}
	verifier := oidc.NewVerifier(o.cfg.Issuer, asked,
		&oidc.Config{ClientID: o.cfg.Audience, SupportedSigningAlgs: algorithms(), SkipExpiryCheck: true})
	token, err := verifier.Verify(ctx, bearer)
	if asked.unavailable != nil {
		return Identity{}, asked.unavailable
	}
	if err != nil {
		return Identity{}, refuse(Invalid, "the access token is refused: %s", strings.TrimPrefix(err.Error(), "oidc: "))
	}
	if token.Issuer != o.cfg.Issuer { // the library accepts two names for one issuer
		return Identity{}, refuse(Invalid, "the access token was issued by %q, not by %q", token.Issuer, o.cfg.Issuer)
	}
	var c claims
	var exact map[string]json.RawMessage
	if err := errors.Join(token.Claims(&c), token.Claims(&exact)); err != nil {
		return Identity{}, refuse(Invalid, "the claims of the access token cannot be read: %s", err)
	}
	if name := lookalike(exact); name != "" {
		return Identity{}, refuse(Invalid, "the access token has a claim %.40q, which is spelt nearly like one that is "+
			"checked", name)
	}
	if err := c.check(time.Now()); err != nil {
		return Identity{}, err
	}
	rights := o.rights(c)
	if rights == 0 {
		return Identity{}, &Error{Kind: Insufficient,
			Reason: fmt.Sprintf("the access token has none of the scopes %s", o.scopes(All)), Scope: o.scopes(All)}
	}
	return Identity{Principal: o.principal(c.Subject), Rights: rights, Expires: c.Expiry.time().Add(skew),
		Scopes: o.scopes}, nil
}

// principal combines the subject with its issuer, because subjects are unique only within an issuer. An issuer contains
// no space, so different pairs give different names.
func (o *oauth) principal(subject string) string { return "oauth:" + o.cfg.Issuer + " " + subject }

// rights returns the rights that the scopes give.
func (o *oauth) rights(c claims) Rights {
	var set Rights
	for _, scope := range append(c.Scope, c.Scp...) {
		if name, ok := strings.CutPrefix(scope, o.cfg.ScopePrefix); ok {
			set |= rightNamed(name)
		}
	}
	return set
}

func algorithms() []string {
	var names []string
	for _, a := range signatures {
		names = append(names, string(a))
	}
	return names
}

// checkHeader refuses, before a key is requested, a token that cannot be an access token: one that is not a signed JSON
// web token, is not signed with a key pair, or declares another type (RFC 9068, section 4; RFC 8725, section 3.11). A
// token without a type is treated like one of the type JWT, because several issuers omit it.
func checkHeader(bearer string) error {
	if len(bearer) > maxBearer || strings.Count(bearer, ".") != 2 {
		return refuse(Invalid, unknownToken)
	}
	jws, err := jose.ParseSignedCompact(bearer, signatures)
	if err != nil || len(jws.Signatures) != 1 {
		return refuse(Invalid, "the token is not a JSON web token signed with a key pair")
	}
	kind := "jwt"
	if given, ok := jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType]; ok {
		text, _ := given.(string)
		kind = strings.TrimPrefix(strings.ToLower(text), "application/")
	}
	if kind != "at+jwt" && kind != "jwt" {
		return refuse(Invalid, "the token is not an access token: its type is %.40q", kind)
	}
	return nil
}

// claims are the claims of an access token.
type claims struct {
	Subject   string   `json:"sub"`
	Expiry    *numDate `json:"exp"`
	NotBefore *numDate `json:"nbf"`
	IssuedAt  *numDate `json:"iat"`
	// Scope is the claim of RFC 9068, section 2.2.3; some issuers call it scp.
	Scope words `json:"scope"`
	Scp   words `json:"scp"`
	// Claims of tokens that are not for resources: ID tokens (OpenID Connect Core, sections 2 and 3.3.2.11), logout
	// tokens, and tokens whose kind the issuer names.
	Nonce   any `json:"nonce"`
	AtHash  any `json:"at_hash"`
	CHash   any `json:"c_hash"`
	SHash   any `json:"s_hash"`
	Events  any `json:"events"`
	Purpose any `json:"typ"`       // Keycloak
	Use     any `json:"token_use"` // Amazon Cognito
}

// numericClaims are the numeric claims that are examined, here and in the library.
var numericClaims = []string{
	"iss", "aud", "sub", "exp", "nbf", "iat", "scope", "scp", "nonce", "at_hash", "c_hash", "s_hash", "events", "typ", "token_use",
}

// lookalike returns a claim whose name differs only in case from one that is examined. encoding/json would take one for
// the other, although to the issuer it means something else: it may be an attribute that users choose themselves.
func lookalike(claims map[string]json.RawMessage) (name string) {
	for name := range claims {
		for _, known := range numericClaims {
			if name != known && strings.EqualFold(name, known) {
				return name
			}
		}
	}
	return ""
}

// maxSubject is the longest subject (OpenID Connect Core, section 2).
const maxSubject = 255

// check refuses a token that is not valid at this time or that is for another purpose.
func (c *claims) check(now time.Time) error {
	if c.Use != nil && c.Use != "access" || c.Purpose != nil &&
		!slices.Contains([]any{"Bearer", "at+jwt", "JWT"}, c.Purpose) {
		return refuse(Invalid, "the token is not an access token: it says that it is another kind")
	}
	switch {
	case c.Nonce != nil || c.AtHash != nil || c.CHash != nil || c.SHash != nil || c.Events != nil:
		return refuse(Invalid, "the token is not an access token: it has claims of an ID token or a logout token")
	case c.Expiry == nil:
		return refuse(Invalid, "the access token does not expire: exp is missing")
	case now.After(c.Expiry.time().Add(skew)):
		return refuse(expiredToken, "the access token expired at %s", c.Expiry.time().UTC().Format(time.RFC3339))
	case c.NotBefore != nil && now.Add(skew).Before(c.NotBefore.time()):
		return refuse(Invalid, "the access token is not valid before %s", c.NotBefore.time().UTC().Format(time.RFC3339))
	case c.IssuedAt != nil && now.Add(skew).Before(c.IssuedAt.time()):
		return refuse(Invalid, "the access token was issued in the future, at %s: a clock is wrong",
			c.IssuedAt.time().UTC().Format(time.RFC3339))
	case c.Subject == "" || len(c.Subject) > maxSubject ||
		strings.ContainsFunc(c.Subject, func(r rune) bool { return r < ' ' || r > '~' }):
		return refuse(Invalid, "the subject of the access token is not 1 to %d characters of printable ASCII",
			maxSubject)
	}
	return nil
}

// A numDate is a NumericDate: seconds since 1970, possibly with a fraction (RFC 7519, section 2).
type numDate float64

// maxDate is the latest accepted date, in seconds: the year 9999.
const maxDate = 253402300799

func (d *numDate) time() time.Time { return time.Unix(int64(*d), 0) }

// UnmarshalJSON reads a number.
func (d *numDate) UnmarshalJSON(text []byte) error {
	var n float64
	if err := json.Unmarshal(text, &n); err != nil || n < 0 || n > maxDate {
		return fmt.Errorf("%s is not a date in seconds", text)
	}
	*d = numDate(n)
	return nil
}

// words is a list of words, encoded as a list or as one string.
type words []string

// UnmarshalJSON reads either form.
func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = strings.Fields(one)
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}
