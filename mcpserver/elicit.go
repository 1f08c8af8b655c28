package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// This file puts a question to the person at a client, as an elicitation of either era.

// questionID names the one question of a result.
const questionID = "approval"

// elicitation returns the elicitation capability that the client declared, or nil. What an unattended client declares
// is ignored.
func elicitation(ctx context.Context) *mcp.ElicitationCapability {
	if transport.PeerOf(ctx).Unattended {
		return nil
	}
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if info.ClientCapabilities == nil {
			return nil
		}
		return info.ClientCapabilities.Elicitation
	}
	session := server.ClientSessionFromContext(ctx)
	known, ok := session.(server.SessionWithClientInfo)
	if _, asks := session.(server.SessionWithElicitation); !ok || !asks {
		return nil
	}
	return known.GetClientCapabilities().Elicitation
}

// canAsk reports whether the client can put a question to a person: by a form, or by a page of the console if there is
// one.
func (s *Server) canAsk(ctx context.Context) bool {
	return showsForms(ctx) || elicitation(ctx) != nil &&
		s.host.approvals.pageOf(transport.PeerOf(ctx).Who.Principal, "any") != ""
}

// showsForms reports whether the client can show a form to a person.
func showsForms(ctx context.Context) bool {
	can := elicitation(ctx)
	return can != nil && (can.URL == nil || can.Form != nil)
}

// opens reports whether the client opens the page of a question. A client that can also show the form opens the page if
// a browser has the console open.
func (s *Server) opens(ctx context.Context, q *Question) bool {
	can := elicitation(ctx)
	return q.URL != "" && can != nil && can.URL != nil && (can.Form == nil || s.host.approvals.operatorPresent())
}

// form returns the question as a form of flat fields, the only kind that all clients can show.
func form(q *Question) mcp.ElicitationParams {
	fields := map[string]any{
		"decision": map[string]any{"type": "string", "title": "Decision", "enum": q.Decisions()},
		"reason":   map[string]any{"type": "string", "title": "Reason", "description": "What the agent should know or do instead"},
	}
	if len(q.Always) > 0 && !q.Fixed {
		fields["rule"] = map[string]any{"type": "string", "title": "Rule to remember",
			"description": "Only to remember less than " + strings.Join(q.Always, ", ") + ": one of these, or a path below. Empty: these"}
	}
	return mcp.ElicitationParams{
		Mode: mcp.ElicitationModeForm, Message: q.Message,
		RequestedSchema: map[string]any{
			"type": "object", "properties": fields, "required": []string{"decision"},
		},
	}
}

// page returns the question as the address of its page at the console.
func page(q *Question) mcp.ElicitationParams {
	return mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, Message: q.Message, ElicitationID: q.ID, URL: q.URL}
}

// toQuestion returns a question as the result of a call in the modern era. A question that opens a page waits at the
// console.
func (s *Server) toQuestion(ctx context.Context, a *Admission, req Request, q *Question) *mcp.CallToolResult {
	shown := form(q)
	if q.Form != nil {
		shown = mcp.ElicitationParams{}
		_ = json.Unmarshal(q.Form, &shown) // the client reports missing fields
	} else if s.opens(ctx, q) {
		shown = page(q)
		opened := &openPage{answered: make(chan struct{})}
		s.host.approvals.pages.put(q.State, opened)
		go func() {
			opened.answer = s.host.approvals.askOperator(context.WithoutCancel(ctx), a, req, q)
			close(opened.answered)
		}()
	}
	return server.NewInputRequestBuilder(q.State).Elicit(questionID, shown).ToolResult()
}

// An openPage is the answer to a question whose page was opened.
type openPage struct {
	answered chan struct{} // closed once there is an answer
	answer   *Answer
}

