package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"toolhost/mcpserver/internal/question"
)

// How a question travels to the person behind a client, as an elicitation of either era.

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

// form is the question as a form of flat fields, which is all that clients must be able to show.
func form(q *Question) mcp.ElicitationParams {
	decisions := []string{AllowOnce, DenyIt}
	if len(q.Always) > 0 {
		decisions = []string{AllowOnce, AlwaysAllow, DenyIt}
	}
	return mcp.ElicitationParams{
		Mode: mcp.ElicitationModeForm, Message: q.Message,
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "title": "Decision", "enum": decisions},
				"reason":   map[string]any{"type": "string", "title": "Reason", "description": "What the agent should know or do instead"},
			},
			"required": []string{"decision"},
		},
	}
}

// toQuestion is a question as the result of a call in the modern era.
func toQuestion(q *Question) *mcp.CallToolResult {
	return server.NewInputRequestBuilder(q.State).Elicit(questionID, form(q)).ToolResult()
}

// answerIn is the answer that a modern client repeats its call with; nil when there is none.
func answerIn(p mcp.MultiRoundTripParams) *Answer {
	if p.RequestState == "" && len(p.InputResponses) == 0 {
		return nil
	}
	return toAnswer(p.RequestState, server.ElicitationResponse(p.InputResponses, questionID))
}

// put asks a legacy client and waits. No answer in time, and any failure to ask, is a refusal.
func (s *Server) put(ctx context.Context, q *Question) *Answer {
	ctx, cancel := context.WithTimeout(ctx, question.Time)
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

func toAnswer(state string, r *mcp.ElicitationResult) *Answer {
	a := &Answer{State: state, By: ByClient}
	if r == nil {
		return a
	}
	content, _ := r.Content.(map[string]any)
	a.Reason, _ = content["reason"].(string)
	switch r.Action {
	case mcp.ElicitationResponseActionAccept:
		a.Decision, _ = content["decision"].(string)
	case mcp.ElicitationResponseActionDecline:
		a.Decision = DenyIt
	}
	return a
}
