package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
)

// The eras of the protocol, as stored for a server.
const (
	modernEra = "modern"
	legacyEra = "legacy"
)

// maxAsked limits the concurrent requests of a server. Above it, the server gets an error.
const maxAsked = 8

// A session is a connection to a server after the version of the protocol was negotiated.
type session struct {
	w       wire
	u       *upstream
	era     string
	version string

	capabilities struct {
		Tools     *struct{ ListChanged bool } `json:"tools"`
		Prompts   *struct{ ListChanged bool } `json:"prompts"`
		Resources *struct{ ListChanged bool } `json:"resources"`

		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	instructions string

	mu       sync.Mutex
	calls    map[string]*activeCall // by progress token
	token    int
	asking   int
	ignored  int // cancelled calls in a row that were not answered
	refetch  *time.Timer
	fetching int
	end      sync.Once
	served   map[string]string // the fingerprints of what the server lists on this connection, by id
	first    bool              // nothing was known of the server before
	began    time.Time
	last     time.Time // when the list was fetched last
}

// An activeCall is a running call.
type activeCall struct {
	env   *builtin.Env
	ctx   context.Context
	alive *time.Timer // fires after silence
	shown time.Time
	began int // order of the start
}

// agree negotiates the version of the protocol.
func (s *session) agree(ctx context.Context, known string) error {
	silent := false
	if known != legacyEra {
		limit := probeTime
		if known == modernEra {
			limit = connectTime
		}
		probe, cancel := context.WithTimeout(ctx, limit)
		ok, err := s.discover(probe)
		silent = probe.Err() != nil
		cancel()
		if ok {
			return nil
		}
		if auth, isAuth := errors.AsType[*authError](err); isAuth {
			return auth
		}
		select {
		case <-s.w.ended():
			return s.w.why()
		default:
		}
	}
	err := s.initialize(ctx)
	if _, refused := errors.AsType[*rpcError](err); refused && silent { // it was still starting, and may be a modern one
		if ok, _ := s.discover(ctx); ok {
			return nil
		}
	}
	return err
}

// discover reports whether the server supports the modern era.
func (s *session) discover(ctx context.Context) (bool, error) {
	s.era, s.version = modernEra, mcp.ProtocolVersion20260728
	s.w.setVersion(s.version)
	raw, err := s.request(ctx, string(mcp.MethodServerDiscover), nil)
	if refused, ok := errors.AsType[*rpcError](err); ok && refused.supports(s.version) {
		raw, err = s.request(ctx, string(mcp.MethodServerDiscover), nil)
	}
	var found struct {
		SupportedVersions []string
		Capabilities      json.RawMessage
		Instructions      string
	}
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	if err != nil || !slices.Contains(found.SupportedVersions, s.version) {
		s.era, s.version = legacyEra, ""
		s.w.setVersion("")
		return false, err
	}
	s.instructions = found.Instructions
	_ = json.Unmarshal(found.Capabilities, &s.capabilities) // unreadable capabilities count as absent
	return true, nil
}

// initialize starts a session of the legacy era.
func (s *session) initialize(ctx context.Context) error {
	s.era = legacyEra
	raw, err := s.w.request(ctx, "initialize", marshal(map[string]any{
		"protocolVersion": mcp.LATEST_LEGACY_PROTOCOL_VERSION, "capabilities": s.u.declared(s.u.opensPages()), "clientInfo": s.clientInfo(),
	}))
	if err != nil {
		return err
	}
	var found struct {
		ProtocolVersion string
		Capabilities    json.RawMessage
		Instructions    string
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return fmt.Errorf("cannot decode its answer to initialize: %w", err)
	}
	if !mcp.IsValidProtocolVersion(found.ProtocolVersion) || mcp.IsModernProtocol(found.ProtocolVersion) {
		return fmt.Errorf("it uses the protocol version %q, which is not supported",
			cleanText(found.ProtocolVersion, maxLine))
	}
	s.version, s.instructions = found.ProtocolVersion, found.Instructions
	_ = json.Unmarshal(found.Capabilities, &s.capabilities)
	s.w.setVersion(s.version)
	s.w.notify("notifications/initialized", nil)
	return nil
}

func (s *session) clientInfo() map[string]any {
	return map[string]any{"name": "toolhost", "version": s.u.g.cfg.Version}
}

// request sends a request. In the modern era it adds the required _meta.
func (s *session) request(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	if s.era == modernEra {
		if params == nil {
			params = map[string]any{}
		}
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta[mcp.MetaKeyProtocolVersion], meta[mcp.MetaKeyClientInfo], meta[mcp.MetaKeyClientCapabilities] = s.version,
			s.clientInfo(), s.u.declared(pagesOf(ctx))
		params["_meta"] = meta
	}
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	return s.w.request(ctx, method, raw)
}

// notified implements [listener].
func (s *session) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		s.progressed(params)
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		s.refetchSoon()
	case "notifications/elicitation/complete":
		var p struct{ ElicitationID string }
		if json.Unmarshal(params, &p) == nil {
			s.u.pages.done(p.ElicitationID)
		}
	}
}

