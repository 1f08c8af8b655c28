package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUndo runs scripts. Steps are "file=content" (a change in scope s), "file!content" (by somebody else), "undo WHAT", "force WHAT"
// and "redo" (undo the changes that the last undo made); WHAT is a number (the last so many), "scope", "all" (since the start), or
// "#1,#3" (these changes, counted from 1).
func TestUndo(t *testing.T) {
	for _, tt := range []struct {
		name, steps string
		want        string // files and contents at the end
		refused     string // in the refusals of the last undo
	}{
		{"one", "a=1;a=2;undo 1", "a=1", ""},
		{"two of a file", "a=1;a=2;a=3;undo 2", "a=1", ""},
		{"a creation", "a=1;undo 1", "", ""},
		{"one after the other", "a=1;a=2;a=3;undo 1;undo 1", "a=1", ""},
		{"more than there are", "a=1;b=1;undo 9", "", ""},
		{"several files", "a=1;b=1;a=2;b=2;undo 2", "a=1 b=1", ""},
		{"redo", "a=1;a=2;undo 1;redo", "a=2", ""},
		{"redo of a removal", "a=1;undo 1;redo", "a=1", ""},
		{"undo after redo", "a=1;a=2;undo 1;redo;undo 1", "a=1", ""},
		{"redo of several", "a=1;b=1;a=2;undo scope;redo", "a=2 b=1", ""},
		{"undo, then change, then all", "a=1;a=2;undo 1;a=3;undo all", "", ""},
		{"all is exact", "a=1;undo 1;redo;a=2;undo all", "", ""},
		{"scope, of which one is undone", "a=1;a=2;undo 1;undo scope", "", ""},
		{"scope twice", "a=1;a=2;undo scope;undo scope", "", ""},
		{"the newest by ID", "a=1;a=2;undo #2", "a=1", ""},
		{"an undo by ID", "a=1;a=2;undo 1;undo #3", "a=2", ""},
		{"drift", "a=1;a=2;a!x;undo 1", "a=x", "outside the history"},
		{"drift elsewhere", "a=1;b=1;a!x;undo 2", "a=x", "outside the history"},
		{"drift, forced", "a=1;a=2;a!x;force 1", "a=1", ""},
		{"forced, undone", "a=1;a=2;a!x;force 1;redo", "a=x", ""},
		{"removed by somebody", "a=1;a=2;a!" + absent + ";undo 1", "", "outside the history"},
		{"removed by somebody, forced", "a=1;a=2;a!" + absent + ";force 1", "a=1", ""},
		{"restored by somebody", "a=1;a=2;a!1;undo 1", "a=1", ""},
		{"restored by somebody, on", "a=1;a=2;a!1;undo 1;undo 1", "", ""},
		{"no change", "a=1;a=1;undo 1;undo 1", "", ""},
		{"not the newest", "a=1;a=2;a=3;undo #2", "a=3", "changed after #2 by #3: undo that too"},
		{"not the newest, forced", "a=1;a=2;a=3;force #2", "a=1", ""},
		{"a gap", "a=1;a=2;a=3;undo #1,#3", "a=3", "between #1 and #3 it was also changed by #2"},
		{"a gap by somebody", "a=1;a=2;a!x;a=3;undo #2,#3", "a=3", "between #2 and #3 it was also changed by something outside"},
		{"a gap, forced", "a=1;a=2;a=3;force #1,#3", "", ""},
		{"a gap that was undone", "a=1;a=2;undo #2;a=4;undo #1,#4", "", ""},
		{"to empty and back", "a=1;a=;undo 1", "a=1", ""},
		{"from empty", "a=;a=1;undo 1", "a=", ""},
		{"there and back", "a=1;a=2;a=1;undo 2", "a=1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &script{t: t, s: open(t, Config{Dir: filepath.Join(t.TempDir(), "history")}), dir: t.TempDir(),
				start: time.Now()}
			for step := range strings.SplitSeq(tt.steps, ";") {
				r.step(step)
			}
			if got := r.files(); got != tt.want {
				t.Errorf("files %q, want %q", got, tt.want)
			}
			var why []string
			for _, refusal := range r.last.Refused {
				why = append(why, refusal.Why)
			}
			got := strings.Join(why, " ")
			for i, c := range r.changes() {
				got = strings.ReplaceAll(got, c, "#"+string(rune('1'+i)))
			}
			if tt.refused == "" && got != "" || !strings.Contains(got, tt.refused) {
				t.Errorf("refused: %q, want %q", got, tt.refused)
			}
			if forced := strings.Contains(tt.steps, "force"); !forced {
				for _, f := range r.last.Files {
					if f.Loses != "" {
						t.Errorf("loses %q unasked", f.Loses)
					}
				}
			}
		})
	}
}

// A script runs the steps of TestUndo.
type script struct {
	t     *testing.T
	s     *Journal
	dir   string
	start time.Time
	last  *Undo
	made  []string // by the last undo
}

