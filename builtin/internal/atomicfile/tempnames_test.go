package atomicfile

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// entries counts the entries of a journal.
func entries(t *testing.T, journal string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(journal, "*"+entrySuffix))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestTempsKeepEntries(t *testing.T) {
	path, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var temps Temps
	o := Options{JournalDir: journal, Temps: &temps}
	write := func(name string) {
		t.Helper()
		if _, err := Replace(dir, name, o, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		write("f")
	}
	if n := entries(t, journal); n != 1 {
		t.Errorf("%d entries after writes one after the other, want 1", n)
	}
	var all sync.WaitGroup
	for _, name := range []string{"f", "g", "h", "i"} { // writers of one file lock it
		all.Go(func() { write(name) })
	}
	all.Wait()
	if n := entries(t, journal); n < 1 || n > 4 {
		t.Errorf("%d entries after four writes at once", n)
	}
	temps.Close()
	if n := entries(t, journal); n != 0 {
		t.Errorf("%d entries after Close", n)
	}
	write("f") // as before, without the help
	if n := entries(t, journal); n != 0 {
		t.Errorf("%d entries after a write behind Close", n)
	}
	if list, _ := os.ReadDir(path); len(list) != 4 {
		t.Errorf("the directory holds %v", list)
	}
}

// Somebody who has seen a name puts something there: nothing is followed or overwritten, and the next write
// takes another name.
func TestTakenNameIsGivenUp(t *testing.T) {
	path, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var temps Temps
	defer temps.Close()
	o := Options{JournalDir: journal, Temps: &temps}
	if _, err := Replace(dir, "f", o, []byte("1")); err != nil {
		t.Fatal(err)
	}
	var name string
	for _, list := range temps.free {
		name = list[0].name
	}
	symlink(t, victim, filepath.Join(path, name))
	if _, err := Replace(dir, "f", o, []byte("2")); err == nil {
		t.Error("a taken name was used")
	}
	if _, err := Replace(dir, "f", o, []byte("3")); err != nil {
		t.Error(err)
	}
	if raw, _ := os.ReadFile(victim); string(raw) != "mine" {
		t.Errorf("the victim holds %q", raw)
	}
	if raw, _ := os.ReadFile(filepath.Join(path, "f")); string(raw) != "3" {
		t.Errorf("the file holds %q", raw)
	}
}

// What a process that dies leaves of its kept entries is nothing but entries, and Recover removes those.
func TestRecoverKeptEntries(t *testing.T) {
	path, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	temps := &Temps{}
	if _, err := Replace(dir, "f", Options{JournalDir: journal, Temps: temps}, []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, list := range temps.free {
		list[0].intent.abandon() // as the kernel does at the end of a process
	}
	report, err := Recover(context.Background(), journal)
	if err != nil || len(report.Removed) != 0 || entries(t, journal) != 0 {
		t.Errorf("%+v, %v, %d entries", report, err, entries(t, journal))
	}
}
