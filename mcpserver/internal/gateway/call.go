package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
)

// paramHeaderKey carries the tool of a call, whose schema may name headers.
type paramHeaderKey struct{}

// paramHeaders are the headers that the schema of the called tool asks for.
func paramHeaders(ctx context.Context, version string, params json.RawMessage) map[string]string {
	t, ok := ctx.Value(paramHeaderKey{}).(*tool)
	if !ok || !mcp.RequiresStandardHeaders(version) {
		return nil
	}
	return mcp.GenerateParamHeaders(&mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}, params)
}

// A request is what a server is asked for on behalf of a caller.
type request struct {
	method string
	params map[string]any
	tool   *tool // the one that is called, nil if none is
	again  bool  // it does no harm to ask twice
}

// A reader makes a result of what a server answered.
type reader func(raw json.RawMessage) (builtin.Result, error)

// A caller is on whose behalf a server is asked.
type caller struct {
	g   *Gateway
	env *builtin.Env
	s   *server
}

// run puts a request to the server, and returns what read makes of the answer: a task if that takes long. A client that is asked by
// results is asked what the server asks.
func (c caller) run(ctx context.Context, name string, r request, read reader) (builtin.Result, error) {
	return c.env.Long(ctx, name, func(ctx context.Context, env *builtin.Env) (builtin.Result, error) {
		if c.env = env; env.ElicitLater {
			return c.runAside(ctx, name, r, read)
		}
		return c.runHere(ctx, r, read)
	})
}

func (c caller) runHere(ctx context.Context, r request, read reader) (builtin.Result, error) {
	u := c.g.upstreamFor(c.s, c.env.Principal, c.env.Scope)
	raw, err := c.ask(ctx, u, r)
	again := err != nil && ctx.Err() == nil && (isSession(err) || isDeath(err) && r.again || u.renewed(err))
	if again {
		raw, err = c.ask(ctx, u, r)
	}
	var out builtin.Result
	if refusal, ok := errors.AsType[*rpcError](err); ok {
		out.Served.Code = refusal.Code
		err = fmt.Errorf("the server %s answered with an error: %w", c.s.Name, refusal)
	} else if err != nil {
		err = fmt.Errorf("the server %s did not answer: %w", c.s.Name, err)
	} else {
		out, err = read(raw)
	}
	out.Served.Era, out.Served.Replayed = c.s.store.era(), again
	if r.tool != nil {
		out.Served.Pin = r.tool.pin
	}
	return out, err
}

// isSession reports whether a server refused a call because its session has ended: then it has not run.
func isSession(err error) bool { return err == errSession }

// isAuth reports whether the server wants other credentials: then the call has not run.
func isAuth(err error) bool {
	_, ok := errors.AsType[*authError](err)
	return ok
}

// ask puts a request to the server once, and answers what the server asks about it.
func (c caller) ask(ctx context.Context, u *upstream, r request) (json.RawMessage, error) {
	sess, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer u.release(sess)
	if r.tool != nil {
		ctx = context.WithValue(ctx, paramHeaderKey{}, r.tool)
	}
	params := maps.Clone(r.params)
	raw, err := sess.call(ctx, r.method, params, &activeCall{progress: c.env.Progress, elicit: c.env.Elicit})
	for range maxRounds {
		if err != nil || !sess.fulfil(ctx, c.env, raw, params) {
			break
		}
		raw, err = sess.call(ctx, r.method, params, &activeCall{progress: c.env.Progress, elicit: c.env.Elicit})
	}
	if auth, ok := errors.AsType[*authError](err); ok {
		u.remember(auth)
		if !auth.lacksScope() { // the next session asks for new headers
			u.stopSession(sess)
		}
	}
	sess.noteEnd()
	if sess.ignoresCancel() {
		u.stopSession(sess)
	}
	return raw, err
}
