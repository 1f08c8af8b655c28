package stdio

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

func TestBytesInFlightAreBounded(t *testing.T) {
	c := &conn{calls: map[string]*inFlight{}}
	const large = transport.MaxBytesInFlight / 4
	for i := range 4 {
		if err := c.admit(fmt.Sprint(i), &inFlight{size: large}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.admit("5", &inFlight{size: 1}); err == nil {
		t.Error("more bytes are in flight than there is room for")
	}
	c.answer("0", c.calls["0"], nil)
	if err := c.admit("5", &inFlight{size: 1}); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// A slowOne is a response that takes its time to be encoded.
type slowOne struct{}

func (slowOne) MarshalJSON() ([]byte, error) {
	time.Sleep(time.Second)
	return []byte(`"late"`), nil
}

// A host that ends waits for responses that are on their way, also of requests that are no longer in flight.
func TestTheEndWaitsForResponses(t *testing.T) {
	for name, answer := range map[string]func(*conn){
		"an answer":           func(c *conn) { go c.answer("1", c.calls["1"], slowOne{}) },
		"a quick one as well": func(c *conn) { go c.answer("1", c.calls["1"], slowOne{}); c.answer("2", &inFlight{}, nil) },
		"a refusal":           func(c *conn) { delete(c.calls, "1"); c.refuse(&jsonrpc.Error{ID: json.RawMessage(`"late"`)}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				c := &conn{calls: map[string]*inFlight{"1": {}}, out: jsonrpc.NewWriter(&out)}
				answer(c)
				if name != "a refusal" { // which has not begun yet
					synctest.Wait()
				}
				c.drain(time.Minute)
				c.out.Close()
				if !strings.Contains(out.String(), "late") {
					t.Errorf("the client is told %q", &out)
				}
			})
		})
	}
}
