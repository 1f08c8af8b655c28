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
	greedy, other := a.lease("greedy"), a.lease("other")
	for _, id := range []string{"1", "2", "3"} {
		if no := greedy.admitRequest("", request(id)); no != nil {
			t.Fatalf("request %s: %s", id, no.text)
		}
	}
	if no := greedy.admitRequest("", request("4")); no == nil || no.status != http.StatusServiceUnavailable || !no.retry {
		t.Errorf("one caller takes all: %+v", no)
	}
	if no := other.admitRequest("", request("1")); no != nil {
		t.Errorf("another caller is kept out: %s", no.text)
	}
	if no := a.lease("third").admitRequest("", request("1")); no == nil {
		t.Error("more requests than room")
	}
	for _, m := range []jsonrpc.Envelope{{Method: "notifications/cancelled"}, {ID: json.RawMessage("1"), Result: json.RawMessage("{}")}} {
		if no := greedy.admitRequest("", m); no != nil {
			t.Errorf("%+v: %s", m, no.text)
		}
	}
	if !greedy.takeBytes(300) || greedy.takeBytes(1) || !other.takeBytes(100) || other.takeBytes(1) {
		t.Error("bytes are not counted")
	}
	for range 3 {
		if !greedy.admitRead(1) {
			t.Error("a message finds no room")
		}
	}
	if greedy.admitRead(1) || !other.admitRead(1) || other.admitRead(1) {
		t.Error("messages on their way in are not counted")
	}
	if other.admitRead(-1); !other.admitRead(1) {
		t.Error("the place of a message that was read is not free")
	}
	for range 3 {
		if no := greedy.admitStream(); no != nil {
			t.Error(no.text)
		}
	}
	if no := greedy.admitStream(); no == nil || no.status != http.StatusServiceUnavailable {
		t.Errorf("one caller takes all streams: %+v", no)
	}
	greedy.release()
	greedy.release()
	other.release()
	if a.total != (load{}) || len(a.perPrincipal) != 0 || len(a.ids) != 0 {
		t.Errorf("after all have left: %+v, %v, %v", a.total, a.perPrincipal, a.ids)
	}
}

func TestAdmissionOfIDs(t *testing.T) {
	a := newAdmission(UsualLimits())
	first := a.lease("p")
	if no := first.admitRequest("session", request("1")); no != nil {
		t.Fatal(no.text)
	}
	for _, tt := range []struct {
		session, id string
		status      int
	}{
		{"session", "1", http.StatusBadRequest}, {"session", `"1"`, 0}, {"session", `"\u0031"`, http.StatusBadRequest}, {"other", "1", 0}, {"", "1", 0}, {"", "1", 0},
	} {
		status := 0
		if no := a.lease("p").admitRequest(tt.session, request(tt.id)); no != nil {
			status = no.status
		}
		if status != tt.status {
			t.Errorf("session %q, id %s: status %d, want %d", tt.session, tt.id, status, tt.status)
		}
	}
	first.release()
	if no := a.lease("p").admitRequest("session", request("1")); no != nil {
		t.Errorf("an id that was answered: %s", no.text)
	}
}

func TestDraining(t *testing.T) {
	a := newAdmission(UsualLimits())
	running := a.lease("p")
	running.admitRequest("s", request("1"))
	empty := a.drain()
	for name, no := range map[string]*httpError{"a request": a.lease("p").admitRequest("", request("2")), "a stream": a.lease("p").admitStream()} {
		if no == nil || no.status != http.StatusServiceUnavailable || !no.retry {
			t.Errorf("%s while draining: %+v", name, no)
		}
	}
	if no := a.lease("p").admitRequest("s", jsonrpc.Envelope{ID: json.RawMessage("9"), Result: json.RawMessage("{}")}); no != nil {
		t.Errorf("the answer to a question of a running call: %s", no.text)
	}
	select {
	case <-empty:
		t.Error("it is empty while a request runs")
	default:
	}
	running.release()
	<-empty
	<-newAdmission(UsualLimits()).drain()
}
