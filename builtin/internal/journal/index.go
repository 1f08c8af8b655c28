package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/guard/statedir"
)

// maxLine bounds a line of the index, in bytes: 200,000 changed files fit, or an undo of 5,000,000 changes.
const maxLine = 64 << 20

var (
	idNames   = regexp.MustCompile(`^[a-z2-7]{12}$`) // what shortID returns
	checksums = crc32.MakeTable(crc32.Castagnoli)    // computed by one instruction where there is one
)

var errLine = errors.New("damaged line")

// A record is the change of one file in the index. The files of one entry are consecutive records with the same ID.
type record struct {
	Change
	owner string      // the process that ends it
	at    [2]location // where Before and After are kept
}

// An entryLine is a line of the index: a checksum, and JSON with the changes of one call, or, without files, with
// their end.
type entryLine struct {
	ID        string     `json:"id"`
	State     State      `json:"state,omitempty"` // missing: pending if its owner has not ended it, else done
	Time      time.Time  `json:"time,omitzero"`
	Owner     string     `json:"owner,omitempty"`
	Principal string     `json:"principal,omitempty"`
	Scope     string     `json:"scope,omitempty"`
	Tool      string     `json:"tool,omitempty"`
	Files     []fileLine `json:"files,omitempty"`
	Only      []int      `json:"only,omitempty"` // the files that State is of, by their numbers; missing: all
	UndoOf    []string   `json:"undo_of,omitempty"`
	Call      *Call      `json:"call,omitempty"`
}

// A fileLine is the change of one file in a line. Names of links stand in it as texts, see [statedir.NameText].
type fileLine struct {
	Change
	RawPath  []byte   `json:"raw_path,omitempty"` // a path that is not UTF-8, which a JSON string cannot hold
	BeforeAt location `json:"before_at,omitzero"`
	AfterAt  location `json:"after_at,omitzero"`
}

// encode returns the line of an entry, whose records are given.
func encode(files []record) ([]byte, error) {
	r := files[0]
	if i := slices.IndexFunc(files, func(r record) bool { return r.State == Pending }); i >= 0 {
		r = files[i] // a pending state is not written: the owner of the entry tells
	}
	l := entryLine{ID: r.ID, State: r.State, Time: r.Time, Owner: r.owner, Principal: r.Principal, Scope: r.Scope,
		Tool: r.Tool, UndoOf: r.UndoOf}
	if l.State == Pending {
		l.State = ""
	}
	if !r.Call.isZero() {
		l.Call = &r.Call
	}
	for _, r := range files {
		f := fileLine{Change: r.Change, BeforeAt: r.at[0], AfterAt: r.at[1]}
		if f.Links = linkTexts(r.Links); r.State == Pending || r.State == l.State {
			f.State = ""
		}
		if !utf8.ValidString(f.Path) {
			f.Path, f.RawPath = "", []byte(f.Path)
		}
		l.Files = append(l.Files, f)
	}
	return l.encode()
}

// linkTexts returns texts for names of links, and [fileLine.readLinks] makes them names again.
func linkTexts(names []string) (texts []string) {
	for _, name := range names {
		texts = append(texts, statedir.NameText(name))
	}
	return texts
}

func (f *fileLine) readLinks() error {
	for i, text := range f.Links {
		name, err := statedir.TextName(text)
		if err != nil {
			return err
		}
		f.Links[i] = name
	}
	return nil
}

func (l entryLine) encode() ([]byte, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	if line := withChecksum(body); len(line) <= maxLine {
		return line, nil
	}
	return nil, fmt.Errorf("the record has %d bytes, more than %d", len(body), maxLine)
}

func withChecksum(body []byte) []byte {
	line := hex.AppendEncode(nil, binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, checksums)))
	line = append(append(line, ' '), body...)
	return append(line, '\n')
}

// decodeLine is the reverse of encode, without the line end.
func decodeLine(raw []byte) (l entryLine, err error) {
	sum, body, ok := bytes.Cut(raw, []byte(" "))
	if !ok || len(raw) > maxLine || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(body, checksums)) {
		return l, errLine
	}
	if err := json.Unmarshal(body, &l); err != nil || !l.valid() {
		return l, errLine
	}
	return l, nil
}

// valid reports whether a line may be used: the names of its packs become names of files.
func (l entryLine) valid() bool {
	known := func(s State) bool { return s == "" || s == Done || s == Failed || s == Unknown }
	if !known(l.State) {
		return false
	}
	for i := range l.Files {
		f := &l.Files[i]
		if len(f.RawPath) > 0 {
			f.Path = string(f.RawPath)
		}
		if f.Path == "" || !known(f.State) || !f.Before.valid() || !f.After.valid() || !f.BeforeAt.valid() ||
			!f.AfterAt.valid() || f.readLinks() != nil {
			return false
		}
	}
	return idNames.MatchString(l.ID) && (len(l.Files) == 0 || l.Principal != "")
}

// records returns the records of the line of an entry.
func (l entryLine) records() (all []record) {
	var call Call
	if l.Call != nil {
		call = *l.Call
	}
	for _, f := range l.Files {
		c := f.Change
		c.ID, c.Time, c.Principal, c.Scope, c.Tool = l.ID, l.Time, l.Principal, l.Scope, l.Tool
		c.UndoOf, c.Call = l.UndoOf, call
		c.State = cmp.Or(f.State, l.State)
		c.Created, c.Deleted = c.before().IsAbsent(), c.after().IsAbsent()
		all = append(all, record{Change: c, owner: l.Owner, at: [2]location{f.BeforeAt, f.AfterAt}})
	}
	return all
}

// An index is the decoded content of an index file.
type index struct {
	records []record // in the order in which they began
	ends    int      // lines that only end an entry
	damaged [][]byte // lines that could not be read
	found   int      // changes that the copy alone has
	lost    bool     // there may be changes that neither has
}

// isDamaged reports whether the index is not as it was written, if it was read under the lock: the index is written
// before its copy.
func (x index) isDamaged() bool { return len(x.damaged) > 0 || x.lost || x.found > 0 }

// odd returns the parts of a damaged index to set aside, so that the damage is known later.
func (x index) odd() [][]byte {
	if x.isDamaged() && len(x.damaged) == 0 {
		return [][]byte{fmt.Appendf(nil, "The index was missing or cut short: %d changes were found in its copy.",
			x.found)}
	}
	return x.damaged
}

// parseIndex reads all complete lines of several parts. The first part has precedence.
func parseIndex(parts ...[]byte) index {
	var x index
	at := make(map[string][2]int) // the records of an entry: from, to
	for _, raw := range parts {
		for l := range bytes.Lines(raw) {
			if l = bytes.TrimSuffix(l, []byte("\n")); len(l) > 0 {
				x.add(at, l)
			}
		}
	}
	return x
}

func (x *index) add(at map[string][2]int, l []byte) {
	parsed, err := decodeLine(l)
	if err != nil {
		x.damaged = append(x.damaged, l)
		return
	}
	entry, begun := at[parsed.ID]
	switch {
	case len(parsed.Files) > 0 && !begun:
		from := len(x.records)
		x.records = append(x.records, parsed.records()...)
		at[parsed.ID] = [2]int{from, len(x.records)}
	case len(parsed.Files) == 0:
		x.ends++
		for i := entry[0]; i < entry[1]; i++ {
			if len(parsed.Only) == 0 || slices.Contains(parsed.Only, i-entry[0]) {
				x.records[i].State = parsed.State
			}
		}
	}
}