// changes returns the IDs of all changes, oldest first.
func (r *script) changes() []string {
	all := ids(list(r.t, r.s, Filter{}))
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

func (r *script) step(step string) {
	r.t.Helper()
	if verb, what, _ := strings.Cut(step, " "); verb == "undo" || verb == "force" || verb == "redo" {
		sel := Selection{Principal: "p", Force: verb == "force"}
		switch {
		case verb == "redo":
			sel.IDs = r.made
		case what == "scope":
			sel.Scope = "s"
		case what == "all":
			sel.Since = r.start
		case what[0] == '#':
			for id := range strings.SplitSeq(what, ",") {
				sel.IDs = append(sel.IDs, r.changes()[id[1]-'1'])
			}
		default:
			sel.Last = int(what[0] - '0')
		}
		r.last, r.made = undo(r.t, r.s, sel)
		return
	}
	r.last = new(Undo)
	path, content := filepath.Join(r.dir, step[:1]), step[2:]
	if step[1] == '!' {
		put(r.t, path, content)
		return
	}
	change(r.t, r.s, Change{Scope: "s", Path: path}, content)
}

func (r *script) files() string {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name()+"="+read(r.t, filepath.Join(r.dir, e.Name())))
	}
	return strings.Join(all, " ")
}

func TestPlanUndoRefuses(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	first := change(t, s, Change{Path: a, Scope: "s"}, "1")
	undo(t, s, Selection{Principal: "p", Last: 1})
	e := entry(t, s, Change{Path: a, Scope: "s"}, "2")
	if err := e.Abort(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		sel  Selection
		want string
	}{
		{"nothing", Selection{Principal: "p"}, "no changes to undo"},
		{"only force", Selection{Principal: "p", Force: true}, "no changes to undo"},
		{"a negative number", Selection{Principal: "p", Last: -1}, "no changes to undo"},
		{"nobody", Selection{Last: 1}, "principal is needed"},
		{"two ways", Selection{Principal: "p", IDs: []string{first}, Last: 1}, "not both"},
		{"unknown", Selection{Principal: "p", IDs: []string{"unknown"}}, "no such change"},
		{"of another", Selection{Principal: "q", IDs: []string{first}}, "no such change"},
		{"undone", Selection{Principal: "p", IDs: []string{first}}, "has been undone by"},
		{"not made", Selection{Principal: "p", IDs: []string{e.ID}}, "was not made"},
	} {
		if _, err := s.PlanUndo(tt.sel); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if u, err := s.PlanUndo(Selection{Principal: "q", Since: time.Time{}.Add(1)}); err != nil || len(u.Files) > 0 {
		t.Errorf("all changes of another: %+v, %v, want none", u, err)
	}
}

func TestUndoOfWhatIsBeingChanged(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "a")
	change(t, s, Change{Path: path}, "1")
	entry(t, s, Change{Path: path}, "2")
	for _, sel := range []Selection{{Last: 1}, {Path: path, Force: true}} {
		sel.Principal = "p"
		u, err := s.PlanUndo(sel)
		if err != nil || len(u.Files) > 0 || len(u.Refused) != 1 ||
			!strings.Contains(u.Refused[0].Why, "is being made") {
			t.Errorf("%+v, %v, want it refused", u, err)
		}
	}
}

func TestUndoOfUnclearChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	killed := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "a")
	change(t, killed, Change{Path: path}, "1")
	entry(t, killed, Change{Path: path}, "2")
	die(t, killed)
	put(t, path, "by hand")
	s := open(t, Config{Dir: dir})
	u, _ := undo(t, s, Selection{Principal: "p", Last: 1})
	if len(u.Refused) != 1 || !strings.Contains(u.Refused[0].Why, "killed during change") || !u.Refused[0].Forced {
		t.Errorf("%+v, want it refused", u)
	}
	u, _ = undo(t, s, Selection{Principal: "p", Last: 1, Force: true})
	if got := read(t, path); got != "1" || u.Files[0].Loses == "" {
		t.Errorf("forced: %q, %+v", got, u)
	}
}

func TestUndoTouchesOnlyRegularFiles(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	dir := t.TempDir()
	change(t, s, Change{Path: filepath.Join(dir, "link")}, "1")
	change(t, s, Change{Path: filepath.Join(dir, "dir")}, "1")
	change(t, s, Change{Path: filepath.Join(dir, "gone")}, "1")
	put(t, filepath.Join(dir, "link"), absent)
	put(t, filepath.Join(dir, "dir"), absent)
	other := filepath.Join(t.TempDir(), "other")
	put(t, other, "1")
	if err := os.Symlink(other, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	u, _ := undo(t, s, Selection{Principal: "p", Path: dir, Force: true})
	var refused []string
	for _, r := range u.Refused {
		refused = append(refused, filepath.Base(r.Path))
	}
	if diff := cmp.Diff([]string{"dir", "link"}, refused); diff != "" || len(u.Files) != 1 || read(t, other) != "1" {
		t.Errorf("%+v (-want +got)\n%s", u, diff)
	}
}

// TestUndoBelowWhatIsNoDirectory undoes the creation of a file whose directory was replaced by a file since.
func TestUndoBelowWhatIsNoDirectory(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	sub := filepath.Join(t.TempDir(), "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(sub, "f")
	change(t, s, Change{Path: path}, "1")
	if err := os.RemoveAll(sub); err != nil {
		t.Fatal(err)
	}
	put(t, sub, "a file")
	u, err := s.PlanUndo(Selection{Principal: "p", Last: 1})
	if err != nil || len(u.Files) != 1 || !u.Files[0].Expect.IsZero() || !u.Files[0].Restore.IsZero() {
		t.Errorf("%+v, %v, want nothing to do", u, err)
	}
}
