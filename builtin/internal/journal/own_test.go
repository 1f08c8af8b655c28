package journal

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A story is what several calls do to one file, whose contents are single letters.
type story struct {
	t    *testing.T
	s    *Journal
	file string
	ids  map[string]string // of the entries, by the names of the calls
	open map[string]*Entry
	was  map[string]Node // when a command began
}

func (y *story) node() Node {
	n, err := NodeAt(y.file)
	if err != nil {
		y.t.Fatal(err)
	}
	return n
}

// play does what the words say: "A(" begins command A, "A)" ends it, "A!" kills its host; "e=Y" is an edit by call e, "=Z" a write by a command.
func (y *story) play(script string) {
	for word := range strings.FieldsSeq(script) {
		call, last := word[:len(word)-1], word[len(word)-1]
		switch {
		case last == '(':
			r := Running{Principal: "p" + call, Command: call, Roots: []string{filepath.Dir(y.file)}, Begun: time.Now()}
			e, err := y.s.Announce(r)
			if err != nil {
				y.t.Fatal(err)
			}
			y.ids[call], y.open[call], y.was[call] = e.ID, e, y.node()
		case last == ')':
			now, was := y.node(), y.was[call]
			var changes []PathChange
			if !now.same(was) {
				content := []byte(read(y.t, y.file+"."+was.Sum))
				changes = append(changes, PathChange{Path: y.file, Before: was, After: now, Content: func() ([]byte, error) { return content, nil }})
			}
			if _, err := y.open[call].Settle(Call{}, changes); err != nil {
				y.t.Fatal(err)
			}
		case call == "=":
			y.put(string(last))
		default:
			old := read(y.t, y.file)
			e, err := y.s.Begin(Change{Principal: "q", Path: y.file}, []byte(old), []byte{last})
			if err != nil {
				y.t.Fatal(err)
			}
			y.put(string(last))
			y.ids[strings.TrimSuffix(call, "=")] = e.ID
			if err := e.End(); err != nil {
				y.t.Fatal(err)
			}
		}
	}
}

// put writes a content, and keeps it under its hash, as a base does.
func (y *story) put(content string) {
	put(y.t, y.file, content)
	put(y.t, y.file+"."+y.node().Sum, content)
}

// TestOwnChanges: an entry holds what its own call changed, and an undo that cannot tell says which entries share a change.
func TestOwnChanges(t *testing.T) {
	for _, tt := range []struct{ script, undo, want string }{
		{"A( =b A)", "A", "a"},
		{"A( e=b A)", "A", "none"},
		{"A( e=b =a A)", "A", "b"},
		{"A( e=b =a A)", "A e", "a"},
		{"A( e=b B( =a A) B)", "A", "while A and B ran at the same time"},
		{"A( e=b A)", "e", "a"},
		{"A( =b e=c A)", "A", "changed after A by e"},
		{"A( =b e=c A)", "e", "b"},
		{"A( =b e=c A)", "A e", "a"},
		{"A( e=b =c A)", "A", "b"},
		{"A( e=b =c A)", "e", "changed after e by A"},
		{"A( e=b =c A)", "A e", "a"},
		{"A( =b e=c =d A)", "A e", "a"},
		{"A( =b e=c =d A)", "A", "between A and A it was also changed by e"},
		{"A( =b e=c f=d =e g=f =g A)", "A e f g", "a"},
		{"A( =b A) e=c B( =d B)", "B", "c"},
		{"A( B( =b B) A)", "A", "while A and B ran at the same time"},
		{"A( B( =b B) A)", "B", "while B and A ran at the same time"},
		{"A( B( =b B) A)", "A B", "a"},
		{"A( B( =b A) B)", "A B", "a"},
		{"A( =b B( =c A) B)", "A B", "a"},
		{"A( =b B( =c A) B)", "B", "while B and A ran at the same time"},
		{"A( =b B( A) B)", "A", "a"},
		{"A( =b B( A) =c B)", "B", "b"},
		{"A( =b B( A) =c B)", "A", "changed after A by B"},
		{"e=b f=a A( =b A)", "A", "a"},
		{"A( B( e=b B) A)", "e", "a"},
		{"A( B( e=b =c B) A)", "e A B", "a"},
		{"A( B( e=b =c B) A)", "A", "while A and B ran at the same time"},
	} {
		t.Run(tt.script+" undo "+tt.undo, func(t *testing.T) {
			dir := t.TempDir()
			y := &story{t, open(t, Config{Dir: filepath.Join(dir, "history")}), filepath.Join(dir, "w"),
				map[string]string{}, map[string]*Entry{}, map[string]Node{}}
			y.put("a")
			y.play(tt.script)
			var ids []string
			all := list(t, y.s, Filter{Principal: AllPrincipals})
			for name := range strings.FieldsSeq(tt.undo) {
				if slices.ContainsFunc(all, func(c Change) bool { return c.ID == y.ids[name] }) {
					ids = append(ids, y.ids[name])
				}
			}
			got := "none"
			if len(ids) > 0 {
				u, err := y.s.PlanUndo(Selection{Principal: AllPrincipals, IDs: ids})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range u.Refused {
					got = r.Why
				}
				for _, f := range u.Files {
					content, err := y.s.Restored(f)
					got = string(content)
					if err != nil {
						t.Error(err)
					}
				}
			}
			for name, id := range y.ids {
				got = strings.ReplaceAll(got, id, name)
			}
			if !strings.Contains(got, tt.want) || len(tt.want) == 1 && got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOwnDirectories: a new directory is of the call that needed it.
func TestOwnDirectories(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: filepath.Join(dir, "history")})
	command, err := s.Announce(Running{Principal: "p", Begun: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	var changes []PathChange
	for _, name := range []string{"d", "d/e", "g", "g/h"} {
		changes = append(changes, PathChange{Path: filepath.Join(dir, name), After: Node{Mode: fs.ModeDir | 0o755}})
	}
	for _, name := range []string{"d/e/f", "g/f"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		change(t, s, Change{Principal: "q", Path: path}, "x")
		now, err := NodeAt(path)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, PathChange{Path: path, After: now})
	}
	own, err := command.Settle(Call{}, changes)
	var names []string
	for _, p := range own {
		names = append(names, strings.TrimPrefix(p.Path, dir))
	}
	if err != nil || !slices.Equal(names, []string{"/g", "/g/h"}) {
		t.Errorf("%q, %v", names, err)
	}
}
