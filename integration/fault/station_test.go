//go:build slow && linux

package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"golang.org/x/sys/unix"
)

// A station is one system call by which a change goes to the disk, counted from the call's begin: those of the tests below meet each.

// mostStations bounds them; no change has nearly as many.
const mostStations = 400

// ailments are the errors that a disk, a file system and a kernel give.
var ailments = []syscall.Errno{unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.ENOMEM, unix.EMFILE,
	unix.ENFILE, unix.EPERM}

// TestFaultStations lets every system call of every change fail, one after the other, with errors of every kind, once and for good. A
// change that was refused left the file as it was and nothing next to it; one that was acknowledged is there, and can be undone unless
// its answer said otherwise.
func TestFaultStations(t *testing.T) {
	for _, v := range victims() {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sticky=%v", v.name, sticky), func(t *testing.T) {
				t.Parallel()
				all := ailments
				if !samples.Whole() {
					all = map[bool][]syscall.Errno{false: {unix.EDQUOT}, true: {unix.EIO}}[sticky]
				}
				g := newGround(t)
				own := *v
				p := &ailing{victim: &own, sticky: sticky}
				g.lay([]*victim{&own})
				for _, errno := range all {
					p.ail(t, g, errno)
				}
				done := 0
				for _, c := range g.history("--path", g.Path(v.name)) {
					if c.State == "done" {
						done++
					}
				}
				// Where a disk was full, the history gave room: its older entries went.
				room := slices.ContainsFunc(all, func(e syscall.Errno) bool { return e == unix.ENOSPC || e == unix.EDQUOT })
				if done > p.undoable || done < p.undoable && (!room || done == 0) {
					t.Errorf("%d changes are in the history; %d were acknowledged as such that can be undone",
						done, p.undoable)
				}
				g.Tidy()
				t.Logf("%d errors met, %d changes refused, %d put back by the next start", p.met, p.refused, p.restored)
			})
		}
	}
}

// An ailing is a victim that meets errors.
type ailing struct {
	*victim
	sticky                           bool // once met, the error stays
	met, refused, restored, undoable int
}

// ail lets one error meet every station of a change.
func (p *ailing) ail(t *testing.T, g *ground, errno syscall.Errno) {
	s, in := g.injected()
	s.MustCall("Read", host.Args{"file_path": p.name, "limit": 1})
	for station := 1; station < mostStations && !t.Failed(); station++ {
		in.arm(station, p.sticky, changing, failing(errno), g.WS, g.State)
		text, failed := s.Try(p.tool, p.change(g.Path(p.name), p.acked+1))
		hit := in.disarm() > 0
		if strings.Contains(text, "could not be put back") {
			// The next start can; or it finds the new content whole, and keeps that.
			s.End()
			g.history("--path", g.Path(p.name))
			before := p.acked
			p.tried = before + 1
			if p.check(t, g.Path(p.name)); p.acked > before {
				p.undoable++
			} else {
				p.restored++
			}
			s, in = g.injected()
			s.MustCall("Read", host.Args{"file_path": p.name, "limit": 1})
			continue
		}
		n, err := p.number(host.Get(t, g.Path(p.name)))
		switch {
		case err != nil:
			t.Errorf("%v at station %d: %v\n%s", errno, station, err, text)
		case failed && n != p.acked, !failed && n != p.acked+1:
			t.Errorf("%v at station %d: failed %v, and it holds number %d after %d: %.300s", errno, station, failed, n,
				p.acked, text)
		}
		if left := host.Leftovers(t, g.WS); len(left) > 0 {
			t.Errorf("%v at station %d left %q", errno, station, left)
		}
		if failed {
			p.refused++
		} else if !strings.Contains(text, "cannot be undone") {
			p.undoable++
		}
		p.acked, p.tried = n, n
		if !hit {
			break
		}
		p.met++
	}
	s.End()
}

// ends are what can happen to a host at a station.
var ends = []struct {
	name string
	end  func(s *session) error
}{
	{"killed", func(s *session) error { return s.Cmd.Process.Kill() }},
	{"terminated", func(s *session) error { return s.Cmd.Process.Signal(syscall.SIGTERM) }},
	{"disconnected", func(s *session) error { return s.CloseInput() }},
}

// TestFaultEndStations ends the host, or its client, at every station of every change. The file is the old or the new one, and the next
// start makes whole what was written in place.
func TestFaultEndStations(t *testing.T) {
	for _, e := range ends {
		for i, v := range victims() {
			t.Run(e.name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				g := newGround(t)
				own := *v
				g.lay([]*victim{&own})
				rounds := 0
				for station := 1 + 2*i; station < mostStations && !t.Failed(); station += samples.Step(11) {
					if !own.endAt(t, g, station, e.end) {
						break
					}
					rounds++
				}
				t.Logf("ended at %d stations", rounds)
			})
		}
	}
}

// endAt ends a host at a station of a change. False: the change has fewer.
func (v *victim) endAt(t *testing.T, g *ground, station int, end func(*session) error) bool {
	s, in := g.injected()
	s.MustCall("Read", host.Args{"file_path": v.name, "limit": 1})
	kinds := append([]uintptr{unix.SYS_UNLINKAT}, changing...)
	in.arm(station, false, kinds, func() syscall.Errno {
		if err := end(s); err != nil {
			t.Error(err)
		}
		return 0
	}, g.WS, g.State)
	v.tried = v.acked + 1
	r, err := s.Call(s.Ctx, v.tool, v.change(g.Path(v.name), v.tried).String())
	if err == nil && !r.IsError {
		v.acked = v.tried
	}
	hit := in.disarm() > 0
	_ = s.Close() // it tells of the signal
	if !v.inPlace {
		v.check(t, g.Path(v.name))
	}
	g.checkHistory(t, g.Path(v.name))
	g.mend(v)
	v.check(t, g.Path(v.name))
	g.Tidy()
	return hit
}

