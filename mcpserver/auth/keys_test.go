package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// TestUnknownKeysDoNotFlood uses synctest so that no fetch is regained.
func TestUnknownKeysDoNotFlood(t *testing.T) { synctest.Test(t, testUnknownKeysDoNotFlood) }

func testUnknownKeysDoNotFlood(t *testing.T) {
	i := newIssuer(t)
	o := i.verifier("")
	good := i.token(nil, nil)
	if _, err := o.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range 50 {
		token := sign(t, jose.RS256, stranger, map[string]any{"kid": fmt.Sprint("k", n), "typ": "at+jwt"},
			goodClaims(nil))
		check := func() {
			if _, err := o.Verify(t.Context(), token); kindOf(err) != int(Invalid) {
				t.Errorf("an unknown key: %v", err)
			}
		}
		if n%2 == 0 {
			check()
		} else {
			all.Go(check)
		}
	}
	all.Wait()
	if n := i.fetched(); n > keysBurst {
		t.Errorf("the keys were fetched %d times, %d are the most", n, keysBurst)
	}
	if _, err := o.Verify(t.Context(), good); err != nil {
		t.Errorf("after the flood a right token is refused: %v", err)
	}
}

func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		o := i.verifier("")
		old := i.token(nil, nil)
		if _, err := o.Verify(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the library has put down what it fetched: who asks before gets the same keys
		i.rotate("two")
		if _, err := o.Verify(t.Context(), i.token(map[string]any{"kid": "two"}, nil)); err != nil {
			t.Errorf("a token of the new key: %v", err)
		}
		synctest.Wait()
		if _, err := o.Verify(t.Context(), old); kindOf(err) != int(Invalid) {
			t.Errorf("a token of the key that is gone: %v", err)
		}
		// Somebody has used up the fetches: the newest key is known as soon as there is one again.
		for n := range 10 {
			i.rotate(fmt.Sprint("k", n))
			o.Verify(t.Context(), i.token(map[string]any{"kid": fmt.Sprint("k", n)}, nil))
		}
		time.Sleep(keysEvery)
		if _, err := o.Verify(t.Context(), i.token(map[string]any{"kid": "k9"}, nil)); err != nil {
			t.Errorf("%s later: %v", keysEvery, err)
		}
	})
}

func TestIssuerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		i.set(func() { i.away = true })
		o := i.verifier("")
		if err := o.Ready(t.Context()); kindOf(err) != int(unavailable) {
			t.Errorf("an issuer that is away is ready: %v", err)
		}
		for range 20 {
			_, err := o.Verify(t.Context(), i.token(nil, nil))
			if kindOf(err) != int(unavailable) || Status(err) != http.StatusServiceUnavailable ||
				!strings.Contains(err.Error(), testIssuer) || strings.Contains(err.Error(), "502") ||
				!strings.Contains(errors.Unwrap(err).Error(), "502") {
				t.Errorf("an issuer that is away: %v", err)
			}
		}
		i.set(func() {
			if n := i.asked["/tenant/.well-known/openid-configuration"]; n != 1 {
				t.Errorf("it was asked %d times", n)
			}
			i.away = false
		})
		if _, err := o.Verify(t.Context(), "th_ABC"); kindOf(err) != int(Invalid) {
			t.Errorf("what is no access token waits for the issuer: %v", err)
		}
		time.Sleep(fetchAgain)
		if _, err := o.Verify(t.Context(), i.token(nil, nil)); err != nil {
			t.Errorf("the issuer is back: %v", err)
		}
		i.set(func() { i.away = true })
		if _, err := o.Verify(t.Context(), i.token(nil, nil)); err != nil {
			t.Errorf("the keys are known, and the issuer is needed: %v", err)
		}
	})
}

func TestKeysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		o := i.verifier("")
		if err := o.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.set(func() { i.away = true })
		for range 2 * keysBurst {
			if _, err := o.Verify(t.Context(), i.token(nil, nil)); kindOf(err) != int(unavailable) {
				t.Errorf("without keys: %v", err)
			}
		}
		i.set(func() { i.away = false })
		time.Sleep(keysEvery)
		if _, err := o.Verify(t.Context(), i.token(nil, nil)); err != nil {
			t.Errorf("the keys are back: %v", err)
		}
	})
}

func TestIssuerMetadata(t *testing.T) {
	tests := []struct {
		name   string
		change func(*issuer)
		ok     bool
	}{
		{"OpenID Connect", func(*issuer) {}, true},
		{"RFC 8414 only", func(i *issuer) { i.oauth = true }, true},
		{"of another issuer", func(i *issuer) { i.claims = "https://evil.example" }, false},
		{"keys in the clear", func(i *issuer) { i.keysAt = "http://login.example.com/tenant/keys" }, false},
		{"no keys", func(i *issuer) { i.keysAt = "" }, false},
		{"keys in a file", func(i *issuer) { i.keysAt = "file:///etc/passwd" }, false},
		{"a redirect", func(i *issuer) { i.redirect = "https://evil.example/" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newIssuer(t)
			tt.change(i)
			if err := i.verifier("").Ready(t.Context()); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
