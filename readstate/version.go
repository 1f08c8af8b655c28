package readstate

import (
	"crypto/sha256"
	"io/fs"
	"time"
)

// A version identifies the content of a file at one moment.
type version struct {
	Size    int64 // bytes
	ModTime time.Time
	// when anything of the file changed, which cannot be set back; zero if the platform does not report it
	ChangeTime time.Time
	Dev, Inode uint64   // zero if the platform does not report them
	Hash       [32]byte // SHA-256 of the whole content, when Hashed
	Hashed     bool
	// Charset is the encoding of the text, as far as it was determined when the file was read or written; "" if the bytes
	// decide.
	Charset string
}

// VersionOf returns the version that a stat describes, without the hash.
func VersionOf(info fs.FileInfo) version {
	v := version{Size: info.Size(), ModTime: info.ModTime()}
	v.Dev, v.Inode, v.ChangeTime = identify(info)
	return v
}

// HashOf returns the hash that versions and parts carry: SHA-256 of the bytes, which may come in pieces.
func HashOf(content ...[]byte) (sum [32]byte) {
	hash := sha256.New()
	for _, piece := range content {
		hash.Write(piece)
	}
	hash.Sum(sum[:0])
	return sum
}

// sameStat reports whether the stats of v and w are equal.
func (v version) sameStat(w version) bool {
	return v.Size == w.Size && v.ModTime.Equal(w.ModTime) && v.Dev == w.Dev && v.Inode == w.Inode
}

// like returns v with the charset of old, if both are the same state of the file and v has none.
func (v version) like(old version) version {
	if v.Charset == "" && v.sameStat(old) {
		v.Charset = old.Charset
	}
	return v
}

// same reports whether v and w are one version: by hash if both have one, else by their stats.
func (v version) same(w version) bool {
	if v.Hashed && w.Hashed {
		return v.Hash == w.Hash
	}
	return v.sameStat(w)
}

// untouched reports whether the file cannot have changed between v and w: the change times are equal too, if both
// have one.
func (v version) untouched(w version) bool {
	known := !v.ChangeTime.IsZero() && !w.ChangeTime.IsZero()
	return v.sameStat(w) && (!known || v.ChangeTime.Equal(w.ChangeTime))
}

// withStat returns v with the hints of w.
func (v version) withStat(w version) version {
	v.Size, v.ModTime, v.ChangeTime, v.Dev, v.Inode = w.Size, w.ModTime, w.ChangeTime, w.Dev, w.Inode
	return v
}

// A Part is a page of a file that was shown.
type Part struct {
	FirstLine  int      // number of its first line, from 1
	Lines      int      // how many lines it holds
	Start, End int64    // its bytes in the file: from Start up to, not including, End
	Hash       [32]byte // HashOf those bytes
}

// inPlace reports whether the bytes of p are at the same place in content.
func (p Part) inPlace(content []byte) bool {
	return p.End <= int64(len(content)) && HashOf(content[p.Start:p.End]) == p.Hash
}

// A state is how a file relates to what a scope has seen of it.
type state int

const (
	Unread  state = iota // never read in this scope
	stale                // read, and changed since then
	Current              // read, and unchanged where it was shown
)

// String returns the name of the state, for logs.
func (s state) String() string {
	switch s {
	case Current:
		return "current"
	case stale:
		return "drifted"
	}
	return "unread"
}

// A Status is the result of Check. Its zero value is that of a file never read.
type Status struct {
	State state
	// Whole reports that all of the file was shown, by one read or by pages without a gap.
	Whole bool
	// Elsewhere reports that the file may have changed outside the pages that were shown, since the last of them was
	// shown.
	Elsewhere bool
	// Excerpt reports that no page was shown, only excerpts: see [Scope.MarkExcerptRead].
	Excerpt bool
	// Hash is [HashOf] the current content, if Hashed: the file was seen whole by one read and has not changed.
	Hash   [32]byte
	Hashed bool
	// Charset is that of the version that was seen.
	Charset string
	// Old is the whole content as last seen; nil if it was never seen whole or is no longer kept. It must not be modified.
	Old []byte
	// Parts are the pages that are still in place, in the order they were shown, if the file was not read whole.
	Parts []Part
	// Changed are the pages that are no longer in place.
	Changed []changedPart
}

// A changedPart is a page that was shown and is no longer in place.
type changedPart struct {
	Part
	Old []byte // the bytes as shown; nil if no longer kept. They must not be modified.
}

// Covers reports whether all lines from firstLine to lastLine, counted from 1, were shown and are unchanged. For
// pages it relies on the line numbers given to MarkPartRead: a change before a page that did not move its bytes may
// have renumbered its lines.
func (st Status) Covers(firstLine, lastLine int) bool {
	if firstLine < 1 || lastLine < firstLine {
		return false
	}
	if st.State == Current && st.Whole {
		return true
	}
	next := firstLine
	for advanced := true; advanced; {
		advanced = false
		for _, p := range st.Parts {
			if after := p.FirstLine + p.Lines; p.FirstLine <= next && next < after {
				next, advanced = after, true
			}
		}
		if next > lastLine {
			return true
		}
	}
	return false
}

// cover reports whether parts cover the first size bytes.
func cover(parts []Part, size int64) bool {
	var next int64
	for advanced := true; advanced && next < size; {
		advanced = false
		for _, p := range parts {
			if p.Start <= next && next < p.End {
				next, advanced = p.End, true
			}
		}
	}
	return next >= size
}
