package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/testenv"
)

// patience bounds how long a test waits for an event before it fails.
const patience = time.Minute

// watch follows a place and returns a function that waits until the settings
// told to onChange satisfy a condition.
func (p *place) watch() (w *Watcher, wait func(what string, ok func(*Settings) bool)) {
	p.t.Helper()
	told := make(chan *Settings, 10000)
	w, err := Watch(p.cfg, func(s *Settings) { told <- s })
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = w.Close() })
	return w, func(what string, ok func(*Settings) bool) {
		p.t.Helper()
		limit := time.After(patience)
		for {
			select {
			case s := <-told:
				if ok(s) {
					return
				}
			case <-limit:
				s := w.Current()
				p.t.Fatalf("%s: not seen; deny %s, warnings %s", what, texts(s.Deny), warnings(s))
			}
		}
	}
}

func denies(want string) func(*Settings) bool {
	return func(s *Settings) bool { return texts(s.Deny) == want }
}

func TestWatchManyRewrites(t *testing.T) {
	testenv.NeedsNotifications(t)
	p := newPlace(t)
	p.write(userFile, "{}")
	w, wait := p.watch()
	const last = 1000
	for i := 1; i <= last; i++ {
		p.write(userFile, rules("", fmt.Sprint(i)))
	}
	wait("the last of the rewrites", denies(fmt.Sprint(last)))
	if s := w.Reload(); texts(s.Deny) != fmt.Sprint(last) || len(s.Broken)+len(s.Warnings) != 0 {
		t.Errorf("deny %s, %v, %v", texts(s.Deny), s.Broken, s.Warnings)
	}
}

// Every edit made before Reload is seen by it, events or none.
func TestReloadSeesEachEdit(t *testing.T) {
	p := newPlace(t)
	p.write(projectFile, "{}")
	w, _ := p.watch()
	for i := range 300 {
		want := fmt.Sprintf("%03d", i)
		p.write(userFile, rules("", want))
		if got := texts(w.Reload().Deny); got != want {
			t.Fatalf("edit %s: got %s", want, got)
		}
	}
	if w.Reload() != w.Current() {
		t.Error("nothing changed, yet the settings are new")
	}
}

// A directory of sources that was absent is not looked into; the first Reload after it has come, by one rename, sees what is in it.
func TestReloadSeesNewDirectories(t *testing.T) {
	denied := func(s *Settings, want string) bool { // next to what a file in the workspace said before, which stays in force
		return strings.HasPrefix(texts(s.Deny)+",", want+",")
	}
	for _, file := range allSources {
		p := newPlace(t)
		top := filepath.Dir(file)
		if file == dropInA || file == dropInB {
			top = filepath.Dir(top)
		}
		w, err := Watch(p.cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			w.Reload()
			want := fmt.Sprint("deny", i)
			p.write(file, rules("", want))
			if now := w.Reload(); !denied(now, want) {
				t.Errorf("%s, made %d times: deny %q, want %q", file, i+1, texts(now.Deny), want)
			}
			if err := os.Rename(p.path(top), p.path(fmt.Sprint("away", i))); err != nil {
				t.Fatal(err)
			}
			w.Reload()
			if err := os.Rename(p.path(fmt.Sprint("away", i)), p.path(top)); err != nil {
				t.Fatal(err)
			}
			if now := w.Reload(); !denied(now, want) {
				t.Errorf("%s, back again: deny %q, want %q", file, texts(now.Deny), want)
			}
			p.remove(top)
		}
	}
}

func TestWatchConcurrently(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, rules("", "x"))
	w, _ := p.watch()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if s := w.Reload(); len(s.Deny) == 0 || len(w.Current().Deny) == 0 {
					t.Error("a reading without the deny rule")
					return
				}
			}
		})
	}
	for i := range 200 { // replaced as editors do, never absent for long
		p.write(userFile, rules("", fmt.Sprintf("x%d", i)))
	}
	wg.Wait()
}

func TestWatchErrors(t *testing.T) {
	if w, err := Watch(Config{Roots: []string{"relative"}}, nil); err == nil || w != nil {
		t.Errorf("got %v, %v", w, err)
	}
	p := newPlace(t)
	w, err := Watch(p.cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	p.write(userFile, rules("", "x"))
	if got := texts(w.Reload().Deny); got != "x" {
		t.Errorf("Reload after Close: %q", got)
	}
}

// Events elsewhere in a root are none of ours.
func TestConcerns(t *testing.T) {
	p := newPlace(t)
	w, _ := p.watch()
	for name, want := range map[string]bool{"work/main.go": false, "work/.claude": true, projectFile: true, "work/.claude/commands": false,
		"home/.bash_history": false, "home/.config": true, filepath.Dir(dropInA): true, dropInA: true, "state/trust.json": true, "state/audit.log": false} {
		if got := w.concerns(p.path(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestFollow: a watcher that follows nothing at first begins to when it is asked, once, and not after its end.
func TestFollow(t *testing.T) {
	testenv.NeedsNotifications(t)
	p := newPlace(t)
	w, err := Watch(p.cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan *Settings, 1)
	w.Follow(func(s *Settings) { changes <- s })
	w.Follow(func(*Settings) { t.Error("followed twice") })
	p.write(userFile+".tmp", rules("", "x"))
	if err := os.Rename(p.path(userFile+".tmp"), p.path(userFile)); err != nil { // it is never seen empty
		t.Fatal(err)
	}
	if s := <-changes; texts(s.Deny) != "x" {
		t.Errorf("told of %q", texts(s.Deny))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	w.Follow(func(*Settings) { t.Error("followed after the end") })
	p.write(userFile, rules("", "y"))
	if s := w.Reload(); texts(s.Deny) != "y" {
		t.Errorf("Reload sees %q", texts(s.Deny))
	}
}
