package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
)

// paramHeaderKey is the context key of the called tool, whose schema may require headers.
type paramHeaderKey struct{}

// paramHeaders returns the headers that the schema of the called tool requires.
func paramHeaders(ctx context.Context, version string, params json.RawMessage) map[string]string {
	t, ok := ctx.Value(paramHeaderKey{}).(*tool)
	if !ok || !mcp.RequiresStandardHeaders(version) {
		return nil
	}
	return mcp.GenerateParamHeaders(&mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}, params)
}

// A request is a request to a server on behalf of a caller.
type request struct {
	method     string
	params     map[string]any
	tool       *tool // the called tool; nil for other requests
	idempotent bool  // it may be sent twice
	parallel   bool  // it may run concurrently with others
	// id and pin are the id and the fingerprint of the definition that the request relies on.
	id, pin string
}

// A reader converts the response of a server to a result for a caller.
type reader func(ctx context.Context, env *builtin.Env, raw json.RawMessage) (builtin.Result, error)

// A caller sends requests to a server on behalf of a caller of this host.
type caller struct {
	g   *Gateway
	env *builtin.Env
	s   *server
}

// run sends a request to the server and returns the result, or a task if that takes long. Questions of the server are
// passed on to the client.
func (c caller) run(ctx context.Context, name string, r request, read reader) (builtin.Result, error) {
	return c.env.Long(ctx, name, func(ctx context.Context, env *builtin.Env) (builtin.Result, error) {
		if c.env = env; env.Repeats {
			return c.runAside(ctx, name, r, read)
		}
		return c.runHere(ctx, r, read)
	})
}

func (c caller) runHere(ctx context.Context, r request, read reader) (builtin.Result, error) {
	c.env = limited(c.env)
	ctx = context.WithValue(ctx, pagesKey{}, c.env.OpensPages)
	u := c.g.upstreamFor(c.s, c.env.Principal, c.env.Scope)
	refused := c.s.refused.count()
	raw, err := c.ask(ctx, u, r)
	retry := err != nil && ctx.Err() == nil && (err == errSession || isDeath(err) && r.idempotent || u.renewed(err))
	if retry {
		raw, err = c.ask(ctx, u, r)
	}
	var out builtin.Result
	if refusal, ok := errors.AsType[*rpcError](err); ok {
		out.Served.Code = refusal.Code
		err = fmt.Errorf("the server %s answered with an error: %w%s", c.s.Name, refusal, c.openPages(ctx, refusal, u))
	} else if _, ok := errors.AsType[*errWithheld](err); !ok && err != nil {
		err = fmt.Errorf("the server %s did not answer: %w", c.s.Name, err)
	} else if err == nil {
		out, err = read(ctx, c.env, raw)
		c.env.TellSecrets(&out)
	}
	if notes := strings.Join(c.s.hostNotes(refused), "\n"); notes != "" && err != nil {
		err = fmt.Errorf("%w\n%s", err, notes)
	} else if notes != "" {
		out.Text += "\n" + notes + "\n"
	}
	out.Served.Era, out.Served.Replayed = c.s.store.era(), retry
	if r.tool != nil {
		out.Served.Pin = r.tool.pin
	}
	return out, err
}

// isAuth reports whether a server refused the credentials of a call. Such a call has not run.
func isAuth(err error) bool {
	_, ok := errors.AsType[*authError](err)
	return ok
}

