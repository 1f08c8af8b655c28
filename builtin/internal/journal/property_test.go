package journal

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// names are the files of the properties; one is not UTF-8.
var names = []string{"a", "b", "c\xff"}

// A tree is a directory of files that changes are made in at random.
type tree struct {
	t   *rapid.T
	s   *Journal
	dir string
}

func newTree(t *rapid.T) *tree {
	dir, err := os.MkdirTemp("", "history")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Dir: filepath.Join(dir, "history")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return &tree{t, s, dir}
}

func (w *tree) path(name string) string { return filepath.Join(w.dir, name) }

// state returns what all files hold.
func (w *tree) state() map[string]string {
	all := make(map[string]string)
	for _, name := range names {
		all[name] = read(w.t, w.path(name))
	}
	return all
}

func (w *tree) name() string { return rapid.SampledFrom(names).Draw(w.t, "file") }

// change makes a change of some file to one of few contents, so that contents come back.
func (w *tree) change() {
	path := w.path(w.name())
	contents := []string{"", "1", "2", "3", absent}
	if read(w.t, path) == absent {
		contents = contents[:4]
	}
	change(w.t, w.s, Change{Scope: "s", Path: path}, rapid.SampledFrom(contents).Draw(w.t, "content"))
}

func (w *tree) expect(what string, want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.state()); diff != "" {
		w.t.Fatalf("%s (-want +got)\n%s", what, diff)
	}
}

// TestUndoLastIsAStack holds that undoing the last n changes, again and again, goes back through what the files were.
func TestUndoLastIsAStack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTree(t)
		stack := []map[string]string{w.state()}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(*rapid.T) {
				w.change()
				stack = append(stack, w.state())
			},
			"undo last": func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "n")
				undo(t, w.s, Selection{Principal: "p", Last: n})
				stack = stack[:max(1, len(stack)-n)]
				w.expect(fmt.Sprintf("the last %d undone", n), stack[len(stack)-1])
			},
		})
	})
}

// TestUndoSparesWhatOthersDid holds that files that somebody else changed are refused and stay, and all others are restored.
func TestUndoSparesWhatOthersDid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTree(t)
		want := w.state()
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			w.change()
		}
		touched := make(map[string]bool)
		for range rapid.IntRange(0, 2).Draw(t, "by others") {
			name := w.name()
			put(t, w.path(name), "by somebody else")
			touched[w.path(name)] = true
			want[name] = "by somebody else"
		}
		u, _ := undo(t, w.s, Selection{Principal: "p", Scope: "s"})
		w.expect("undone", want)
		for _, r := range u.Refused {
			if !touched[r.Path] {
				t.Errorf("%+v was refused, touched are %q", r, slices.Collect(maps.Keys(touched)))
			}
		}
	})
}
