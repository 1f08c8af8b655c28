package httpserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// exhaust sends wrong tokens until there have been too many.
func exhaust(t *testing.T, th *throttle, remote string) {
	t.Helper()
	for n := range FailureBurst {
		if wait := th.Failed(remote); wait != 0 {
			t.Fatalf("failure %d must wait %s", n+1, wait)
		}
	}
	if wait := th.Failed(remote); wait <= 0 || wait > failureEvery {
		t.Fatalf("after %d failures the wait is %s", FailureBurst+1, wait)
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
					t.Errorf("a token that was right waits %s", wait)
				}
				time.Sleep(failureEvery)
				if wait := th.Delay(tt.other, "new"); wait != 0 {
					t.Errorf("after %s a new token still waits %s", failureEvery, wait)
				}
				time.Sleep(goodFor)
				exhaustAgain(th, tt.offender)
				if wait := th.Delay(tt.other, "known"); wait > 0 != tt.held {
					t.Errorf("a token that was right long ago waits %s", wait)
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
		t.Errorf("%d addresses in %d places, %d are the most", len(th.failed), th.order.Len(), maxAddresses)
	}
	for n := range 3 * maxGood {
		th.Passed("192.0.2.1:1", fmt.Sprint(n))
	}
	if len(th.good) > maxGood {
		t.Errorf("%d right tokens are remembered, %d are the most", len(th.good), maxGood)
	}
}