// progressed passes progress on, at most four times a second.
func (s *session) progressed(params json.RawMessage) {
	var p struct {
		ProgressToken json.RawMessage
		Progress      float64
		Total         float64
		Message       string
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[strings.Trim(string(p.ProgressToken), `"`)]
	if c == nil {
		return
	}
	c.alive.Reset(silence)
	if c.env.Progress == nil || time.Since(c.shown) < time.Second/4 {
		return
	}
	c.shown = time.Now()
	text := cleanText(p.Message, maxLine)
	if p.Total > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%g of %g %s", p.Progress, p.Total, text))
	} else if text == "" {
		text = fmt.Sprintf("%g", p.Progress)
	}
	go c.env.Progress(text)
}

// asked implements [listener].
func (s *session) asked(id json.RawMessage, method string, params json.RawMessage, reply func(message)) {
	s.mu.Lock()
	if s.asking >= maxAsked {
		s.mu.Unlock()
		reply(message{ID: id, Error: &rpcError{Code: codeBusy, Message: "too many requests at once"}})
		return
	}
	s.asking++
	s.mu.Unlock()
	go func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asking--
		}()
		result, err := s.answer(method, params)
		if err != nil {
			reply(message{ID: id, Error: err})
			return
		}
		reply(message{ID: id, Result: result})
	}()
}

// answer answers a request of a server.
func (s *session) answer(method string, params json.RawMessage) (json.RawMessage, *rpcError) {
	switch method {
	case "ping":
		return json.RawMessage("{}"), nil
	case "roots/list":
		return s.u.roots(), nil
	case "elicitation/create":
		c := s.latest()
		if c == nil {
			c = &activeCall{ctx: s.u.g.ctx, env: &builtin.Env{}} // its question is declined
		} else {
			c.alive.Stop()
			defer c.alive.Reset(silence)
		}
		result, err := s.u.ask(c.ctx, params, c.env.Client)
		if err != nil {
			return nil, &rpcError{Code: codeParams, Message: err.Error()}
		}
		return result, nil
	}
	if method == "sampling/createMessage" {
		return nil, &rpcError{Code: codeNoMethod, Message: "sampling/createMessage is not supported: this host has no model"}
	}
	return nil, &rpcError{Code: codeNoMethod, Message: "not supported: " + cleanText(method, maxLine)}
}

// latest returns the call that started last. A question of the server most likely belongs to it.
func (s *session) latest() (found *activeCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if found == nil || c.began > found.began {
			found = c
		}
	}
	return found
}

// silent returns the cause of ending a call without a response or progress.
func (s *session) silent() error {
	return fmt.Errorf("it was silent for %s%s", silence, s.w.words())
}

// call sends a request that may take long and waits for its result.
func (s *session) call(ctx context.Context, method string, params map[string]any,
	c *activeCall) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := s.u.srv.callTime()
	defer time.AfterFunc(limit, func() { cancel(fmt.Errorf("it did not answer within %s", limit)) }).Stop()
	c.ctx, c.alive = ctx, time.AfterFunc(silence, func() { cancel(s.silent()) })
	defer c.alive.Stop()
	if c.env.Progress != nil {
		defer time.AfterFunc(noiseTime, func() {
			if odd := s.w.unexpected(); odd != "" {
				c.env.Progress("it does not answer, and has written: " + odd)
			}
		}).Stop()
	}
	s.mu.Lock()
	s.token++
	token := fmt.Sprintf("t%d", s.token)
	c.began = s.token
	if s.calls == nil {
		s.calls = map[string]*activeCall{}
	}
	s.calls[token] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, token)
	}()
	params["_meta"] = map[string]any{"progressToken": token}
	raw, err := s.request(ctx, method, params)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ignored++; ctx.Err() == nil {
		s.ignored = 0
	}
	return raw, err
}

// ignoresCancel reports whether the server has left three cancelled calls in a row unanswered.
func (s *session) ignoresCancel() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ignored >= maxIgnored
}

// maxIgnored is how many unanswered cancelled calls in a row end the session.
const maxIgnored = 3
