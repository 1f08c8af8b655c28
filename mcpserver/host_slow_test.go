//go:build slow

package mcpserver

import (
	"fmt"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/guard"
)

// TestRulesOfMany: calls that come at once see the same rules, which a sandbox is kept for, and the rules of principals
// that are many are not kept for ever.
func TestRulesOfMany(t *testing.T) {
	h, _ := openHost(t, nil)
	policies := make([]*guard.Policy, 16)
	var all sync.WaitGroup
	for i := range policies {
		all.Go(func() { policies[i] = h.policies.of("p") })
	}
	all.Wait()
	for _, p := range policies {
		if !p.SameRules(policies[0]) {
			t.Error("the same settings were made different rules of")
		}
	}
	for i := range 2 * maxPolicies {
		h.policies.of(fmt.Sprint(i))
		if h.policies.compiledCount > maxPolicies {
			t.Fatalf("the rules of %d principals are kept", h.policies.compiledCount)
		}
	}
}
