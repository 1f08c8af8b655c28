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

func TestBytesInFlight(t *testing.T) {
	c := &conn{calls: map[string]*inFlight{}}
	const large = transport.MaxBytesInFlight / 4
	for i := range 4 {
		if err := c.admit(fmt.Sprint(i), &inFlight{size: large}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.admit("5", &inFlight{size: 1}); err == nil {
		t.Error("a message over the limit was admitted")
	}
	c.answer("0", c.calls["0"], nil)
	if err := c.admit("5", &inFlight{size: 1}); err != nil {
		t.Errorf("after an answer: %v", err)
	}
}

// A slowResponse takes a second to be encoded.
type slowResponse struct{}

func (slowResponse) MarshalJSON() ([]byte, error) {
	time.Sleep(time.Second)
	return []byte(`"late"`), nil
}

// drain waits for responses that are being written, although their requests are no longer in flight.
func TestDrainWaitsForResponses(t *testing.T) {
	for name, answer := range map[string]func(*conn){
		"slow answer":           func(c *conn) { go c.answer("1", c.calls["1"], slowResponse{}) },
		"slow and quick answer": func(c *conn) { go c.answer("1", c.calls["1"], slowResponse{}); c.answer("2", &inFlight{}, nil) },
		"refusal":               func(c *conn) { delete(c.calls, "1"); c.refuse(&jsonrpc.Error{ID: json.RawMessage(`"late"`)}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				c := &conn{calls: map[string]*inFlight{"1": {}}, out: jsonrpc.NewWriter(&out)}
				answer(c)
				if name != "refusal" { // whose goroutine need not have started
					synctest.Wait()
				}
				c.drain(time.Minute)
				c.out.Close()
				if !strings.Contains(out.String(), "late") {
					t.Errorf("the client got %q, want the late response", &out)
				}
			})
		})
	}
}
