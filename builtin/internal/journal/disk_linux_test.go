package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mount puts a tmpfs of 1 MB on a directory.
func mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount, is a file left open?: %v", err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "1")
	before := stored(t, s, packsName)
	index := read(t, filepath.Join(dir, sectionName("p"), indexName))

	for name, contents := range map[string][2]string{
		"the old content":  {strings.Repeat("x", 2<<20), "small"},
		"the new content":  {"small", strings.Repeat("x", 2<<20)},
		"both":             {strings.Repeat("x", 600<<10), strings.Repeat("y", 600<<10)},
		"the larger first": {strings.Repeat("x", 900<<10), strings.Repeat("y", 200<<10)},
	} {
		e, err := s.Begin(Change{Principal: "p", Path: path}, []byte(contents[0]), []byte(contents[1]))
		if !errors.Is(err, syscall.ENOSPC) || e != nil || !strings.Contains(err.Error(), "no space left") ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want it said that the disk is full", name, err)
		}
		if got := stored(t, s, packsName); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("%s: contents %q, want %q", name, got, before)
		}
		if got := read(t, filepath.Join(dir, sectionName("p"), indexName)); got != index {
			t.Errorf("%s: index %q, want %q", name, got, index)
		}
	}
	if open := s.owner.open(); len(open) > 0 {
		t.Errorf("changes %q are open", open)
	}
	undo(t, s, Selection{Principal: "p", Last: 1})
	if got := read(t, path); got != absent {
		t.Errorf("undone: %q", got)
	}
}

// TestDiskFullAtTheIndex fills the disk, so that contents fit into their page and the line does not.
func TestDiskFullAtTheIndex(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	s.still() // else it tidies a second after its start
	path := filepath.Join(t.TempDir(), "f")
	index := filepath.Join(dir, sectionName("p"), indexName)
	change(t, s, Change{Path: path}, "1")
	for i := 0; len(read(t, index))%4096 < 4096-450; i++ { // the next line crosses into a page that is not there
		change(t, s, Change{Path: path}, fmt.Sprint(i%2))
	}
	fill(t, filepath.Join(dir, "fill"), 0)
	was, blobs := read(t, index), stored(t, s, packsName)
	if _, err := s.Begin(Change{Principal: "p", Path: path}, []byte("1"), []byte("a page")); !errors.Is(err,
		syscall.ENOSPC) {
		t.Errorf("Begin: %v, want the disk to be full", err)
	}
	if got := read(t, index); got != was {
		t.Errorf("the index grew by %q", strings.TrimPrefix(got, was))
	}
	if got := stored(t, s, packsName); fmt.Sprint(got) != fmt.Sprint(blobs) {
		t.Errorf("contents %q, want %q", got, blobs)
	}
}

// TestDiskFullAtTheEnd holds that the end of a change can be recorded on a full disk.
func TestDiskFullAtTheEnd(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "1")
	e := entry(t, s, Change{Path: path}, "2")
	fill(t, filepath.Join(dir, "fill"), 0)
	put(t, path, "2")
	if err := e.End(); err != nil {
		t.Errorf("Done: %v", err)
	}
	for _, c := range list(t, s, Filter{}) {
		if c.State != Done {
			t.Errorf("%+v, want it done", c)
		}
	}
}

// fill fills the disk but for some pages.
func fill(t *testing.T, path string, pages int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var size int64
	for {
		n, err := f.WriteAt(page, size)
		size += int64(n)
		if err != nil {
			break
		}
	}
	if err := f.Truncate(size - pages*4096); err != nil {
		t.Fatal(err)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "1")
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(Change{Principal: "p", Path: path}, []byte("1"), []byte("2")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Begin: %v, want the disk to be read-only", err)
	}
	if n := len(list(t, s, Filter{})); n != 1 {
		t.Errorf("%d changes, want 1", n)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	change(t, s, Change{Path: path}, "2")
}

// TestDiskFullGivesRoom fills the disk with changes. The older ones give room, however young they are, and the last can be undone.
func TestDiskFullGivesRoom(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("%09d\n", i), 6000) }
	for i := range 60 {
		change(t, s, Change{Path: path}, content(i))
	}
	all := list(t, s, Filter{})
	if len(all) == 0 || len(all) > 20 || all[0].State != Done {
		t.Fatalf("%d changes are kept", len(all))
	}
	undo(t, s, Selection{Principal: "p", IDs: []string{all[0].ID}})
	if got := read(t, path); got != content(58) {
		t.Errorf("undone: %.20q", got)
	}
	for s.Shrink() {
	}
	if left := stored(t, s, packsName); len(left) > 0 || len(list(t, s, Filter{})) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestDiskFullKeepsWhatIsUndone: on a full disk other changes make room than those that are to be undone, be it enough or not.
func TestDiskFullKeepsWhatIsUndone(t *testing.T) {
	s := open(t, Config{Dir: mount(t)})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "0")
	id := change(t, s, Change{Path: path}, "1")
	change(t, s, Change{Path: path + "2"}, "2")
	begin := func() (*Entry, Step, error) {
		plan, err := s.PlanUndo(Selection{Principal: "p", IDs: []string{id}, Force: true})
		if err != nil || len(plan.Files) != 1 {
			t.Fatalf("%+v, %v", plan, err)
		}
		entry, err := s.BeginSteps(Change{}, plan.Files)
		return entry, plan.Files[0], err
	}
	put(t, path, strings.Repeat("x", 2<<20)) // has no room
	if _, _, err := begin(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the error is %v", err)
	}
	put(t, path, "1")
	entry, file, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	for s.Shrink() {
	}
	if err := s.tidyAll(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Restored(file); err != nil || string(got) != "0" {
		t.Errorf("the content to restore: %q, %v", got, err)
	}
	if err := entry.End(); err != nil {
		t.Error(err)
	}
}

// TestShareOfTheDisk: the history takes a quarter of what is free without it, and young changes go for that.
func TestShareOfTheDisk(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	for i := range 40 {
		change(t, s, Change{Path: path}, strings.Repeat(fmt.Sprintf("%09d\n", i), 1000))
	}
	s.still() // a change may have started to tidy
	if err := s.tidyAll(); err != nil {
		t.Fatal(err)
	}
	kept := list(t, s, Filter{})
	if len(kept) == 0 || len(kept)*10_000 > 1<<20/freeShare {
		t.Errorf("%d changes are kept", len(kept))
	}
	if h, err := s.Holdings(); err != nil || len(h) != 1 || h[0].Principal != "p" || h[0].Bytes == 0 ||
		h[0].Limit > 1<<18 || h[0].Changes != len(kept) {
		t.Errorf("%+v, %v", h, err)
	}
}