// answerTo returns the answer that a repeated call carries. If the question's page was opened, and the person did not
// decline to open it, that is the answer from the page. A call that waits for it gives up its place in its scope, so
// that other calls can run, and takes a new one.
func (s adapter) answerTo(ctx context.Context, c *message, p mcp.MultiRoundTripParams) (*Answer, error) {
	if c.peer.Unattended {
		return nil, nil
	}
	from, opened := answerIn(p), s.host.approvals.pages.get(p.RequestState)
	if from == nil || opened == nil || !accepted(p) || c.admission.err != nil {
		return from, nil
	}
	c.admission.Leave()
	select {
	case <-opened.answered:
		c.admission = s.host.readmit(c.admission)
		return opened.answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answerIn returns the answer with which a modern client repeats its call, or nil if there is none.
func answerIn(p mcp.MultiRoundTripParams) *Answer {
	if p.RequestState == "" && len(p.InputResponses) == 0 {
		return nil
	}
	for id := range p.InputResponses {
		if id != questionID {
			return &Answer{State: p.RequestState, By: ByClient,
				Reason: fmt.Sprintf("there is an answer to %q, which was not asked", clipped(id))}
		}
	}
	r := server.ElicitationResponse(p.InputResponses, questionID)
	a := toAnswer(p.RequestState, r)
	if raw, err := json.Marshal(r); err == nil && r != nil {
		a.Form = string(raw)
	}
	return a
}

// elicit puts the question of another server to a legacy client, while its call waits.
func (s *Server) elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, approvals.Lifetime)
		defer cancel()
	}
	var p mcp.ElicitationParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	result, err := s.mcp.RequestElicitation(ctx,
		mcp.ElicitationRequest{Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: p})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// pageDone returns the function that tells a legacy client that a page of another server is done.
func (s *Server) pageDone(ctx context.Context) func(id string) {
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return nil
	}
	return func(id string) {
		// A client that has gone, or whose queue is full, waits in vain: it can repeat its call.
		_ = s.mcp.SendNotificationToSpecificClient(session.SessionID(),
			string(mcp.MethodNotificationElicitationComplete), map[string]any{"elicitationId": id})
	}
}

// accepted reports whether the person agreed to what the client showed.
func accepted(p mcp.MultiRoundTripParams) bool {
	r := server.ElicitationResponse(p.InputResponses, questionID)
	return r != nil && r.Action == mcp.ElicitationResponseActionAccept
}

// putPage makes a legacy client open the page of a question, and waits for the answer given there.
func (s *Server) putPage(ctx context.Context, q *Question) *Answer {
	c, ok := callOf(ctx)
	if !ok {
		return &Answer{State: q.State, By: ByClient}
	}
	ctx, cancel := context.WithTimeout(ctx, approvals.Lifetime)
	defer cancel()
	answers := make(chan *Answer, 2)
	go func() { answers <- s.host.approvals.askOperator(ctx, c.admission, Request{Tool: c.tool.name}, q) }()
	go func() {
		result, err := s.mcp.RequestElicitation(ctx, mcp.ElicitationRequest{
			Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: page(q),
		})
		if err != nil || result.Action != mcp.ElicitationResponseActionAccept {
			answers <- toAnswer(q.State, result)
		}
	}()
	return <-answers
}

// put asks a legacy client and waits. A missing answer or a failure to ask is a refusal.
func (s *Server) put(ctx context.Context, q *Question) *Answer {
	if s.opens(ctx, q) {
		return s.putPage(ctx, q)
	}
	ctx, cancel := context.WithTimeout(ctx, approvals.Lifetime)
	defer cancel()
	result, err := s.mcp.RequestElicitation(ctx, mcp.ElicitationRequest{
		Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: form(q),
	})
	if err != nil {
		late := errors.Is(ctx.Err(), context.DeadlineExceeded)
		if !late {
			s.host.log.Warn("a person could not be asked", "error", err)
		}
		return &Answer{State: q.State, By: ByClient, late: late}
	}
	return toAnswer(q.State, result)
}

// toAnswer reads the fields of the form. Content of another shape is a refusal whose reason says so.
func toAnswer(state string, r *mcp.ElicitationResult) *Answer {
	a := &Answer{State: state, By: ByClient}
	if r == nil {
		return a
	}
	content, isObject := r.Content.(map[string]any)
	reason, _ := content["reason"].(string)
	switch r.Action {
	case mcp.ElicitationResponseActionAccept:
		if wrong := notTheForm(content, isObject); wrong != "" {
			a.Reason = wrong
			return a
		}
		a.Decision = content["decision"].(string)
		a.Rule, _ = content["rule"].(string)
	case mcp.ElicitationResponseActionDecline:
		a.Decision = DenyIt
	}
	a.Reason = reason
	return a
}

// notTheForm returns why the content is not a completed form, "" if it is one.
func notTheForm(content map[string]any, isObject bool) string {
	if !isObject {
		return "the answer is not an object with a decision"
	}
	if _, ok := content["decision"].(string); !ok {
		return "the answer has no decision"
	}
	for name, value := range content {
		_, isString := value.(string)
		if name != "decision" && (name != "reason" && name != "rule" || !isString && value != nil) {
			return fmt.Sprintf("the answer has the field %q, which is not of the form", clipped(name))
		}
	}
	return ""
}
