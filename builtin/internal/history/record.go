package history

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxLine bounds a line of the index, in bytes. An undo of one file names the changes it undoes: 70,000 fit.
const maxLine = 1 << 20

var (
	idNames   = regexp.MustCompile(`^[a-z2-7]{12}$`) // what shortID returns
	checksums = crc32.MakeTable(crc32.Castagnoli)    // computed by one instruction where there is one
)

var errLine = errors.New("damaged line")

// A record is a change as the index has it.
type record struct {
	Change
	owner string      // who may end it
	at    [2]location // where Before and After are kept
}

// recordLine is a line of the index, in JSON after the checksum of that: the beginning of a change, or only its end.
type recordLine struct {
	ID    string `json:"id"`
	State State  `json:"state"`

	// The rest is missing in an end.
	Time      time.Time `json:"time,omitzero"`
	Owner     string    `json:"owner,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Scope     string    `json:"scope,omitempty"`
	Tool      string    `json:"tool,omitempty"`
	Path      string    `json:"path,omitempty"`
	RawPath   []byte    `json:"raw_path,omitempty"` // a path that is not UTF-8, which a JSON string cannot hold
	Before    Blob      `json:"before,omitzero"`
	After     Blob      `json:"after,omitzero"`
	BeforeAt  location  `json:"before_at,omitzero"`
	AfterAt   location  `json:"after_at,omitzero"`
	UndoOf    []string  `json:"undo_of,omitempty"`
}

// encode returns the line for the beginning of a change, or for all of it.
func (r record) encode() ([]byte, error) {
	l := recordLine{
		ID: r.ID, State: r.State, Time: r.Time, Owner: r.owner, Principal: r.Principal, Scope: r.Scope, Tool: r.Tool,
		Path: r.Path, Before: r.Before, After: r.After, BeforeAt: r.at[0], AfterAt: r.at[1], UndoOf: r.UndoOf,
	}
	if !utf8.ValidString(l.Path) {
		l.Path, l.RawPath = "", []byte(l.Path)
	}
	return l.encode()
}

func (l recordLine) encode() ([]byte, error) {
	body, err := l.appendTo(make([]byte, 0, usualLine))
	if err != nil {
		return nil, err
	}
	out := withChecksum(body)
	if len(out) > maxLine {
		return nil, fmt.Errorf("the record has %d bytes, more than %d", len(out), maxLine)
	}
	return out, nil
}

// usualLine is room for most lines, in bytes.
const usualLine = 1 << 10

// appendTo appends the line as encoding/json encodes it, which takes several times as long.
func (l recordLine) appendTo(b []byte) ([]byte, error) {
	b = appendString(append(b, `{"id":`...), l.ID)
	b = appendString(append(b, `,"state":`...), string(l.State))
	if !l.Time.IsZero() {
		b = append(l.Time.AppendFormat(append(b, `,"time":"`...), time.RFC3339Nano), '"')
	}
	for _, f := range [...]struct{ name, text string }{
		{"owner", l.Owner}, {"principal", l.Principal}, {"scope", l.Scope}, {"tool", l.Tool}, {"path", l.Path},
	} {
		if f.text != "" {
			b = appendString(append(append(append(b, `,"`...), f.name...), `":`...), f.text)
		}
	}
	if len(l.RawPath) > 0 {
		b = append(base64.StdEncoding.AppendEncode(append(b, `,"raw_path":"`...), l.RawPath), '"')
	}
	b = appendBlob(b, "before", l.Before)
	b = appendBlob(b, "after", l.After)
	b = appendPlace(b, "before_at", l.BeforeAt)
	b = appendPlace(b, "after_at", l.AfterAt)
	if len(l.UndoOf) > 0 {
		undo, err := json.Marshal(l.UndoOf)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"undo_of":`...), undo...)
	}
	return append(b, '}'), nil
}

// appendString appends a text as a string of JSON.
func appendString(b []byte, text string) []byte {
	for _, c := range []byte(text) {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string can be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

func appendBlob(b []byte, name string, of Blob) []byte {
	if of.IsZero() {
		return b
	}
	b = appendString(append(append(append(b, `,"`...), name...), `":{"sum":`...), of.Sum)
	return append(strconv.AppendInt(append(b, `,"size":`...), of.Size, 10), '}')
}

func appendPlace(b []byte, name string, of location) []byte {
	if of.isZero() {
		return b
	}
	b = appendString(append(append(append(b, `,"`...), name...), `":{"pack":`...), of.Pack)
	return append(strconv.AppendInt(append(b, `,"offset":`...), of.Offset, 10), '}')
}

func withChecksum(body []byte) []byte {
	line := make([]byte, 0, 2*crc32.Size+len(" \n")+len(body))
	line = hex.AppendEncode(line, binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, checksums)))
	line = append(append(line, ' '), body...)
	return append(line, '\n')
}

// decodeLine is the reverse of encode, without the line end.
func decodeLine(raw []byte) (recordLine, error) {
	var l recordLine
	sum, body, ok := bytes.Cut(raw, []byte(" "))
	if !ok || len(raw) > maxLine || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(body, checksums)) {
		return l, errLine
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return l, errLine
	}
	if len(l.RawPath) > 0 {
		l.Path = string(l.RawPath)
	}
	if !l.valid() {
		return l, errLine
	}
	return l, nil
}

// valid reports whether a line may be used: packs are names of files.
func (l recordLine) valid() bool {
	switch l.State {
	case Pending, Done, Failed, Unknown:
	default:
		return false
	}
	return idNames.MatchString(l.ID) && l.Before.valid() && l.After.valid() && l.BeforeAt.valid() && l.AfterAt.valid() && (l.isEnd() || l.Principal != "")
}

func (l recordLine) isEnd() bool { return l.Path == "" }

func (l recordLine) record() record {
	return record{owner: l.Owner, at: [2]location{l.BeforeAt, l.AfterAt}, Change: Change{
		ID: l.ID, State: l.State, Time: l.Time, Principal: l.Principal, Scope: l.Scope, Tool: l.Tool, Path: l.Path,
		Before: l.Before, After: l.After, Created: l.Before.IsZero(), Deleted: l.After.IsZero(), UndoOf: l.UndoOf,
	}}
}

// An index is what the lines of an index say.
type index struct {
	records []record // in the order in which they began
	ends    int      // lines that only end a change
	damaged [][]byte // lines that could not be read
	found   int      // changes that the copy alone has
	lost    bool     // there may be changes that neither has
}

// isDamaged reports whether the index is not as it was written, if it was read under the lock: the index is written before its copy.
func (x index) isDamaged() bool { return len(x.damaged) > 0 || x.lost || x.found > 0 }

// odd returns what is set aside of a damaged index, so that it is known later that it was.
func (x index) odd() [][]byte {
	if x.isDamaged() && len(x.damaged) == 0 {
		return [][]byte{fmt.Appendf(nil, "The index was missing or cut short: %d changes were found in its copy.", x.found)}
	}
	return x.damaged
}

// parseIndex reads all lines that are whole, of several parts of which the first counts. Of two ends of a change the later counts: a process that was taken for dead knows better.
func parseIndex(parts ...[]byte) index {
	var x index
	at := make(map[string]int)
	for _, raw := range parts {
		for l := range bytes.Lines(raw) {
			if l = bytes.TrimSuffix(l, []byte("\n")); len(l) > 0 {
				x.add(at, l)
			}
		}
	}
	return x
}

// add adds a line. at has where the changes are by now.
func (x *index) add(at map[string]int, l []byte) {
	parsed, err := decodeLine(l)
	if err != nil {
		x.damaged = append(x.damaged, l)
		return
	}
	i, begun := at[parsed.ID]
	switch {
	case !parsed.isEnd() && !begun:
		at[parsed.ID] = len(x.records)
		x.records = append(x.records, parsed.record())
	case parsed.isEnd():
		x.ends++
		if begun {
			x.records[i].State = parsed.State
		}
	}
}
