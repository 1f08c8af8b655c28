package contract

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// Every field passes, bytes that are no text included.
func TestRoundTrip(t *testing.T) {
	object := place.Object{Path: "/a\xff", Inode: place.Inode{Dev: 1 << 40, Ino: 2}, Dir: true}
	objects := []place.Object{object, {Path: "/b"}}
	want := &Plan{Writable: objects, ReadOnly: objects[:1], Denied: objects, Masked: objects[1:], Shown: objects,
		Programs: objects, Private: []Private{{Name: "/tmp", Dir: object, Entries: objects}},
		Caches: []Cache{{object, objects[1], object}}, Files: []Copy{{"/f", 0o600, "\x00text"}},
		Pins: []string{"/p", ""}, Sockets: []string{"/s"}, Judged: true, Execs: true,
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
	var gotRequest Request
	if err := decode(encode(request), &gotRequest); err != nil || !cmp.Equal(request, gotRequest) {
		t.Error(err, cmp.Diff(request, gotRequest))
	}
	event := Event{Kind: Done, ID: 2, Err: errors.New("why"), Mark: 3, Status: 9, Gone: true, Ended: 4,
		Attempt: Attempt{true, false, true}, NoTUN: errors.New("no TUN"), Cached: []string{"/c"}}
	var gotEvent Event
	texts := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	if err := decode(encode(event), &gotEvent); err != nil || !cmp.Equal(event, gotEvent, texts) {
		t.Error(err, cmp.Diff(event, gotEvent, texts))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(Request{Kind: Spawn, ID: 7, Dir: "/", Argv: []string{"a", "b"}}))
	f.Add([]byte{byte(Deny), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, to := range []any{&Request{}, &Event{}, &Plan{}} {
			d := &decoder{buf: data}
			d.value(reflect.ValueOf(to).Elem())
			if d.err != nil && len(d.text()) > 0 {
				t.Error("a field after an error")
			}
		}
	})
}
