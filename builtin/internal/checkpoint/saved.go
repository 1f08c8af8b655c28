package checkpoint

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// The base is also kept on disk, so that the next process can tell what the commands of a killed one changed: a log of
// the entries as they were read and as they changed. A command remembers how long the log was when it began.

const (
	baseName     = "base"
	contentsName = "contents"
	// logFactor is how many times the log may be as long as the base before it is written anew; logRoom is the length in
	// bytes below which it never is.
	logFactor = 4
	logRoom   = 4 << 20
)

// savedKind is what a saved record says.
type savedKind uint8

const (
	savedPut     savedKind = iota // the path holds an entry
	savedGone                     // the path holds none
	savedListed                   // all entries of the directory are known
	savedPacks                    // the pack files, by their indexes
	savedIgnored                  // a file in an ignored directory
)

// saved is a record of the log.
type saved struct {
	Kind    savedKind
	Path    string // relative to the root
	State   State
	Stamp   walk.Stamp
	Looked  int64
	Why     string
	Ignored bool
	Base    bool  // read for the base, not a change
	Pack    int   // number of the pack that has the content, from 1
	Copied  bool  // the content is in the file of copies
	Off     int64 // of the content
	Size    int64 // of the copy
	Packs   []string
}

// baseLog writes the log. A nil log writes nothing.
type baseLog struct {
	file   *os.File
	out    *bufio.Writer
	enc    *gob.Encoder
	length int64
	whole  int64 // length of the log when it held the base alone
	packs  map[*pack]int
	err    error // the first error: nothing is written after it
}

// newBaseLog begins the log of a tracker.
func newBaseLog(name string, ps *packs) (*baseLog, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the history of commands has no place for the base: %w", err)
	}
	l := &baseLog{file: f, out: bufio.NewWriterSize(f, 64<<10), packs: map[*pack]int{}}
	l.enc = gob.NewEncoder(l)
	names := make([]string, 0, len(ps.all))
	for i, p := range ps.all {
		l.packs[p] = i + 1
		names = append(names, p.name)
	}
	l.write(saved{Kind: savedPacks, Packs: names})
	return l, nil
}

// Write implements io.Writer for the encoder.
func (l *baseLog) Write(b []byte) (int, error) {
	n, err := l.out.Write(b)
	l.length += int64(n)
	return n, err
}

func (l *baseLog) write(s saved) {
	if l != nil && l.err == nil {
		l.err = l.enc.Encode(s)
	}
}

func (l *baseLog) put(path string, e *entry, base bool) {
	if l == nil {
		return
	}
	s := saved{Path: path, State: e.state, Stamp: e.stamp, Looked: e.looked, Why: e.why, Ignored: e.ignored ||
		e.sub != nil && e.sub.ignored, Base: base}
	s.Pack, s.Off = l.packs[e.source.pack], e.source.off
	if c := e.source.copy; c != nil {
		s.Copied, s.Off, s.Size = true, c.off, c.size
	}
	l.write(s)
}

func (l *baseLog) gone(path string) { l.write(saved{Kind: savedGone, Path: path}) }

func (l *baseLog) listed(d *dir, base bool) {
	l.write(saved{Kind: savedListed, Path: strings.TrimSuffix(d.rel, "/"), Base: base, Size: int64(d.repo.files),
		Stamp: walk.Stamp{Device: d.repo.id.Device, Inode: d.repo.id.Inode}})
}

// flush writes out the log, and returns its length, 0 if it is not on disk.
func (l *baseLog) flush() int64 {
	if l == nil {
		return 0
	}
	if l.err == nil && l.out.Buffered() > 0 {
		l.err = l.out.Flush()
	}
	if l.err != nil {
		return 0
	}
	return l.length
}

// flushLog is flush for the log of the tracker.
func (t *Tracker) flushLog() int64 {
	t.savedLength.Store(t.saved.flush())
	return t.savedLength.Load()
}

func (l *baseLog) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// shortenLog writes the log anew if it is much longer than the base. The caller holds mu. No command may run: it
// remembers a place in the log.
func (t *Tracker) shortenLog() {
	l := t.saved
	if l == nil || l.err != nil || l.length < max(logRoom, logFactor*l.whole) || t.events.marked() ||
		len(t.pending) > 0 {
		return
	}
	name := filepath.Join(t.cfg.Dir, baseName)
	next, err := newBaseLog(name+".new", t.files.contents.packs)
	if err != nil {
		return
	}
	next.tree(t.top)
	for id, at := range t.moves.names {
		next.write(saved{Kind: savedIgnored, Path: at.path, Base: true,
			Stamp: walk.Stamp{Device: id.Device, Inode: id.Inode, Change: at.change}})
	}
	next.whole = next.flush()
	if next.err == nil {
		next.err = os.Rename(name+".new", name)
	}
	if next.err != nil {
		_ = next.close()
		_ = os.Remove(name + ".new")
		return
	}
	_ = l.close()
	t.saved = next
}

