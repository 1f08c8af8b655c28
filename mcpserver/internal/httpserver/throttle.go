package httpserver

import (
	"container/list"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// FailureBurst is how many wrong tokens an address may send at once. After that it may send one per failureEvery.
	// That is enough for a misconfigured client, and too slow to guess a token.
	FailureBurst = 10
	failureEvery = 3 * time.Second
	// maxAddresses limits the remembered addresses. The one with the oldest failure is removed first.
	maxAddresses = 4096
	// validFor is how long a valid token is exempt from the failures of its address.
	validFor = time.Hour
	// maxValid limits the remembered valid tokens.
	maxValid = 1024
	// networkBits is the prefix length that counts as one IPv6 client: a customer gets at least a /64 (RFC 6177).
	networkBits = 64
)

// A throttle slows down clients that send wrong tokens, by address. Clients with a valid token are not locked out:
//   - A token that was valid within the last hour is exempt.
//   - Over loopback and Unix sockets all peers share an address, including the clients of a proxy. There every token is
//     verified, and only a wrong one gets the status 429.
type throttle struct {
	mu     sync.Mutex
	failed map[netip.Prefix]*list.Element  // of *client
	order  *list.List                      // of *client, the latest failure first
	valid  map[[sha256.Size]byte]time.Time // token hash → end of the exemption
}

func newThrottle() *throttle {
	return &throttle{failed: map[netip.Prefix]*list.Element{}, order: list.New(),
		valid: map[[sha256.Size]byte]time.Time{}}
}

// A client is an address that has sent wrong tokens.
type client struct {
	from  netip.Prefix
	tries *rate.Limiter
}

// Delay returns how long the client must wait before its token is verified. Zero means that it is verified now.
func (t *throttle) Delay(remote, bearer string) time.Duration {
	from, shared := origin(remote)
	if shared || bearer == "" {
		return 0 // a request without a token is not a guess: clients use it to find the authorization server
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.failed[from]
	if !ok || now.Before(t.valid[sha256.Sum256([]byte(bearer))]) {
		return 0
	}
	return delayFor(e.Value.(*client).tries.TokensAt(now))
}

// delayFor returns the time until one try is available.
func delayFor(tries float64) time.Duration {
	if tries >= 1 {
		return 0
	}
	return time.Duration((1 - tries) * float64(failureEvery))
}

// Failed counts a wrong token. It returns how long the client must wait for its next try, or zero.
func (t *throttle) Failed(remote string) time.Duration {
	from, _ := origin(remote)
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.failed[from]
	if !ok {
		if t.order.Len() >= maxAddresses {
			oldest := t.order.Back()
			delete(t.failed, oldest.Value.(*client).from)
			t.order.Remove(oldest)
		}
		e = t.order.PushFront(&client{from: from, tries: rate.NewLimiter(rate.Every(failureEvery), FailureBurst)})
		t.failed[from] = e
	}
	t.order.MoveToFront(e)
	tries := e.Value.(*client).tries
	if tries.AllowN(now, 1) {
		return 0
	}
	return delayFor(tries.TokensAt(now))
}

// Passed records that a token was valid.
func (t *throttle) Passed(remote, bearer string) {
	if _, shared := origin(remote); shared {
		return
	}
	sum, now := sha256.Sum256([]byte(bearer)), time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.valid) >= maxValid {
		if _, known := t.valid[sum]; !known {
			t.evict(now)
		}
	}
	t.valid[sum] = now.Add(validFor)
}

// evict removes the exemptions that have ended, or if there are none, the one that ends first. The caller holds the
// lock.
func (t *throttle) evict(now time.Time) {
	var first [sha256.Size]byte
	var end time.Time
	for sum, until := range t.valid {
		if now.After(until) {
			delete(t.valid, sum)
		} else if end.IsZero() || until.Before(end) {
			first, end = sum, until
		}
	}
	if len(t.valid) >= maxValid {
		delete(t.valid, first)
	}
}

// origin returns the unit that is throttled: an IPv4 address or an IPv6 network. It reports shared if the peers of
// different clients have the same address.
func origin(remote string) (from netip.Prefix, shared bool) {
	port, err := netip.ParseAddrPort(remote)
	ip := port.Addr().Unmap().WithZone("")
	if err != nil || ip.IsLoopback() {
		return netip.Prefix{}, true // a Unix socket has no address
	}
	bits := ip.BitLen()
	if ip.Is6() {
		bits = networkBits
	}
	from, _ = ip.Prefix(bits) // bits is at most the length of the address
	return from, false
}
