package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

const (
	// maxFound is the maximum number of records in a search result.
	maxFound = 200
	// maxSearched is how far back from its end the log is searched, in bytes.
	maxSearched = 64 << 20
)

// A query says which records to find. An empty field matches every record.
type query struct {
	Text, Tool string
	Verdict    string        // a verdict, or verdictApproved
	Session    string        // a [sessionKey]
	Since      time.Duration // the greatest age of a record; 0: any
}

// verdictApproved is the verdict in a query for calls that a person, a hook or the classifier has approved.
const verdictApproved = "approved"

// queryOf returns the query that a form contains.
func queryOf(v pageRequest) query {
	since, _ := time.ParseDuration(v.FormValue("since")) // what is no duration is for ever
	return query{
		Text: strings.TrimSpace(v.FormValue("text")), Tool: v.FormValue("tool"), Verdict: v.FormValue("verdict"),
		Session: cmp.Or(v.PathValue("session"), v.FormValue("session")), Since: since,
	}
}

// values returns the query as the form of the live view sends it.
func (q query) values() string {
	return url.Values{"text": {q.Text}, "tool": {q.Tool}, "verdict": {q.Verdict}, "session": {q.Session}}.Encode()
}

// A searchResult is the result of a search of the audit log, newest first.
type searchResult struct {
	Records   []audit.Record
	More      bool // there are older records that match
	Truncated bool // the log goes further back than was searched
}

// searchAudit searches the log from its end, and then the files that it was rotated to. A log that does not exist
// yet is empty.
func searchAudit(path string, q query) (searchResult, error) {
	var found searchResult
	budget := int64(maxSearched)
	for n, name := 1, path; ; n, name = n+1, fmt.Sprintf("%s.%d", path, n) {
		searched, done, err := found.search(name, budget, q)
		if errors.Is(err, fs.ErrNotExist) && n > 1 || done {
			return found, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // during a rotation the file does not exist for a moment
			return found, err
		}
		if budget -= searched; budget <= 0 {
			found.Truncated = true
			return found, nil
		}
	}
}

// search searches one file from its end, at most budget bytes. done says that no older records are needed.
func (found *searchResult) search(path string, budget int64, q query) (searched int64, done bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, false, err
	}
	from := max(0, end-budget)
	err = backwards(f, from, end, func(line []byte) bool {
		var r audit.Record
		if json.Unmarshal(line, &r) != nil {
			return true // an incomplete record, after a crash
		}
		if done = q.Since > 0 && time.Since(r.Time) > q.Since; done {
			return false
		}
		if !q.matches(r) {
			return true
		}
		if done = len(found.Records) == maxFound; done {
			found.More = true
			return false
		}
		found.Records = append(found.Records, r)
		return true
	})
	return end - from, done, err
}

// matches reports whether a record matches the query. Case does not matter.
func (q query) matches(r audit.Record) bool {
	by, _ := personOf(r)
	switch {
	case q.Tool != "" && r.Tool != q.Tool, q.Session != "" && q.Session != sessionKey(r):
		return false
	case q.Verdict == verdictApproved && by != audit.PhaseApproved, q.Verdict != "" && q.Verdict != verdictApproved &&
		q.Verdict != r.Verdict:
		return false
	}
	text := strings.ToLower(q.Text)
	if text == "" {
		return true
	}
	all := slices.Concat([]string{r.Principal, r.Scope, r.Tool, r.Command, r.Rule, r.Source, r.Error, r.Summary,
		r.Client}, r.Reads, r.Writes, r.Effects)
	return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// backwards calls do with each line between two offsets, in reverse order, until it returns false. A line that begins
// before from is left out.
func backwards(f io.ReaderAt, from, to int64, do func(line []byte) bool) error {
	const block = 256 << 10
	var rest []byte // the beginning of a line that ends in the next block
	for at := to; at > from; {
		size := min(block, at-from)
		at -= size
		buf := make([]byte, size, int(size)+len(rest))
		if _, err := f.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		buf = append(buf, rest...)
		for {
			i := bytes.LastIndexByte(buf, '\n')
			if i < 0 {
				break
			}
			if line := bytes.TrimSpace(buf[i+1:]); len(line) > 0 && !do(line) {
				return nil
			}
			buf = buf[:i]
		}
		rest = buf
		if len(rest) > block*4 {
			rest = nil // no record is that long
		}
	}
	if line := bytes.TrimSpace(rest); from == 0 && len(line) > 0 {
		do(line)
	}
	return nil
}
