package search

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: work in the background goes on although there is no end of queries.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g backgroundGate
		g.enter()
		began := time.Now()
		for range 3 {
			if err := g.pause(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if waited := time.Since(began); waited != patience {
			t.Errorf("waited %s, want %s", waited, patience)
		}
		time.Sleep(workSlice)
		go g.leave()
		if err := g.pause(context.Background()); err != nil || time.Since(began) != patience+workSlice {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(context.Background())
		g.enter()
		go cancel()
		if g.pause(ctx) == nil {
			t.Error("waited in vain")
		}
	})
}
