package scope

import (
	"crypto/rand"
	"testing"
	"time"
)

// No handle but those that were minted is taken, and by no one but whom it was minted for.
func FuzzHandle(f *testing.F) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // crypto/rand never fails; each process of the fuzzer has its own
	table := New(Config{Secret: secret})
	minted := table.mint("p", time.Now())
	f.Add("p", minted)
	f.Add("q", minted)
	f.Add("p\x00", minted)
	f.Add("p", minted[1:])
	f.Add("p", minted+"\n")
	f.Add("p", "../../etc/passwd")
	f.Fuzz(func(t *testing.T, principal, handle string) {
		if !table.genuine(principal, handle, time.Now()) {
			return
		}
		if principal != "p" || handle != minted {
			t.Errorf("%q is taken from %q", handle, principal)
		}
	})
}