// ask sends a request to the server once, and answers the questions of the server about it.
func (c caller) ask(ctx context.Context, u *upstream, r request) (json.RawMessage, error) {
	sess, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer u.release(sess)
	if err := sess.permits(r); err != nil {
		return nil, err
	}
	if !r.parallel {
		leave, err := u.takeTurn(ctx, c.env.Shell.Window)
		if err != nil {
			return nil, err
		}
		defer leave()
		c.env = asking(c.env, leave)
	}
	if r.tool != nil {
		ctx = context.WithValue(ctx, paramHeaderKey{}, r.tool)
	}
	params := maps.Clone(r.params)
	raw, err := sess.call(ctx, r.method, params, &activeCall{env: c.env})
	for range maxRounds {
		if err != nil || !sess.fulfil(ctx, c.env, raw, params) {
			break
		}
		raw, err = sess.call(ctx, r.method, params, &activeCall{env: c.env})
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

// asking returns env with a function that is called before each question to a person.
func asking(env *builtin.Env, before func()) *builtin.Env {
	if env.Elicit == nil {
		return env
	}
	own, ask := *env, env.Elicit
	own.Elicit = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		before()
		return ask(ctx, params)
	}
	return &own
}

// A part is one element of the content of a result.
type part struct {
	Type        string
	Text        string
	Data        string
	MIMEType    string
	URI         string
	Name        string
	Description string
	Resource    *struct {
		URI      string
		MIMEType string
		Text     *string
		Blob     string
	}
}

// result converts the result of a server. Unknown content is included as raw JSON.
func (s *server) result(ctx context.Context, env *builtin.Env, raw json.RawMessage) (builtin.Result, error) {
	var r struct {
		Content           []json.RawMessage
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return builtin.Result{}, fmt.Errorf("cannot decode its result: %w", err)
	}
	out, attached := builtin.Result{IsError: r.IsError}, env.Attachments()
	var texts []string
	for _, c := range r.Content {
		image, text := s.content(ctx, attached, c)
		if image != nil {
			out.Images = append(out.Images, *image)
		}
		if image == nil || text != "" {
			texts = append(texts, text)
		}
	}
	if has := len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null"; has {
		if len(texts) == 0 && len(out.Images) == 0 {
			texts = append(texts, string(r.StructuredContent))
		}
		if len(r.StructuredContent) <= maxStructured {
			out.Structured = r.StructuredContent
		} else if len(r.Content) > 0 {
			texts = append(texts, keepJSON(env, "The structured content", r.StructuredContent))
		}
	}
	out.Text = strings.Join(texts, "\n")
	if out.Text == "" && len(out.Images) == 0 {
		out.Text = "(no content)"
	}
	return out, nil
}

// content converts one part of a result to an image or text, or to both. URIs of resources are those that
// [Consults.Read] accepts.
func (s *server) content(ctx context.Context, attached *builtin.Attachments,
	raw json.RawMessage) (*builtin.Image, string) {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, "[A part that cannot be decoded: " + cleanText(string(raw), maxErrorBody) + "]"
	}
	switch p.Type {
	case "text":
		return nil, p.Text
	case "image", "audio":
		return attached.Show(ctx, fmt.Sprintf("Content of the type %s (%q)", p.Type, cleanText(p.MIMEType, maxType)),
			p.Data)
	case "resource_link":
		return nil, strings.TrimSpace(fmt.Sprintf("[Resource %s: %s] %s", cleanText(p.Name, 200),
			s.address(cleanText(p.URI, maxLine)), cleanText(p.Description, maxLine)))
	case "resource":
		if p.Resource == nil {
			return nil, "[A resource without content.]"
		}
		uri := s.address(cleanText(p.Resource.URI, maxLine))
		if p.Resource.Text != nil {
			return nil, fmt.Sprintf("[Resource %s]\n%s", uri, *p.Resource.Text)
		}
		return attached.Show(ctx, fmt.Sprintf("Resource %s (%q)", uri, cleanText(p.Resource.MIMEType, maxType)),
			p.Resource.Blob)
	}
	return nil, fmt.Sprintf("[A part of the unknown type %q: %s]", cleanText(p.Type, maxType),
		cleanText(string(raw), maxErrorBody))
}

// maxType is the longest shown type of content, in characters.
const maxType = 80

// keepJSON saves JSON that is too long for a result, and returns a note with its path.
func keepJSON(env *builtin.Env, what string, raw json.RawMessage) string {
	if env.Results == nil {
		return fmt.Sprintf("[%s is %d bytes long and left out.]", what, len(raw))
	}
	kept := builtin.Result{Structured: raw}
	env.TellSecrets(&kept)
	raw, _ = kept.Structured.(json.RawMessage)
	fitted, err := env.Results.Fit(string(raw), 1)
	if err != nil || fitted.Path == "" {
		return fmt.Sprintf("[%s is %d bytes long and could not be saved.]", what, len(raw))
	}
	return fmt.Sprintf("[%s is %d bytes long and was saved in %s]%s", what, len(raw), fitted.Path, kept.Text)
}
