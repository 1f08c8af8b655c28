//go:build slow && linux

package fault

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

// TestWriteAfterPage: a Write replaces what others changed only if a Read came after that, wherever in the file it was and however little
// of the file was read.
func TestWriteAfterPage(t *testing.T) {
	const theirs = "THEIRS"
	change := func(path string) error { // of the same size, beyond the page that is read
		raw, err := os.ReadFile(path)
		if err == nil {
			copy(raw[len(raw)-len(theirs)-1:], theirs)
			err = os.WriteFile(path, raw, 0o644)
		}
		return err
	}
	for name, tt := range map[string]struct {
		change  func(path string) error
		calls   []string // before the Write
		allowed bool
		small   bool // of a small file only
	}{
		"nothing":                       {change: func(string) error { return nil }, allowed: true},
		"touched":                       {change: func(path string) error { return os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)) }, allowed: true, small: true},
		"changed":                       {change: change},
		"changed, and read again":       {change: change, calls: []string{"Read"}, allowed: true},
		"changed, and edited":           {change: change, calls: []string{"Edit"}},
		"changed, edited twice":         {change: change, calls: []string{"Edit", "Edit back"}},
		"changed, tried to edit":        {change: change, calls: []string{"Edit nothing"}},
		"edited":                        {change: func(string) error { return nil }, calls: []string{"Edit"}, allowed: true},
		"changed, and edited, and read": {change: change, calls: []string{"Edit", "Read"}, allowed: true},
		"appended": {change: func(path string) error {
			raw, err := os.ReadFile(path)
			host.Must(t, err)
			return os.WriteFile(path, append(raw, theirs...), 0o644)
		}},
		"saved by a rename": {change: func(path string) error {
			raw, err := os.ReadFile(path)
			host.Must(t, err)
			host.Must(t, os.WriteFile(path+".save", append(raw, theirs...), 0o644))
			return os.Rename(path+".save", path)
		}},
		"changed, and its time put back": {change: func(path string) error {
			info, err := os.Stat(path)
			host.Must(t, err)
			host.Must(t, change(path))
			return os.Chtimes(path, info.ModTime(), info.ModTime())
		}},
		"a page changed and put back, and another changed": {change: func(path string) error {
			raw, err := os.ReadFile(path)
			host.Must(t, err)
			host.Must(t, os.WriteFile(path, append([]byte("x"), raw...), 0o644))
			host.Must(t, os.WriteFile(path, raw, 0o644))
			return change(path)
		}},
	} {
		for size, lines := range map[string]int{"small": 100, "large": 100_000} {
			if size == "large" && tt.small {
				continue
			}
			t.Run(name+", "+size, func(t *testing.T) {
				g := newGround(t)
				path := g.Put("f.txt", strings.Repeat("a line of text\n", 2)+"state: old\n"+
					strings.Repeat("a line of text\n", lines))
				s := g.start(host.StdioModern)
				read := host.Args{"file_path": path, "offset": 1, "limit": 3}
				s.MustCall("Read", read)
				host.Must(t, tt.change(path))
				for _, c := range tt.calls {
					switch c {
					case "Read":
						s.MustCall("Read", read)
					case "Edit":
						s.MustCall("Edit", host.Args{"file_path": path, "old_string": "state: old", "new_string": "state: new"})
					case "Edit back":
						s.MustCall("Edit", host.Args{"file_path": path, "old_string": "state: new", "new_string": "state: old"})
					case "Edit nothing":
						s.Refused("Edit", host.Args{"file_path": path, "old_string": "not there", "new_string": "x"},
							"not found", "not there")
					}
				}
				before := []byte(host.Get(t, path))
				if tt.allowed {
					s.MustCall("Write", host.Args{"file_path": path, "content": "mine\n"})
					return
				}
				s.Refused("Write", host.Args{"file_path": path, "content": "mine\n"}, "has changed on disk since")
				if !bytes.Equal(before, []byte(host.Get(t, path))) || !bytes.Contains(before, []byte(theirs)) {
					t.Error("what another program wrote is gone")
				}
				s.MustCall("Read", read)
				s.MustCall("Write", host.Args{"file_path": path, "content": "mine\n"})
				s.End()
			})
		}
	}
}
