package httpserver

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

func request(id string) jsonrpc.Envelope {
	return jsonrpc.Envelope{ID: json.RawMessage(id), Method: jsonrpc.MethodCall}
}

func TestAdmission(t *testing.T) {
	a := newAdmission(Limits{InFlight: 4, Streams: 4, Reading: 4, Bytes: 400})
	greedy, other, third := a.lease("greedy"), a.lease("other"), a.lease("third")
	for _, id := range []string{"1", "2", "3"} {
		if refused := greedy.admitRequest("", request(id)); refused != nil {
			t.Fatalf("request %s: %s", id, refused.text)
		}
	}
	if refused := greedy.admitRequest("", request("4")); refused == nil ||
		refused.status != http.StatusServiceUnavailable || !refused.retry {
		t.Errorf("request over the limit of one caller: got %+v, want status 503 with retry", refused)
	}
	if refused := other.admitRequest("", request("1")); refused != nil {
		t.Errorf("request of another caller: %s", refused.text)
	}
	if refused := a.lease("third").admitRequest("", request("1")); refused == nil {
		t.Error("request over the total limit was admitted")
	}
	for _, m := range []jsonrpc.Envelope{{Method: "notifications/cancelled"},
		{ID: json.RawMessage("1"), Result: json.RawMessage("{}")}} {
		if refused := greedy.admitRequest("", m); refused != nil {
			t.Errorf("%+v: %s", m, refused.text)
		}
	}
	if !greedy.takeBytes(300) || greedy.takeBytes(1) || !other.takeBytes(75) || other.takeBytes(1) ||
		!third.takeBytes(18) {
		t.Error("takeBytes does not enforce the limits")
	}
	for range 3 {
		if !greedy.admitRead(1) {
			t.Error("admitRead refused a message within the limit")
		}
	}
	if greedy.admitRead(1) || !other.admitRead(1) || other.admitRead(1) {
		t.Error("admitRead does not enforce the limits")
	}
	if other.admitRead(-1); !other.admitRead(1) {
		t.Error("admitRead(-1) did not release the message")
	}
	for range 3 {
		if refused := greedy.admitStream(); refused != nil {
			t.Error(refused.text)
		}
	}
	if refused := greedy.admitStream(); refused == nil || refused.status != http.StatusServiceUnavailable {
		t.Errorf("stream over the limit of one caller: got %+v, want status 503", refused)
	}
	greedy.release()
	greedy.release()
	other.release()
	third.release()
	if a.total != (load{}) || len(a.perPrincipal) != 0 || len(a.ids) != 0 {
		t.Errorf("after all releases: total %+v, per principal %v, ids %v", a.total, a.perPrincipal, a.ids)
	}
}

func TestAdmissionOfIDs(t *testing.T) {
	a := newAdmission(UsualLimits())
	first := a.lease("p")
	if refused := first.admitRequest("session", request("1")); refused != nil {
		t.Fatal(refused.text)
	}
	for _, tt := range []struct {
		session, id string
		status      int
	}{
		{"session", "1", http.StatusBadRequest}, {"session", `"1"`, 0}, {"session", `"\u0031"`, http.StatusBadRequest}, {"other", "1", 0}, {"", "1", 0}, {"", "1", 0},
	} {
		status := 0
		if refused := a.lease("p").admitRequest(tt.session, request(tt.id)); refused != nil {
			status = refused.status
		}
		if status != tt.status {
			t.Errorf("session %q, id %s: status %d, want %d", tt.session, tt.id, status, tt.status)
		}
	}
	first.release()
	if refused := a.lease("p").admitRequest("session", request("1")); refused != nil {
		t.Errorf("reused id after the release: %s", refused.text)
	}
}

func TestDraining(t *testing.T) {
	a := newAdmission(UsualLimits())
	running := a.lease("p")
	running.admitRequest("s", request("1"))
	empty := a.drain()
	for name, refused := range map[string]*httpError{"a request": a.lease("p").admitRequest("", request("2")),
		"a stream": a.lease("p").admitStream()} {
		if refused == nil || refused.status != http.StatusServiceUnavailable || !refused.retry {
			t.Errorf("%s while draining: %+v", name, refused)
		}
	}
	if refused := a.lease("p").admitRequest("s", jsonrpc.Envelope{ID: json.RawMessage("9"), Result: json.RawMessage("{}")}); refused != nil {
		t.Errorf("response to an elicitation of a running call: %s", refused.text)
	}
	select {
	case <-empty:
		t.Error("empty is closed while a request runs")
	default:
	}
	running.release()
	<-empty
	<-newAdmission(UsualLimits()).drain()
}
