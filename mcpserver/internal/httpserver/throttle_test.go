package httpserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// exhaust sends wrong tokens until the address is throttled.
func exhaust(t *testing.T, th *throttle, remote string) {
	t.Helper()
	for n := range FailureBurst {
		if wait := th.Failed(remote); wait != 0 {
			t.Fatalf("failure %d: got a wait of %s, want none", n+1, wait)
		}
	}
	if wait := th.Failed(remote); wait <= 0 || wait > failureEvery {
		t.Fatalf("failure %d: got a wait of %s, want up to %s", FailureBurst+1, wait, failureEvery)
	}
}

func TestThrottle(t *testing.T) {
	tests := []struct {
		name, offender, other string
		held                  bool
	}{
		{"the same address", "192.0.2.1:1", "192.0.2.1:2", true},
		{"its neighbour", "192.0.2.1:1", "192.0.2.2:1", false},
		{"the same address in IPv6", "192.0.2.1:1", "[::ffff:192.0.2.1]:2", true},
		{"the same IPv6 network", "[2001:db8::1]:1", "[2001:db8::ffff:1]:2", true},
		{"another IPv6 network", "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"the same zone or another", "[fe80::1%eth0]:1", "[fe80::2%eth1]:1", true},
		{"loopback is shared", "127.0.0.1:1", "127.0.0.1:2", false},
		{"IPv6 loopback is shared", "[::1]:1", "[::1]:2", false},
		{"a Unix socket is shared", "@", "@", false},
		{"no address at all", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := newThrottle()
				th.Passed(tt.other, "known")
				exhaust(t, th, tt.offender)
				if wait := th.Delay(tt.other, "new"); wait > 0 != tt.held || wait > failureEvery {
					t.Errorf("a new token waits %s", wait)
				}
				if wait := th.Delay(tt.other, ""); wait != 0 {
					t.Errorf("a request without a token waits %s", wait)
				}
				if wait := th.Delay(tt.other, "known"); wait != 0 {
					t.Errorf("a token that was valid waits %s", wait)
				}
				time.Sleep(failureEvery)
				if wait := th.Delay(tt.other, "new"); wait != 0 {
					t.Errorf("after %s a new token still waits %s", failureEvery, wait)
				}
				time.Sleep(validFor)
				exhaustAgain(th, tt.offender)
				if wait := th.Delay(tt.other, "known"); wait > 0 != tt.held {
					t.Errorf("a token that was valid long ago waits %s", wait)
				}
			})
		})
	}
}

func exhaustAgain(th *throttle, remote string) {
	for range 2 * FailureBurst {
		th.Failed(remote)
	}
}

func TestThrottleIsBounded(t *testing.T) {
	th := newThrottle()
	for n := range 3 * maxAddresses {
		th.Failed(fmt.Sprintf("10.%d.%d.%d:1", n>>16, n>>8&0xff, n&0xff))
	}
	if len(th.failed) != maxAddresses || th.order.Len() != maxAddresses {
		t.Errorf("%d addresses, %d in order; the limit is %d", len(th.failed), th.order.Len(), maxAddresses)
	}
	for n := range 3 * maxValid {
		th.Passed("192.0.2.1:1", fmt.Sprint(n))
	}
	if len(th.valid) > maxValid {
		t.Errorf("%d valid tokens are remembered, the limit is %d", len(th.valid), maxValid)
	}
}
