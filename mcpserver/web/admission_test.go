package web

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/toolhost/toolhost/mcpserver/internal/wire"
)

func request(id string) wire.Envelope {
	return wire.Envelope{ID: json.RawMessage(id), Method: wire.MethodCall}
}

func TestAdmission(t *testing.T) {
	a := newAdmission(Limits{InFlight: 4, Streams: 4, Reading: 4, Bytes: 400})
	greedy, other := a.place("greedy"), a.place("other")
	for _, id := range []string{"1", "2", "3"} {
		if no := greedy.enter("", request(id)); no != nil {
			t.Fatalf("request %s: %s", id, no.text)
		}
	}
	if no := greedy.enter("", request("4")); no == nil || no.status != http.StatusServiceUnavailable || !no.retry {
		t.Errorf("one caller takes all: %+v", no)
	}
	if no := other.enter("", request("1")); no != nil {
		t.Errorf("another caller is kept out: %s", no.text)
	}
	if no := a.place("third").enter("", request("1")); no == nil {
		t.Error("more requests than room")
	}
	for _, m := range []wire.Envelope{{Method: "notifications/cancelled"}, {ID: json.RawMessage("1"), Result: json.RawMessage("{}")}} {
		if no := greedy.enter("", m); no != nil {
			t.Errorf("%+v: %s", m, no.text)
		}
	}
	if !greedy.takeBytes(300) || greedy.takeBytes(1) || !other.takeBytes(100) || other.takeBytes(1) {
		t.Error("bytes are not counted")
	}
	for range 3 {
		if !greedy.read(1) {
			t.Error("a message finds no room")
		}
	}
	if greedy.read(1) || !other.read(1) || other.read(1) {
		t.Error("messages on their way in are not counted")
	}
	if other.read(-1); !other.read(1) {
		t.Error("the place of a message that was read is not free")
	}
	for range 3 {
		if no := greedy.listen(); no != nil {
			t.Error(no.text)
		}
	}
	if no := greedy.listen(); no == nil || no.status != http.StatusServiceUnavailable {
		t.Errorf("one caller takes all streams: %+v", no)
	}
	greedy.leave()
	greedy.leave()
	other.leave()
	if a.all != (load{}) || len(a.by) != 0 || len(a.ids) != 0 {
		t.Errorf("after all have left: %+v, %v, %v", a.all, a.by, a.ids)
	}
}

func TestAdmissionOfIDs(t *testing.T) {
	a := newAdmission(UsualLimits())
	first := a.place("p")
	if no := first.enter("session", request("1")); no != nil {
		t.Fatal(no.text)
	}
	for _, tt := range []struct {
		session, id string
		status      int
	}{
		{"session", "1", http.StatusBadRequest}, {"session", `"1"`, 0}, {"session", `"\u0031"`, http.StatusBadRequest}, {"other", "1", 0}, {"", "1", 0}, {"", "1", 0},
	} {
		status := 0
		if no := a.place("p").enter(tt.session, request(tt.id)); no != nil {
			status = no.status
		}
		if status != tt.status {
			t.Errorf("session %q, id %s: status %d, want %d", tt.session, tt.id, status, tt.status)
		}
	}
	first.leave()
	if no := a.place("p").enter("session", request("1")); no != nil {
		t.Errorf("an id that was answered: %s", no.text)
	}
}

func TestDraining(t *testing.T) {
	a := newAdmission(UsualLimits())
	running := a.place("p")
	running.enter("s", request("1"))
	empty := a.drain()
	for name, no := range map[string]*rejection{"a request": a.place("p").enter("", request("2")), "a stream": a.place("p").listen()} {
		if no == nil || no.status != http.StatusServiceUnavailable || !no.retry {
			t.Errorf("%s while draining: %+v", name, no)
		}
	}
	if no := a.place("p").enter("s", wire.Envelope{ID: json.RawMessage("9"), Result: json.RawMessage("{}")}); no != nil {
		t.Errorf("the answer to a question of a running call: %s", no.text)
	}
	select {
	case <-empty:
		t.Error("it is empty while a request runs")
	default:
	}
	running.leave()
	<-empty
	<-newAdmission(UsualLimits()).drain()
}
