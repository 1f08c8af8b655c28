package contract

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// Every field passes, bytes that are no text included. What process 1 finds out by itself does not.
func TestRoundTrip(t *testing.T) {
	object := place.Object{Path: "/a\xff", Inode: place.Inode{Dev: 1 << 40, Ino: 2}, Dir: true}
	objects := []place.Object{object, {Path: "/b"}}
	want := &Plan{Writable: objects, ReadOnly: objects[:1], Denied: objects, Masked: objects[1:], Shown: objects,
		Programs: objects, Private: []Private{{Name: "/tmp", Dir: object, Entries: objects}},
		Caches: []Cache{{object, objects[1], object}}, Files: []Copy{{"/f", 0o600, "\x00text"}},
		Pins: []string{"/p", ""}, Sockets: []string{"/s"}, Network: true, Judged: true, Execs: true,
		Writes: true, Owners: true,
		Processes: 7, Overlay: 1 << 40, Temporary: []string{"/t"}}
	var text bytes.Buffer
	if err := want.Write(&text); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPlan(&text); err != nil || !cmp.Equal(want, got) {
		t.Errorf("plan: %v\n%s", err, cmp.Diff(want, got))
	}

	request := Request{Kind: Spawn, ID: 1 << 40, Command: 3, Dir: "/d", Argv: []string{"a", "\xff"}, Env: []string{"A=b"},
		Terminal: true, Signal: 9, Port: 80, Objects: objects, Pins: []string{"/p"}, Canary: Canary{"/r", "/w", 1}}
	e := &encoder{}
	request.encode(e)
	var gotRequest Request
	if gotRequest.decode(&decoder{buf: e.buf}); !cmp.Equal(request, gotRequest) {
		t.Error(cmp.Diff(request, gotRequest))
	}
	event := Event{Kind: Done, ID: 2, Err: errors.New("why"), Mark: 3, Status: 9, Gone: true, Ended: 4,
		Attempt: Attempt{true, false, true}, NoTUN: errors.New("no TUN"), Cached: []string{"/c"}}
	e = &encoder{}
	event.encode(e)
	var gotEvent Event
	texts := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	if gotEvent.decode(&decoder{buf: e.buf}); !cmp.Equal(event, gotEvent, texts, cmpopts.EquateEmpty()) {
		t.Error(cmp.Diff(event, gotEvent, texts, cmpopts.EquateEmpty()))
	}
}

func FuzzDecode(f *testing.F) {
	e := &encoder{}
	Request{Kind: Spawn, ID: 7, Dir: "/", Argv: []string{"a", "b"}}.encode(e)
	f.Add(e.buf)
	f.Add([]byte{byte(Deny), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, decode := range []func(*decoder){(&Request{}).decode, (&Event{}).decode, func(d *decoder) { decodePlan(d) }} {
			d := &decoder{buf: data}
			decode(d)
			if d.err != nil && len(d.str()) > 0 {
				t.Error("a field after an error")
			}
		}
	})
}
