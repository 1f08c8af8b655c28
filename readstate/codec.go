package readstate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// errCorrupt says that a file was not written by this version of the program, or is damaged.
var errCorrupt = errors.New("not a read state file, or damaged")

// header begins a file: format and version, then the SHA-256 of the rest.
const header = "toolhost readstate 1 "

type savedFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// two numbers, because times in JSON end with the year 9999, and those of files do not
	ModSec  int64       `json:"sec"`
	ModNsec int64       `json:"nsec"`
	Dev     uint64      `json:"dev,omitempty"`
	Inode   uint64      `json:"inode,omitempty"`
	Hash    []byte      `json:"hash,omitempty"`
	Charset string      `json:"charset,omitempty"`
	Whole   bool        `json:"whole,omitempty"`
	Parts   []savedPart `json:"parts,omitempty"`
	Seen    time.Time   `json:"seen"`
	Gone    bool        `json:"gone,omitempty"`

	ChangeSec  int64 `json:"csec,omitempty"` // the change time, if it is known
	ChangeNsec int64 `json:"cnsec,omitempty"`
	Elsewhere  bool  `json:"elsewhere,omitempty"`
	Excerpt    bool  `json:"excerpt,omitempty"`
}

type savedPart struct {
	FirstLine int    `json:"line"`
	Lines     int    `json:"lines"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	Hash      []byte `json:"hash"`
}

// encode returns the content of a scope's file. A path that is not UTF-8 cannot be represented in JSON and is left
// out: after a restart its file counts as not read.
func encode(files map[string]record) ([]byte, error) {
	saved := make([]savedFile, 0, len(files))
	for path, r := range files {
		if !utf8.ValidString(path) {
			continue
		}
		v := r.version
		f := savedFile{Path: path, Size: v.Size, Dev: v.Dev, Inode: v.Inode, Charset: v.Charset, Whole: r.whole,
			Seen: r.seen, Gone: r.gone, Elsewhere: r.elsewhere, Excerpt: r.excerpt}
		f.ModSec, f.ModNsec = v.ModTime.Unix(), int64(v.ModTime.Nanosecond())
		if !v.ChangeTime.IsZero() {
			f.ChangeSec, f.ChangeNsec = v.ChangeTime.Unix(), int64(v.ChangeTime.Nanosecond())
		}
		if v.Hashed {
			f.Hash = v.Hash[:]
		}
		for _, p := range r.parts {
			f.Parts = append(f.Parts, savedPart{p.FirstLine, p.Lines, p.Start, p.End, p.Hash[:]})
		}
		saved = append(saved, f)
	}
	body, err := json.Marshal(saved)
	if err != nil {
		return nil, fmt.Errorf("encode read state: %w", err)
	}
	sum := sha256.Sum256(body)
	return append(fmt.Appendf(nil, "%s%x\n", header, sum), body...), nil
}

// decode returns the records of a scope's file, or errCorrupt.
func decode(data []byte) (map[string]record, error) {
	first, body, _ := bytes.Cut(data, []byte("\n"))
	if sum := sha256.Sum256(body); string(first) != header+hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: checksum", errCorrupt)
	}
	var saved []savedFile
	if err := json.Unmarshal(body, &saved); err != nil {
		return nil, fmt.Errorf("%w: %v", errCorrupt, err)
	}
	files := make(map[string]record, len(saved))
	for _, f := range saved {
		r, ok := f.record()
		if !ok {
			return nil, fmt.Errorf("%w: %s", errCorrupt, f.Path)
		}
		files[f.Path] = r
	}
	return files, nil
}

// record returns the record that f encodes, and whether it is valid: Check relies on complete hashes and ranges.
func (f savedFile) record() (record, bool) {
	v := version{Size: f.Size, ModTime: time.Unix(f.ModSec, f.ModNsec), Dev: f.Dev, Inode: f.Inode, Charset: f.Charset}
	if f.ChangeSec != 0 || f.ChangeNsec != 0 {
		v.ChangeTime = time.Unix(f.ChangeSec, f.ChangeNsec)
	}
	v.Hashed = copy(v.Hash[:], f.Hash) == len(v.Hash)
	r := record{version: v, whole: f.Whole, seen: f.Seen, gone: f.Gone, elsewhere: f.Elsewhere, excerpt: f.Excerpt}
	if f.Whole && !v.Hashed {
		return record{}, false
	}
	for _, p := range f.Parts {
		part := Part{FirstLine: p.FirstLine, Lines: p.Lines, Start: p.Start, End: p.End}
		if copy(part.Hash[:], p.Hash) != len(part.Hash) || p.Start < 0 || p.End < p.Start {
			return record{}, false
		}
		r.parts = append(r.parts, part)
	}
	return r, r.gone || r.whole || len(r.parts) > 0
}
