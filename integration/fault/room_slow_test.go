//go:build slow && linux

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// lines is a content whose diffs are short enough to be shown, and not kept as results.
func lines(n, size int) string { return strings.Repeat(fmt.Sprintf("line of %04d\n", n), size/13) }

// TestFaultHistoryRoom keeps the history on the disk of the files. It gives room before a change is refused, and the last changes can be
// undone.
func TestFaultHistoryRoom(t *testing.T) {
	for name, size := range map[string]int{"small": 20_000, "large": 2 << 20, "very large": 9 << 20} {
		for _, links := range []int{1, 2} { // two: it is written in place, from a journal
			t.Run(fmt.Sprintf("%s, %d links", name, links), func(t *testing.T) {
				g := newGround(t)
				disk := host.TempDir(t)
				host.Tmpfs(t, disk, "size=32m")
				g.WS, g.State = filepath.Join(disk, "ws"), filepath.Join(disk, "state")
				host.Must(t, os.Mkdir(g.WS, 0o755))
				path := g.Put("f.txt", lines(0, size))
				if links == 2 {
					host.Must(t, os.Link(path, g.Path("g.txt")))
					if size > 4<<20 {
						t.Skip("the journal of a write in place takes old and new content besides")
					}
				}
				s := g.start(host.StdioModern)
				s.MustCall("Read", host.Args{"file_path": path, "limit": 1})
				rounds := min(samples.Rounds(20), samples.Rounds(3)*(32<<20)/size)
				for i := 1; i <= rounds; i++ {
					s.MustCall("Write", host.Args{"file_path": path, "content": lines(i, size)})
					s.MustCall("Edit", host.Args{"file_path": g.Path("small.txt"), "old_string": "", "new_string": "new\n"})
					host.Must(t, os.Remove(g.Path("small.txt")))
				}
				if got := host.Get(t, path); got != lines(rounds, size) {
					t.Errorf("the file has %d bytes that are not those of the last change", len(got))
				}
				s.End()
				if size > 4<<20 {
					return // there is no room for what it held
				}
				for _, c := range g.changes() {
					if c.Path == path {
						g.toolhost("undo", c.ID)
						break
					}
				}
				if host.Get(t, path) != lines(rounds-1, size) {
					t.Error("the last change was not undone")
				}
			})
		}
	}
}

// TestFaultHistoryOtherDisk: what is full is not the disk of the history, which then forgets nothing.
func TestFaultHistoryOtherDisk(t *testing.T) {
	g := newGround(t)
	host.Tmpfs(t, g.WS, "size=4m")
	path := g.Put("f.txt", "one\n")
	s := g.start(host.StdioModern)
	s.MustCall("Read", host.Args{"file_path": path})
	for i := range 5 {
		s.MustCall("Write", host.Args{"file_path": path, "content": fmt.Sprint(i)})
	}
	host.Fill(t, g.WS, 0)
	s.Refused("Write", host.Args{"file_path": path, "content": lines(1, 1<<20)}, "free some space")
	s.Refused("Write", host.Args{"file_path": g.Path("a/b/c"), "content": lines(1, 1<<20)}, "free some space")
	s.End()
	made := 0
	for _, c := range g.changes() {
		if c.State == "done" {
			made++
		}
	}
	if made != 5 {
		t.Errorf("%d changes are in the history, want 5", made)
	}
}
