package sandbox

import (
	"fmt"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// try implements engine: the thread that all commands descend from tries.
func (n *insideProcess) try(c contract.Canary) (contract.Attempt, error) {
	r, err := n.request(contract.Request{Kind: contract.Try, Canary: c})
	if err != nil {
		return contract.Attempt{}, fmt.Errorf("the trial failed: %w", err)
	}
	return r.Attempt, nil
}
