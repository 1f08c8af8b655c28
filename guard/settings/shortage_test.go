package settings

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A server that has too many files open takes nothing out of force, makes no new
// snapshot, says so once, and sees what has changed as soon as it can.
func TestShortage(t *testing.T) {
	full := &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}
	var log bytes.Buffer
	p := newPlace(t)
	p.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	p.write(dropInA, rules("", "managed"))
	p.write(userFile, rules("a", "user"))
	p.write(projectFile, rules("b", "project"))
	if err := trustNow(p.cfg, p.path("work")); err != nil {
		t.Fatal(err)
	}
	r := p.start()
	if got := texts(r.last.Deny) + " " + texts(r.last.Allow); got != "managed,project,user b,a" {
		t.Fatalf("at the start: %s, broken %v", got, r.last.Broken)
	}
	trusted := r.trust
	r.dropIns = func(string) ([]string, error) { return nil, full }
	r.regular = func(string) ([]byte, os.FileInfo, error) { return nil, nil, full }
	p.write(dropInA, rules("", "other"))
	p.write(dropInB, rules("", "more"))
	p.write(userFile, rules("", "new"))
	p.write(localFile, rules("", "local"))
	for range 3 {
		if s := r.read(); s != nil {
			t.Fatalf("a snapshot was made of a shortage: deny %s, broken %v, warnings %v", texts(s.Deny),
				s.Broken, s.Warnings)
		}
	}
	if n := strings.Count(log.String(), "last stays in force"); n != 1 || r.trust != trusted {
		t.Errorf("said %d times, trust kept %v:\n%s", n, r.trust == trusted, &log)
	}
	r.dropIns, r.regular = dropIns, readRegular
	s := r.next()
	if got := texts(s.Deny); got != "more,other,local,project,new" || len(s.Broken) != 0 {
		t.Errorf("afterwards: deny %s, broken %v, warnings %v", got, s.Broken, s.Warnings)
	}
	if again := r.read(); again != nil {
		t.Error("a second snapshot of the same content")
	}
}

// What cannot be read at the start refuses every call until it can be, though the
// file has not changed.
func TestShortageAtTheStart(t *testing.T) {
	p := newPlace(t)
	p.write(dropInA, rules("", "managed"))
	p.write(userFile, rules("a", "user"))
	for _, failure := range []error{syscall.EMFILE, syscall.EIO, fs.ErrPermission} {
		r := &run{reloader: newReloader(p.cfg)}
		r.dropIns = func(string) ([]string, error) { return nil, failure }
		r.regular = func(string) ([]byte, os.FileInfo, error) { return nil, nil, failure }
		if r.last = r.read(); len(r.last.Broken) == 0 {
			t.Errorf("%v: nothing is broken", failure)
		}
		if s := r.next(); len(s.Broken) == 0 || !errors.Is(errors.Join(s.Broken...), failure) {
			t.Errorf("%v: still failing: %v", failure, s.Broken)
		}
		r.dropIns, r.regular = dropIns, readRegular
		if s := r.next(); texts(s.Deny) != "managed,user" || len(s.Broken) != 0 {
			t.Errorf("%v: afterwards: deny %s, broken %v", failure, texts(s.Deny), s.Broken)
		}
	}
}
