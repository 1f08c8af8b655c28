package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// How a question reaches the person at a client, as an elicitation of either era.

// questionID names the one question of a result.
const questionID = "approval"

// canAsk reports whether the client said that it can put a question to a person.
func canAsk(ctx context.Context) bool {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		return info.ClientCapabilities != nil && info.ClientCapabilities.Elicitation != nil
	}
	session := server.ClientSessionFromContext(ctx)
	known, ok := session.(server.SessionWithClientInfo)
	_, asks := session.(server.SessionWithElicitation)
	return ok && asks && known.GetClientCapabilities().Elicitation != nil
}

// form returns the question as a form of flat fields, the only kind that all clients can show.
func form(q *Question) mcp.ElicitationParams {
	fields := map[string]any{
		"decision": map[string]any{"type": "string", "title": "Decision", "enum": q.Decisions()},
		"reason":   map[string]any{"type": "string", "title": "Reason", "description": "What the agent should know or do instead"},
	}
	if len(q.Always) > 0 && !q.ScopeOnly {
		fields["rule"] = map[string]any{"type": "string", "title": "Rule to remember", "description": "Only to remember less than " + strings.Join(q.Always, ", ") + ": one of these, or a path below. Empty: these"}
	}
	return mcp.ElicitationParams{
		Mode: mcp.ElicitationModeForm, Message: q.Message,
		RequestedSchema: map[string]any{
			"type": "object", "properties": fields, "required": []string{"decision"},
		},
	}
}

// toQuestion returns a question as the result of a call in the modern era.
func toQuestion(q *Question) *mcp.CallToolResult {
	return server.NewInputRequestBuilder(q.State).Elicit(questionID, form(q)).ToolResult()
}

// answerIn returns the answer that a modern client repeats its call with, nil if there is none.
func answerIn(p mcp.MultiRoundTripParams) *Answer {
	if p.RequestState == "" && len(p.InputResponses) == 0 {
		return nil
	}
	for id := range p.InputResponses {
		if id != questionID {
			return &Answer{State: p.RequestState, By: ByClient, Reason: fmt.Sprintf("there is an answer to %q, which was not asked", clipped(id))}
		}
	}
	return toAnswer(p.RequestState, server.ElicitationResponse(p.InputResponses, questionID))
}

// put asks a legacy client and waits. No answer in time, and any failure to ask, is a refusal.
func (s *Server) put(ctx context.Context, q *Question) *Answer {
	ctx, cancel := context.WithTimeout(ctx, approvals.Lifetime)
	defer cancel()
	result, err := s.mcp.RequestElicitation(ctx, mcp.ElicitationRequest{
		Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: form(q),
	})
	if err != nil {
		s.host.log.Warn("a person could not be asked", "error", err)
		return &Answer{State: q.State, By: ByClient}
	}
	return toAnswer(q.State, result)
}

// toAnswer reads the fields of the form. An answer of another shape is a refusal that says why.
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
