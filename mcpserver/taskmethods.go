package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// The methods of the Tasks extension.
const (
	methodTaskGet    = "tasks/get"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
	methodTaskEvent  = transport.TaskEvent
)

// A ProtocolError is an error of the protocol, which a model does not see, such as a call that its client made wrongly.
type ProtocolError struct {
	Code int
	Text string
}

func (e *ProtocolError) Error() string { return e.Text }

// codeOf returns the JSON-RPC error code for an error.
func codeOf(err error) int {
	if e, ok := errors.AsType[*ProtocolError](err); ok {
		return e.Code
	}
	return mcp.INTERNAL_ERROR
}

// declares reports whether the client of a modern request has declared a capability, or an extension, which has a
// slash in its name.
func declares(m *jsonrpc.Envelope, name string) bool {
	declared, _ := m.Params.Meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	if strings.Contains(name, "/") {
		declared, _ = declared["extensions"].(map[string]any)
	}
	return declared[name] != nil
}

// missingCapabilities returns the error for a request whose client has not declared these.
func missingCapabilities(id json.RawMessage, names ...string) *jsonrpc.Error {
	needed, extensions := map[string]any{}, map[string]any{}
	for _, name := range names {
		if strings.Contains(name, "/") {
			extensions[name] = struct{}{}
			needed["extensions"] = extensions
		} else {
			needed[name] = struct{}{}
		}
	}
	return &jsonrpc.Error{
		ID: id, Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY,
		Text: mcp.MissingRequiredClientCapabilityError{Capability: names[0]}.Error(),
		Data: map[string]any{"requiredCapabilities": needed},
	}
}

// taskParams are the params of the methods of the extension.
type taskParams struct {
	TaskID         string             `json:"taskId"`
	InputResponses mcp.InputResponses `json:"inputResponses"`
	Notifications  struct {
		mcp.SubscriptionFilter
		TaskIDs []string `json:"taskIds,omitempty"`
	} `json:"notifications"`
}

func (m *message) taskParams() (p taskParams, err error) {
	var whole struct{ Params *taskParams }
	whole.Params = &p
	return p, json.Unmarshal(m.Rest, &whole)
}

// Named implements [transport.Message]: the methods of the extensions. Those of tasks name a task.
func (m *message) Named() (name string, own bool) {
	switch m.Method {
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
		p, _ := m.taskParams() // Own reports the error
		return p.TaskID, m.Modern("")
	case methodSkillList, methodSkillGet, methodDirectory:
		return "", m.Modern("")
	case string(mcp.MethodSubscriptionsListen):
		p, err := m.taskParams()
		return "", err == nil && len(p.Notifications.TaskIDs) > 0 && m.Modern("")
	}
	return "", false
}

// Own implements [transport.Message].
func (m *message) Own(ctx context.Context) (answer mcp.JSONRPCMessage, status int) {
	result, no := m.ownResult(ctx)
	if no != nil && no.Code == mcp.METHOD_NOT_FOUND {
		return no.Response(), http.StatusNotFound
	}
	if no != nil {
		return no.Response(), http.StatusBadRequest
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: result}, http.StatusOK
}

// Instead implements [transport.Message].
func (m *message) Instead() mcp.JSONRPCMessage {
	if m.created == nil {
		return nil
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: m.created}
}

func (m *message) ownResult(ctx context.Context) (result any, no *jsonrpc.Error) {
	if !strings.HasPrefix(m.Method, "tasks/") && m.Method != string(mcp.MethodSubscriptionsListen) {
		return m.skillResult(ctx)
	}
	if !declares(&m.Envelope, tasksExtension) {
		return nil, missingCapabilities(m.ID, tasksExtension)
	}
	p, err := m.taskParams()
	if err != nil {
		return nil, &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: m.Method + ": " + readable(err)}
	}
	tasks, principal, known := &m.host.clientTasks, transport.PeerOf(ctx).Who.Principal, false
	switch m.Method {
	case methodTaskGet:
		var view taskView
		view, known = tasks.see(principal, p.TaskID)
		view.ResultType, result = mcp.ResultTypeComplete, &view
	case methodTaskUpdate:
		known, result = tasks.update(principal, p.TaskID, p.InputResponses), completeResult(nil)
	case methodTaskCancel:
		known, result = tasks.stop(principal, p.TaskID), completeResult(nil)
	default:
		return m.listen(ctx, p), nil
	}
	if !known {
		return nil, &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: "there is no task " + clipped(p.TaskID) +
			": it never existed, ended over " + taskKept.String() + " ago, or belongs to another caller"}
	}
	return result, nil
}

// completeResult returns an empty result.
func completeResult(meta map[string]any) map[string]any {
	result := map[string]any{"resultType": mcp.ResultTypeComplete}
	if meta != nil {
		result["_meta"] = meta
	}
	return result
}

// listen serves a subscription to tasks, and to lists, until the client ends it. The library knows no subscriptions
// of extensions.
func (m *message) listen(ctx context.Context, p taskParams) any {
	peer, meta := transport.PeerOf(ctx), map[string]any{mcp.MetaKeySubscriptionID: m.ID}
	events := &taskEvents{newest: map[string]taskView{}, some: make(chan struct{}, 1)}
	known, end := m.host.clientTasks.listen(peer.Who.Principal, p.Notifications.TaskIDs, events.put)
	defer end()
	wanted := p.Notifications
	wanted.TaskIDs, wanted.ResourceSubscriptions = known, nil
	peer.Notify(ctx, mcp.MethodNotificationSubscriptionsAcknowledged,
		map[string]any{"_meta": meta, "notifications": wanted})
	req := &mcp.SubscriptionsListenRequest{}
	req.Params.Notifications = wanted.SubscriptionFilter
	defer m.subscribeTo(req, func(method string) {
		if ctx.Err() == nil {
			peer.Notify(ctx, method, map[string]any{"_meta": meta})
		}
	})()
	for {
		select {
		case <-events.some:
			for _, v := range events.take() {
				v.Meta = meta
				var params map[string]any
				raw, err := json.Marshal(v)
				if err == nil && json.Unmarshal(raw, &params) == nil {
					peer.Notify(ctx, methodTaskEvent, params)
				}
			}
		case <-ctx.Done():
			return completeResult(maps.Clone(meta))
		}
	}
}

// taskEvents are the changes of tasks that a listening client has not received yet. Only the newest state of each
// task is kept.
type taskEvents struct {
	mu     sync.Mutex
	newest map[string]taskView // by id
	some   chan struct{}       // has room for one value, and has it when newest is not empty
}

// put adds a change. It does not wait.
func (e *taskEvents) put(v taskView) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.newest[v.ID] = v
	select {
	case e.some <- struct{}{}:
	default:
	}
}

// take takes all changes, the oldest first.
func (e *taskEvents) take() []taskView {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.SortedFunc(maps.Values(e.newest), func(a, b taskView) int { return a.Updated.Compare(b.Updated) })
	clear(e.newest)
	return all
}
