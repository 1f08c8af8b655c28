package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/toolhost/toolhost/guard"
	"golang.org/x/time/rate"
)

const (
	// fetchTime bounds one request to the issuer.
	fetchTime = 5 * time.Second
	// fetchAgain is how long to wait before another request to an issuer that could not be reached.
	fetchAgain = 5 * time.Second
	// keysEvery and keysBurst bound how often the keys are fetched, whatever tokens arrive. A new key is known after
	// keysEvery at most. Without the limit each token with an unknown key id would cause a request to the issuer.
	keysEvery = 10 * time.Second
	keysBurst = 3
	// maxFetched bounds a response of the issuer, in bytes.
	maxFetched = 1 << 20
)

// errFetchedRecently is returned instead of fetching the keys too often.
var errFetchedRecently = errors.New("the keys were fetched a moment ago")

// issuerKeys holds the keys of an issuer, found through its metadata.
type issuerKeys struct {
	issuer  string
	client  *http.Client // for metadata
	limited *http.Client // for keys, bounded
	fetched atomic.Bool  // the keys were fetched

	found    atomic.Pointer[oidc.RemoteKeySet]
	fetching chan struct{} // held while metadata is fetched
	next     time.Time     // the earliest time of the next fetch of metadata; owned by the holder of fetching
	last     error         // the last failure; owned by the holder of fetching
}

func newIssuerKeys(issuer string, client *http.Client) *issuerKeys {
	if client == nil {
		client = &http.Client{Timeout: fetchTime}
	}
	own := *client
	// A redirect would lead to a server other than the configured one.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	k := &issuerKeys{issuer: issuer, client: &own, fetching: make(chan struct{}, 1)}
	bounded := own
	bounded.Transport = &boundedTransport{keys: k, next: own.Transport,
		limit: rate.NewLimiter(rate.Every(keysEvery), keysBurst)}
	k.limited = &bounded
	return k
}

// find returns the set of keys. It returns an [*Error] of the kind [unavailable] if the issuer's metadata cannot be
// fetched.
func (k *issuerKeys) find(ctx context.Context) (*oidc.RemoteKeySet, error) {
	if set := k.found.Load(); set != nil {
		return set, nil
	}
	select {
	case k.fetching <- struct{}{}:
		defer func() { <-k.fetching }()
	case <-ctx.Done():
		return nil, k.unavailable(ctx.Err())
	}
	if set := k.found.Load(); set != nil {
		return set, nil
	}
	if time.Now().Before(k.next) {
		return nil, k.unavailable(k.last)
	}
	// Other requests wait for the result, so the fetch must survive the end of this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*fetchTime)
	defer cancel()
	address, err := k.discover(ctx)
	if err != nil {
		k.next, k.last = time.Now().Add(fetchAgain), err
		return nil, k.unavailable(err)
	}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), k.limited), address)
	k.found.Store(set)
	return set, nil
}

func (k *issuerKeys) unavailable(err error) *Error {
	return &Error{
		Kind: unavailable, Retry: fetchAgain, Cause: err,
		Reason: fmt.Sprintf("the access token cannot be checked now, because its issuer %s cannot be asked for its keys",
			k.issuer),
	}
}

// discover returns the address of the issuer's keys, by OpenID Connect Discovery 1.0, section 4, or else by RFC 8414,
// section 3.
func (k *issuerKeys) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	var errs []error
	for _, place := range []string{path + "/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server" + path} {
		at := *u
		at.Path, at.RawPath = place, ""
		address, err := k.metadata(ctx, at.String())
		if err == nil {
			return address, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// metadata fetches the address of the keys.
func (k *issuerKeys) metadata(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s", address, resp.Status)
	}
	var told struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxFetched)).Decode(&told); err != nil {
		return "", fmt.Errorf("%s answers with something other than metadata in JSON", address)
	}
	if told.Issuer != k.issuer {
		return "", fmt.Errorf("%s is the metadata of the issuer %q, not for %q", address, told.Issuer, k.issuer)
	}
	u, err := url.Parse(told.Keys)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !guard.IsLoopback(u.Hostname())) {
		return "", fmt.Errorf("%s names no https address of keys", address)
	}
	return told.Keys, nil
}

// A boundedTransport limits how often keys are fetched.
type boundedTransport struct {
	keys  *issuerKeys
	next  http.RoundTripper
	limit *rate.Limiter
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.limit.Allow() {
		return nil, errFetchedRecently
	}
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		t.keys.fetched.Store(true)
	}
	resp.Body = bounded{io.LimitReader(resp.Body, maxFetched), resp.Body}
	return resp, nil
}

type bounded struct {
	io.Reader
	io.Closer
}

// keySet records for one verification why the keys could not be fetched. The library's error does not say.
type keySet struct {
	issuer      *issuerKeys
	set         *oidc.RemoteKeySet
	unavailable *Error
}

// VerifySignature implements oidc.KeySet.
func (a *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := a.set.VerifySignature(ctx, token)
	switch {
	case err == nil:
		return payload, nil
	case errors.Is(err, errFetchedRecently) && a.issuer.fetched.Load():
		return nil, fmt.Errorf("no key of the issuer fits; its keys are fetched again at most every %s", keysEvery)
	case strings.HasPrefix(err.Error(), "fetching keys"): // the library's text if it has no keys to try
		a.unavailable = a.issuer.unavailable(err)
	}
	return nil, err
}
