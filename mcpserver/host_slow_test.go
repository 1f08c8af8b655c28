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
	for ; h.policies.compiledCount < maxPolicies; h.policies.compiledCount++ { // many have come, whose rules take long to compile
		h.policies.compiled.Store(fmt.Sprint("early ", h.policies.compiledCount), compiledPolicy{})
	}
	for i := range 16 {
		h.policies.of(fmt.Sprint(i))
		if h.policies.compiledCount > maxPolicies {
			t.Fatalf("the rules of %d principals are kept", h.policies.compiledCount)
		}
		kept := 0
		h.policies.compiled.Range(func(_, _ any) bool { kept++; return true })
		if kept != h.policies.compiledCount {
			t.Fatalf("the rules of %d principals are kept, and %d are counted", kept, h.policies.compiledCount)
		}
	}
}
