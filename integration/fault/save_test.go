//go:build linux

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A saver is a tool that changes a file which another program saves by a rename.
type saver struct {
	tool, name string
	content    func(version string) string // of the file
	args       func(path string) host.Args
}

var savers = []saver{
	{"Edit", "edit.txt", func(v string) string { return "version " + v + "\nstate: old\n" }, func(path string) host.Args {
		return host.Args{"file_path": path, "old_string": "state: old", "new_string": "state: new"}
	}},
	{"Write", "write.txt", func(v string) string { return "version " + v + "\n" }, func(path string) host.Args {
		return host.Args{"file_path": path, "content": "version lost\n"}
	}},
	{"NotebookEdit", "book.ipynb", func(v string) string {
		return `{"cells":[{"cell_type":"markdown","id":"a","metadata":{},"source":["version ` + v +
			`"]},{"cell_type":"raw","id":"b","metadata":{},"source":["old"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`
	}, func(path string) host.Args {
		return host.Args{"notebook_path": path, "cell_id": "b", "new_source": "new"}
	}},
}

// TestFaultSaved saves files by a rename, as editors, sed -i and git do, at any moment of a change. The version that was saved is in the
// file afterwards. A call that was overtaken says what changed.
func TestFaultSaved(t *testing.T) {
	rounds := samples.Rounds(samples.Rounds(150))
	g := newGround(t)
	s := g.start(host.StdioModern)
	for _, v := range savers {
		t.Run(v.tool, func(t *testing.T) {
			path := g.Path(v.name)
			refused, lost := 0, 0
			took := time.Millisecond // how long a call takes
			for i := range rounds {
				host.Must(t, os.WriteFile(path, []byte(v.content("0")), 0o644))
				s.MustCall("Read", host.Args{"file_path": path})
				theirs := v.content(fmt.Sprint(i + 1))
				host.Must(t, os.WriteFile(path+".save", []byte(theirs), 0o644))
				var both sync.WaitGroup
				wait := time.Duration(rand.Int64N(int64(took)))
				both.Go(func() {
					for moment := time.Now().Add(wait); time.Now().Before(moment); {
						_ = moment
					}
					if err := os.Rename(path+".save", path); err != nil {
						t.Error(err)
					}
				})
				begun := time.Now()
				text, failed := s.Try(v.tool, v.args(path))
				took = (took + time.Since(begun)) / 2
				both.Wait()
				if failed {
					refused++
					if !strings.Contains(text, fmt.Sprintf("version %d", i+1)) &&
						!strings.Contains(text, "Read it again") {
						t.Errorf("the refusal says nothing of what was saved:\n%s", text)
					}
				}
				if host.Get(t, path) != theirs {
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("%d of %d versions that were saved are lost", lost, rounds)
			}
			t.Logf("%d of %d calls were refused", refused, rounds)
		})
	}
	s.End()
	if left := host.Leftovers(t, g.WS); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestFaultEmptied empties a file after other changes of its directory. The file is as new as the change, however it was made.
func TestFaultEmptied(t *testing.T) {
	g := newGround(t)
	path, linked := g.Put("f.txt", "one\n"), g.Put("g.txt", "one\n")
	host.Must(t, os.Link(linked, g.Path("h.txt")))
	s := g.start(host.StdioModern)
	changed := func(path string) time.Time {
		info, err := os.Stat(path)
		host.Must(t, err)
		return info.ModTime()
	}
	for _, path := range []string{path, linked} {
		s.MustCall("Read", host.Args{"file_path": path})
		for _, change := range []host.Args{{"old_string": "one\n", "new_string": ""},
			{"old_string": "", "new_string": "one\n"}, {"old_string": "one\n", "new_string": ""}} {
			before := changed(path)
			change["file_path"] = path
			s.MustCall("Edit", change)
			if now := changed(path); now.Before(before) {
				t.Errorf("%v: changed at %v, before at %v", change, now, before)
			}
		}
		s.MustCall("Write", host.Args{"file_path": path, "content": "two\n"})
		before := changed(path)
		s.MustCall("Write", host.Args{"file_path": path, "content": ""})
		if now := changed(path); now.Before(before) {
			t.Errorf("emptied at %v, before at %v", now, before)
		}
	}
	s.End()
}