// tree writes a directory and what is below it.
func (l *baseLog) tree(d *dir) {
	for name, e := range d.entries {
		l.put(d.rel+name, e, true)
		if e.sub != nil {
			l.tree(e.sub)
		}
	}
	if d.entries != nil {
		l.listed(d, true)
	}
}

// A Begun is where a command began in the base on disk.
type Begun struct {
	Length int64  `json:"length"`           // of the log
	Unread string `json:"unread,omitempty"` // of [Mark.Unread]
	Head   string `json:"head,omitempty"`   // of git
}

// Saved returns what the next process needs to settle the command, if this one is killed. ok is false if the base is
// not on disk.
func (m *Mark) Saved() (b Begun, ok bool) { return Begun{m.saved, m.unread, m.head}, m.saved > 0 }

// Settle reports the changes of a command whose process was killed: cfg.Dir is the directory of its Tracker. The
// caller closes the report.
func Settle(cfg Config, b Begun) (*Report, error) {
	cfg = cfg.withDefaults()
	root, err := walk.OpenRoot(cfg.Root)
	if err != nil {
		return nil, err
	}
	store, err := openContents(cfg)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	t := newTracker(cfg, root, store)
	close(t.ready)
	t.stop = func() {}
	end := func() { _ = errors.Join(root.Close(), store.file.Close()); store.packs.close() }
	if err := t.replay(b); err != nil {
		end()
		return nil, err
	}
	m := &Mark{tracker: t, unread: b.Unread, head: b.Head}
	t.events.begin(m)
	r := m.End()
	r.end = end
	return r, nil
}

// replay makes the base that a command began with. What was read for the base later counts too: it is all that is
// known there.
func (t *Tracker) replay(b Begun) error {
	f, err := os.Open(filepath.Join(t.cfg.Dir, baseName))
	if err != nil {
		return err
	}
	defer f.Close()
	in := &countingReader{Reader: bufio.NewReaderSize(f, 64<<10)}
	dec := gob.NewDecoder(in)
	for {
		var s saved
		if err := dec.Decode(&s); err != nil {
			if in.n < b.Length {
				return fmt.Errorf("the base on disk is cut off: %w", err)
			}
			return nil // the end, or what the process wrote when it was killed
		}
		if late := in.n > b.Length; !late || s.Base {
			t.apply(s, late)
		}
	}
}

// apply applies a record of the log.
func (t *Tracker) apply(s saved, late bool) {
	if s.Kind == savedPacks {
		t.files.contents.packs.reopen(s.Packs)
		return
	}
	if s.Kind == savedIgnored {
		t.moves.names[walk.ID{Device: s.Stamp.Device, Inode: s.Stamp.Inode}] = place{path: s.Path,
			change: s.Stamp.Change}
		return
	}
	d, name := t.place(s.Path)
	if d == nil {
		return
	}
	switch s.Kind {
	case savedListed:
		if sub := d; name != "" {
			if d = nil; sub.entries[name] != nil {
				d = sub.entries[name].sub
			}
		}
		if d != nil {
			d.first, d.entries = scanAfter, orEmpty(d.entries)
			d.repo = repo{walk.ID{Device: s.Stamp.Device, Inode: s.Stamp.Inode}, int(s.Size)}
			t.reposAt[d.repo.id] = d.rel + ".git"
		}
	case savedGone:
		if e := d.entries[name]; e != nil {
			t.links.gone(s.Path, e, false)
		}
		delete(d.entries, name)
	case savedPut:
		e := &entry{state: s.State, stamp: s.Stamp, looked: s.Looked, why: s.Why, ignored: s.Ignored}
		if late {
			if d.entries[name] != nil {
				return
			}
			e.scanned = t.seq.Add(1)
		} else {
			e.source = t.files.contents.saved(s)
		}
		if s.State.Kind == Dir {
			e.ignored, e.sub = false, &dir{rel: s.Path + "/", up: d, chain: d.chain, ignored: s.Ignored}
			if was := d.entries[name]; was != nil && was.sub != nil && was.stamp.Inode == s.Stamp.Inode {
				e.sub = was.sub
			}
		}
		d.entries = orEmpty(d.entries)
		t.links.put(s.Path, d.entries[name], e, false)
		d.entries[name] = e
	}
}

func orEmpty(m map[string]*entry) map[string]*entry {
	if m == nil {
		return map[string]*entry{}
	}
	return m
}

// place returns the directory and the name of a path; the root has no name. The directory is nil if the log has none.
func (t *Tracker) place(path string) (*dir, string) {
	d := t.top
	for {
		name, rest, below := strings.Cut(path, "/")
		if !below {
			return d, name
		}
		e := d.entries[name]
		if e == nil || e.sub == nil {
			return nil, ""
		}
		d, path = e.sub, rest
	}
}

// countingReader counts what a decoder has read.
type countingReader struct {
	*bufio.Reader
	n int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n += int64(n)
	return n, err
}

func (r *countingReader) ReadByte() (byte, error) {
	b, err := r.Reader.ReadByte()
	if err == nil {
		r.n++
	}
	return b, err
}

var _ io.ByteReader = (*countingReader)(nil) // else the decoder reads ahead
