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
	// FailureBurst is how many wrong tokens an address may send at once, and failureEvery how soon it has another try:
	// a client that is set up wrongly tries a few times, guessing needs thousands of millions.
	FailureBurst = 10
	failureEvery = 3 * time.Second
	// maxAddresses bounds the addresses that are remembered; beyond it the one that failed longest ago is forgotten.
	maxAddresses = 4096
	// goodFor is how long a token that was right is never held up by what others at its address do, and maxGood how
	// many such tokens are remembered.
	goodFor = time.Hour
	maxGood = 1024
	// networkBits are what one customer is given of IPv6 at least (RFC 6177): within it addresses cost nothing.
	networkBits = 64
)

// A throttle slows down clients that send wrong tokens, by their address.
//
// Two things keep it from locking out clients with a right token. One that was right within the last hour passes, whatever
// its address does. And behind loopback and Unix sockets all peers share one address, those of a proxy too: there, no
// token goes unchecked; a client over the limit only gets that answer.
type throttle struct {
	mu     sync.Mutex
	failed map[netip.Prefix]*list.Element // of *offender
	order  *list.List                     // the latest failure first
	good   map[[sha256.Size]byte]time.Time
}

// newThrottle makes a throttle that remembers nothing yet.
func newThrottle() *throttle {
	return &throttle{failed: map[netip.Prefix]*list.Element{}, order: list.New(), good: map[[sha256.Size]byte]time.Time{}}
}

// A client is an address that has sent wrong tokens.
type client struct {
	from  netip.Prefix
	tries *rate.Limiter
}

// Delay returns how long a request must wait before its token is looked at; zero: not at all.
func (t *throttle) Delay(remote, bearer string) time.Duration {
	from, shared := origin(remote)
	if shared || bearer == "" {
		return 0 // a request without a token is no guess: clients ask in this way where tokens are issued
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.failed[from]
	if !ok || now.Before(t.good[sha256.Sum256([]byte(bearer))]) {
		return 0
	}
	return delayFor(e.Value.(*client).tries.TokensAt(now))
}

// delayFor is the time until there is a whole try.
func delayFor(tries float64) time.Duration {
	if tries >= 1 {
		return 0
	}
	return time.Duration((1 - tries) * float64(failureEvery))
}

// Failed counts a wrong token. It returns how long to wait until the next try, once there have been too many.
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

// Passed remembers that a token was right.
func (t *throttle) Passed(remote, bearer string) {
	if _, shared := origin(remote); shared {
		return
	}
	sum, now := sha256.Sum256([]byte(bearer)), time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.good) >= maxGood {
		if _, known := t.good[sum]; !known {
			t.forget(now)
		}
	}
	t.good[sum] = now.Add(goodFor)
}

// forget makes room for a right token: what is over goes, or else what ends first. The caller holds the lock.
func (t *throttle) forget(now time.Time) {
	var first [sha256.Size]byte
	var end time.Time
	for sum, until := range t.good {
		if now.After(until) {
			delete(t.good, sum)
		} else if end.IsZero() || until.Before(end) {
			first, end = sum, until
		}
	}
	if len(t.good) >= maxGood {
		delete(t.good, first)
	}
}

// origin is what counts as one peer: an IPv4 address, an IPv6 network, or all that share an address.
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
	from, _ = ip.Prefix(bits) // it fits the address
	return from, false
}
