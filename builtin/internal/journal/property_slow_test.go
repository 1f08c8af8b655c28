//go:build slow

package journal

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestUndoSinceRestoresThatTime holds that undoing all since a moment makes the files what they were then, whatever changes, undos and
// undos of undos came after; and that undoing that takes it back.
func TestUndoSinceRestoresThatTime(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newTree(t)
		type moment struct {
			time  time.Time
			state map[string]string
		}
		moments := []moment{{time.Now(), w.state()}}
		var made []string            // by the last undo, if nothing was changed since
		var before map[string]string // the last undo
		t.Repeat(map[string]func(*rapid.T){
			"change": func(*rapid.T) {
				w.change()
				made = nil
			},
			"moment": func(*rapid.T) { moments = append(moments, moment{time.Now(), w.state()}) },
			"undo since": func(t *rapid.T) {
				at := rapid.SampledFrom(moments).Draw(t, "moment")
				before = w.state()
				var u *Undo
				u, made = undo(t, w.s, Selection{Principal: "p", Since: at.time})
				if len(u.Refused) > 0 {
					t.Fatalf("refused: %+v", u.Refused)
				}
				w.expect("undone since then", at.state)
			},
			"and back": func(t *rapid.T) {
				if len(made) == 0 {
					t.Skip("nothing was undone")
				}
				undone := w.state()
				_, back := undo(t, w.s, Selection{Principal: "p", IDs: made})
				w.expect("undone, and that undone", before)
				_, made = undo(t, w.s, Selection{Principal: "p", IDs: back})
				w.expect("and undone again", undone)
			},
		})
	})
}
