//go:build linux

package fault

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestEditAlike: where Read shows two places alike, Edit takes neither for the other, and replace_all changes both in their own style.
func TestEditAlike(t *testing.T) {
	for name, tt := range map[string]struct{ file, old, new, all string }{
		"endings":               {"x\r\ny\r\nz\nx\ny\n", "x\ny", "x\nY", "x\r\nY\r\nz\nx\nY\n"},
		"endings, CRLF last":    {"x\ny\nz\nx\r\ny\r\n", "x\ny\n", "w\n", "w\nz\nw\r\n"},
		"the last ending":       {"a\r\nb\na\n", "a\n", "c\n", "c\r\nb\nc\n"},
		"more CRLF than LF":     {"a\r\nb\r\na\r\nb\r\na\nb\r\n", "a\nb", "c", "c\r\nc\r\nc\r\n"},
		"the mark at the start": {"\ufeffx\ny\n\ufeffx\n", "\ufeffx", "w", "\ufeffw\ny\nw\n"},
		"numbers, and endings":  {"x\r\ny\r\nz\nx\ny\n", "     1→x\n     2→y", "w", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			path := g.Put("f.txt", tt.file)
			s := g.start(host.StdioModern)
			s.MustCall("Read", host.Args{"file_path": path})
			s.Refused("Edit", host.Args{"file_path": path, "old_string": tt.old, "new_string": tt.new},
				"occurs 2 times", "occurs 3 times")
			if got := host.Get(t, path); got != tt.file {
				t.Errorf("the file was changed: %q", got)
			}
			if tt.all == "" {
				return
			}
			s.MustCall("Edit", host.Args{"file_path": path, "old_string": tt.old, "new_string": tt.new, "replace_all": true})
			if got := host.Get(t, path); got != tt.all {
				t.Errorf("the file holds %q, want %q", got, tt.all)
			}
			s.End()
		})
	}
}
