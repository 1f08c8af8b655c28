//go:build linux

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// changes are the changes that the history lists, the newest first.
func (g *ground) changes() []change { return g.history() }

// toolhost runs a command of the program on the ground, which has to succeed.
func (g *ground) toolhost(command string, flags ...string) string {
	g.t.Helper()
	out, err := g.run(command, flags...)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(out)
}

// lines is a content whose diffs are short enough to be shown, and not kept as results.
func lines(n, size int) string { return strings.Repeat(fmt.Sprintf("line of %04d\n", n), size/13) }

// TestFaultHistoryRoom keeps the history on the disk of the files. It gives room before a change is refused, and the last changes can be
// undone.
func TestFaultHistoryRoom(t *testing.T) {
	for name, size := range map[string]int{"small": 20_000, "large": 2 << 20, "very large": 9 << 20} {
		for _, links := range []int{1, 2} { // two: it is written in place, from a journal
			t.Run(fmt.Sprintf("%s, %d links", name, links), func(t *testing.T) {
				g := newGround(t)
				disk := tempDir(t)
				tmpfs(t, disk, "size=32m")
				g.ws, g.state = filepath.Join(disk, "ws"), filepath.Join(disk, "state")
				must(t, os.Mkdir(g.ws, 0o755))
				path := g.put("f.txt", lines(0, size))
				if links == 2 {
					must(t, os.Link(path, g.path("g.txt")))
					if size > 4<<20 {
						t.Skip("the journal of a write in place takes old and new content besides")
					}
				}
				s := g.start(stdioModern)
				s.call("Read", args{"file_path": path, "limit": 1})
				rounds := min(often(20, 400), often(3, 40)*(32<<20)/size)
				for i := 1; i <= rounds; i++ {
					s.call("Write", args{"file_path": path, "content": lines(i, size)})
					s.call("Edit", args{"file_path": g.path("small.txt"), "old_string": "", "new_string": "new\n"})
					must(t, os.Remove(g.path("small.txt")))
				}
				if got := get(t, path); got != lines(rounds, size) {
					t.Errorf("the file has %d bytes that are not those of the last change", len(got))
				}
				s.end()
				if size > 4<<20 {
					return // there is no room for what it held
				}
				for _, c := range g.changes() {
					if c.Path == path {
						g.toolhost("undo", c.ID)
						break
					}
				}
				if get(t, path) != lines(rounds-1, size) {
					t.Error("the last change was not undone")
				}
			})
		}
	}
}

// TestFaultHistoryOtherDisk: what is full is not the disk of the history, which then forgets nothing.
func TestFaultHistoryOtherDisk(t *testing.T) {
	g := newGround(t)
	tmpfs(t, g.ws, "size=4m")
	path := g.put("f.txt", "one\n")
	s := g.start(stdioModern)
	s.call("Read", args{"file_path": path})
	for i := range 5 {
		s.call("Write", args{"file_path": path, "content": fmt.Sprint(i)})
	}
	fill(t, g.ws, 0)
	s.refused("Write", args{"file_path": path, "content": lines(1, 1<<20)}, "free some space")
	s.refused("Write", args{"file_path": g.path("a/b/c"), "content": lines(1, 1<<20)}, "free some space")
	s.end()
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
