package sandbox

import (
	"context"
	"testing"
)

func TestProbe(t *testing.T) {
	r := Probe(context.Background(), false)
	t.Log(r)
	if r.Backend == None && len(r.Why) == 0 {
		t.Error("nothing works, and no reason is given")
	}
	for _, b := range backendsUnderTest() {
		r, err := probe(context.Background(), b)
		t.Logf("%s: %v %v", b, r, err)
		if err == nil && !r.Enforces.Writes {
			t.Errorf("%s does not even hold writes", b)
		}
	}
}
