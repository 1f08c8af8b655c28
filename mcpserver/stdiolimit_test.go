package mcpserver

import (
	"fmt"
	"testing"
)

func TestBytesInFlightAreBounded(t *testing.T) {
	c := &stdioConn{calls: map[string]*stdioCall{}}
	const large = MaxBytesInFlight / 4
	for i := range 4 {
		if err := c.admit(fmt.Sprint(i), &stdioCall{size: large}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.admit("5", &stdioCall{size: 1}); err == nil {
		t.Error("more bytes are in flight than there is room for")
	}
	c.answer("0", c.calls["0"], nil)
	if err := c.admit("5", &stdioCall{size: 1}); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}
