package builtin

import (
	"context"
	"encoding/json"
)

// A Client is what the client of a call can do during it. The zero value can do nothing.
type Client struct {
	// Progress reports progress to the client. It is nil if the client did not ask for it.
	Progress func(lastLines string)
	// CanAsk means that a person can be asked about the call.
	CanAsk bool
	// Elicit makes the client ask its user a question of another server while the call waits: it gets the params of
	// elicitation/create and returns the result. It is nil if the client cannot do that.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Repeats means that a question during the call ends it, and that the client repeats the call with the answer: see
	// [ExecAsked].Elicit.
	Repeats bool
	// OpensPages means that the client can show the address of a page that another server asks its user to open.
	OpensPages bool
	// PageDone tells the client that the page of a question with this elicitation ID is done. It may be called after the
	// call. It is nil if clients of its era are not told.
	PageDone func(id string)
}