// TestFaultWatches searches while the kernel tells nothing of changes: no watch is left, none at all can be had, or so much happened
// that it gave up counting. What was changed is found all the same.
func TestFaultWatches(t *testing.T) {
	t.Run("limit reached", func(t *testing.T) {
		for _, after := range []int{1, 2, 5, 20} {
			g := newGround(t)
			for i := range 40 {
				g.Put(fmt.Sprintf("d%d/f.txt", i), "old\n")
			}
			s, in := g.injected()
			in.arm(after, true, watching, failing(unix.ENOSPC), g.WS)
			s.findsChanges(g, samples.Rounds(10))
			text := s.MustCall("Bash", host.Args{"command": "echo x > d39/f.txt; rm d38/f.txt; mkdir q; echo y > q/new"})
			if want := "d38/f.txt, d39/f.txt, q/new"; !strings.Contains(text, want) {
				t.Errorf("a command is recorded as %q, want %s", text, want)
			}
			t.Logf("after %d watches: %d refused", after-1, in.disarm())
			s.End()
		}
	})
	t.Run("overflow", func(t *testing.T) {
		g := newGround(t)
		g.Put("f0.txt", "old\n")
		s := g.start(host.StdioModern)
		s.findsChanges(g, 3)
		most := 16384
		if raw, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events"); err == nil {
			_, _ = fmt.Sscan(string(raw), &most)
		}
		for round := range samples.Rounds(2) {
			host.Must(t, s.Cmd.Process.Signal(syscall.SIGSTOP))
			for i := 0; i <= most; i++ { // a rename is two events
				host.Must(t, os.Rename(g.Path("f0.txt"), g.Path("g.txt")))
				host.Must(t, os.Rename(g.Path("g.txt"), g.Path("f0.txt")))
			}
			g.Put(fmt.Sprintf("late/%d.txt", round), fmt.Sprintf("late%d\n", round))
			host.Must(t, s.Cmd.Process.Signal(syscall.SIGCONT))
			if text := s.MustCall("Grep", host.Args{"pattern": fmt.Sprintf("late%d$", round)}); !strings.Contains(text,
				fmt.Sprintf("late/%d.txt", round)) {
				t.Errorf("after an overflow: %s", text)
			}
			s.findsChanges(g, 5)
		}
		s.End()
	})
}

// findsChanges changes files and asks after each change: an answer that does not show it is stale.
func (s *session) findsChanges(g *ground, rounds int) {
	s.T.Helper()
	for n := range rounds {
		word, name := fmt.Sprintf("word%d-%d", time.Now().UnixNano(), n), fmt.Sprintf("d%d/f.txt", n%40)
		g.Put(name, word+"\n")
		if text := s.MustCall("Grep", host.Args{"pattern": word}); !strings.Contains(text, name) {
			s.T.Errorf("change %d is not found: %s", n, text)
		}
		fresh := fmt.Sprintf("new%d/x%d.txt", n%7, n)
		g.Put(fresh, "x\n")
		if text := s.MustCall("Glob", host.Args{"pattern": "**/" + filepath.Base(fresh)}); !strings.Contains(text,
			fresh) {
			s.T.Errorf("new file %d is not found: %s", n, text)
		}
	}
}

// TestFaultClock lets time jump as far as the disk can tell of it: files, and all that the host keeps, come from 1970, from now, and
// from years ahead. Content decides, so that nothing is refused for its date, and a change under the old date is seen.
func TestFaultClock(t *testing.T) {
	g := newGround(t)
	g.Put("a.txt", "number 0\n")
	n := 0
	for _, jump := range []time.Time{time.Unix(0, 0), time.Now().AddDate(30, 0, 0), time.Unix(-86400*365, 0),
		time.Now().AddDate(-3, 0, 0), time.Now()} {
		s := g.start(host.StdioModern)
		s.work(&n)
		host.Must(t, os.Chtimes(g.Path("a.txt"), jump, jump))
		s.work(&n)
		host.Must(t, os.Chtimes(g.Path("a.txt"), jump, jump))
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		other := fmt.Sprintf("nummer %d\n", n) // as long, and as old
		host.Must(t, os.WriteFile(g.Path("a.txt"), []byte(other), 0o644))
		host.Must(t, os.Chtimes(g.Path("a.txt"), jump, jump))
		s.Refused("Edit", host.Args{"file_path": "a.txt", "old_string": "mm", "new_string": "m"}, "has changed")
		if text := s.MustCall("Grep", host.Args{"pattern": "nummer", "output_mode": "content"}); !strings.Contains(text,
			strings.TrimSpace(other)) {
			t.Errorf("a change under the same date is not found: %s", text)
		}
		g.Put("a.txt", fmt.Sprintf("number %d\n", n))
		s.End()
		eachEntry(t, g.State, func(path string) { host.Must(t, os.Chtimes(path, jump, jump)) })
		s = g.start(host.StdioModern)
		s.work(&n)
		s.End()
	}
	g.Tidy()
}

// eachEntry calls do for everything below a directory that is no link.
func eachEntry(t *testing.T, dir string, do func(path string)) {
	t.Helper()
	host.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSymlink == 0 {
			do(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
}
