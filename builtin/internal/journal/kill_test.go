package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	// childEnv makes the test binary change files until it is killed, or as often as childCount says.
	childEnv   = "TOOLHOST_HISTORY_CHILD"
	childCount = "TOOLHOST_HISTORY_COUNT"
)

// child changes files in dir/files under the journal dir/history, and prints a line for each.
func child(dir string) {
	count, err := strconv.Atoi(os.Getenv(childCount))
	if err != nil {
		count = 1 << 30
	}
	s, err := Open(Config{Dir: filepath.Join(dir, "history")})
	if err == nil {
		err = changeAtRandom(s, dir, count)
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func changeAtRandom(s *Journal, dir string, count int) error {
	var t childFataler
	for i := range count {
		path := filepath.Join(dir, "files", fmt.Sprintf("%d-%d", os.Getpid(), rand.IntN(3)))
		content := absent
		if rand.IntN(8) > 0 {
			content = fmt.Sprintf("%d of %d\n", i, os.Getpid()) + strings.Repeat("some text\n", rand.IntN(20_000))
		}
		e := entry(t, s, Change{Tool: "Write", Path: path}, content)
		temp := filepath.Join(dir, "temp-"+filepath.Base(path))
		if content == absent {
			put(t, path, absent)
		} else {
			put(t, temp, content)
			if err := os.Rename(temp, path); err != nil {
				return err
			}
		}
		if err := e.End(); err != nil {
			return err
		}
		if rand.IntN(4) == 0 {
			if err := s.tidyAll(); err != nil {
				return err
			}
		}
		fmt.Println(i)
	}
	return nil
}

type childFataler struct{}

func (childFataler) Helper()                           {}
func (f childFataler) Fatalf(format string, a ...any)  { f.Errorf(format, a...); os.Exit(1) }
func (childFataler) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func TestLockedByAStoppedProcess(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) { lockedByAStoppedProcess(t, dir, filepath.Join(files, "f")) })
}

func lockedByAStoppedProcess(t *testing.T, dir, path string) {
	s := open(t, Config{Dir: dir}) // ends are written at once
	time.Sleep(2 * tidyDelay)      // what is tidied after a start would wait for the mutex, and no time would pass
	change(t, s, Change{Path: path}, "1")
	j := s.section(sectionName("p"))
	blobs := stored(t, s, packsName)
	// Another Store, and so another lock on the same file, is to its lock what another process is.
	err := (&section{dir: j.dir}).locked(func() error {
		_, err := s.Begin(Change{Principal: "p", Path: path}, []byte("1"), []byte("2"))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "another process has held") {
		t.Errorf("Begin: %v, want it to give up", err)
	}
	if diff := cmp.Diff(blobs, stored(t, s, packsName)); diff != "" || len(s.owner.open()) != 0 {
		t.Errorf("%q open, left behind (-want +got)\n%s", s.owner.open(), diff)
	}
	// That a change was made needs no lock. That it failed does: until then it is open, and the next process settles it.
	made := entry(t, s, Change{Path: path}, "2")
	put(t, path, "2")
	late := entry(t, s, Change{Path: path}, "3")
	if err := (&section{dir: j.dir}).locked(func() error { return made.End() }); err != nil {
		t.Error(err)
	}
	if err := (&section{dir: j.dir}).locked(late.Abort); err == nil {
		t.Error("the failure of a change passed the lock")
	}
	want := []State{Pending, Done, Done}
	for range 2 {
		for i, c := range list(t, s, Filter{}) {
			if c.State != want[i] {
				t.Errorf("change %d is %s, want it %s", i, c.State, want[i])
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, want = open(t, Config{Dir: dir}), []State{Failed, Done, Done}
	}
}

// TestSettle makes a change, dies at some moment of it, and looks what the next host makes of it.
func TestSettle(t *testing.T) {
	for _, tt := range []struct {
		name, before, after, now string
		want                     State
	}{
		{"before the write", "1", "2", "1", Failed},
		{"after the write", "1", "2", "2", Done},
		{"changed since", "1", "2", "3!", Unknown},
		{"changed since to the same size", "1", "2", "3", Unknown},
		{"removed since", "1", "2", absent, Unknown},
		{"not created", absent, "2", absent, Failed},
		{"created", absent, "2", "2", Done},
		{"created empty", absent, "", "", Done},
		{"not removed", "1", absent, "1", Failed},
		{"removed", "1", absent, absent, Done},
		{"no change", "1", "1", "1", Done},
	} {
		for _, next := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "history")
			path := filepath.Join(t.TempDir(), "f")
			killed, other := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
			put(t, path, tt.before)
			entry(t, killed, Change{Path: path}, tt.after)
			put(t, path, tt.now)
			if next { // the next change tells as well as the file itself
				change(t, other, Change{Path: path}, "next")
			}
			die(t, killed)
			if _, err := other.PlanUndo(Selection{Principal: "p", Last: 1}); err != nil { // a host that runs already settles it too
				t.Error(err)
			}
			changes := list(t, other, Filter{})
			if got := changes[len(changes)-1].State; got != tt.want {
				t.Errorf("%s (next %v): %s, want %s", tt.name, next, got, tt.want)
			}
			if owners, err := os.ReadDir(filepath.Join(dir, ownersName)); err != nil || len(owners) != 1 {
				t.Errorf("%s: owners %v, %v, want the living one", tt.name, owners, err)
			}
		}
	}
}

// TestSettleTorn holds that nothing is said of a file that is not whole yet, and that the start after that says it.
func TestSettleTorn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	path := filepath.Join(t.TempDir(), "f")
	killed := open(t, Config{Dir: dir})
	put(t, path, "old")
	entry(t, killed, Change{Path: path}, "new")
	put(t, path, "nld")
	die(t, killed)
	torn := true
	for _, want := range []State{Pending, Failed} {
		s := open(t, Config{Dir: dir, Torn: func(name string) bool { return torn && name == path }})
		if got := list(t, s, Filter{})[0].State; got != want {
			t.Errorf("torn %v: %s, want %s", torn, got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		torn = false
		put(t, path, "old") // it was made whole
	}
}

func TestTheLivingAreLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	path := filepath.Join(t.TempDir(), "f")
	living := open(t, Config{Dir: dir})
	e := entry(t, living, Change{Path: path}, "1")
	die(t, open(t, Config{Dir: dir}))
	other := open(t, Config{Dir: dir}) // settles after the dead one, and not after the living
	if got := list(t, other, Filter{})[0].State; got != Pending {
		t.Errorf("state %s, want it pending", got)
	}
	put(t, path, "1")
	if err := e.End(); err != nil {
		t.Fatal(err)
	}
	die(t, living)
	if s := open(t, Config{Dir: dir}); list(t, s, Filter{})[0].State != Done {
		t.Error("the change is not done")
	}
}

// TestManyAtOnce changes files from many goroutines under several principals.
func TestManyAtOnce(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	dir := t.TempDir()
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for n := range 10 {
				change(t, s, Change{Principal: string(rune('p' + i%2)), Path: filepath.Join(dir, strconv.Itoa(i))},
					strconv.Itoa(n))
			}
		})
	}
	running.Wait()
	for _, who := range []string{"p", "q"} {
		if n := len(list(t, s, Filter{Principal: who, Since: time.Now().Add(-time.Hour)})); n != 40 {
			t.Errorf("%s: %d changes, want 40", who, n)
		}
	}
}
