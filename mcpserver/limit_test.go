package mcpserver

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

func TestBounded(t *testing.T) {
	image := builtin.Image{Data: make([]byte, maxResult/4), MIME: "image/png"}
	r := bounded(builtin.Result{Text: "pages", Images: []builtin.Image{image, image, image, image}})
	if len(r.Images) != 2 || !strings.Contains(r.Text, "2 of 4 images were omitted") || r.IsError {
		t.Errorf("%d images, text %q", len(r.Images), r.Text)
	}
	if r := bounded(builtin.Result{Text: strings.Repeat("x", maxResult+1)}); !r.IsError || len(r.Text) > 200 {
		t.Errorf("a text of %d bytes", len(r.Text))
	}
	if r := bounded(builtin.Result{Text: "short", Images: []builtin.Image{image}}); len(r.Images) != 1 ||
		r.Text != "short" {
		t.Errorf("%+v", r.Text)
	}
}

func TestLongArguments(t *testing.T) {
	h, root := openHost(t, nil)
	r := do(h, "Write", `{"file_path":"a","content":"`+strings.Repeat("x", maxArguments)+`"}`)
	if !r.IsError || !strings.Contains(r.Text, "split the call") {
		t.Errorf("%.200s", r.Text)
	}
	if r := do(h, "Glob", `{"pattern":"*"}`); strings.Contains(r.Text, root) {
		t.Errorf("something was written: %s", r.Text)
	}
}

func TestCallsOfAScopeAreBounded(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "a\n"})
	var all []*Admission
	for range scope.MaxCalls {
		all = append(all, h.Admit(Local(), nil, "", true))
	}
	if r := do(h, "Read", `{"file_path":"a.txt"}`); !r.IsError || r.Text != scope.ErrBusy.Error() {
		t.Errorf("one call too many: %s", r.Text)
	}
	other := h.Admit(Local(), map[string]any{"threadId": "1"}, "", true)
	if other.err != nil {
		t.Errorf("another scope: %v", other.err)
	}
	other.Leave()
	for _, a := range all {
		a.Leave()
	}
	if r := do(h, "Read", `{"file_path":"a.txt"}`); r.IsError {
		t.Errorf("afterwards: %s", r.Text)
	}
}
