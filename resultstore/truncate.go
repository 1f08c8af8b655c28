package resultstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// A fitted result is one as it is shown.
type fitted struct {
	Text  string
	Path  string // of the whole, when it is kept
	Bytes int64  // length of the whole
	Lines int    // lines of the whole
	Cut   bool   // Text is not the whole
}

// Fit returns text as it is if it has at most limit characters, or if limit is 0. Else it keeps the whole and returns head
// and tail, cut at line ends where that loses little, with a notice between them. With the notice the result has at most limit
// characters, or half of limit and the notice where limit is too small for one (it takes some 400 and two times the path). A tail takes
// at least a third of what is shown: the error usually stands there.
//
// The result is good even when there is an error: it says itself that the whole, or the rest of it, was not kept; the error is for the
// log.
func (sh *PrincipalStore) Fit(text string, limit int) (fitted, error) {
	whole := kept{Bytes: int64(len(text)), Lines: countLines(text)}
	if fits(text, limit) {
		return passThrough(text), nil
	}
	kept, err := sh.keep(text, whole)
	return cut(text, text, kept, limit), err
}

// resultName opens the names of results that are at hand as a whole.
const resultName = "result"

// keep keeps a text, as far as that goes, and returns what it has kept of whole.
func (sh *PrincipalStore) keep(text string, whole kept) (kept, error) {
	f, err := sh.create(resultName, whole.Bytes)
	if err != nil {
		whole.Err = err
		return whole, err
	}
	err = f.writeText(text)
	kept := f.Kept()
	return kept, errors.Join(err, kept.Err)
}

// writeText writes a text, and finishes the file.
func (f *file) writeText(text string) error {
	// In pieces, so that no second copy of a large text is made; the wrapping hides the reader's own way, which makes one.
	_, err := io.Copy(counted{f}, struct{ io.Reader }{strings.NewReader(text)})
	if kept := f.Kept(); err == nil && kept.Err != nil && !errors.Is(kept.Err, errTooLarge) && !errors.Is(kept.Err, errQuota) {
		err = errors.Join(kept.Err, f.Discard()) // a disk that is full has no use for half a result
	}
	return errors.Join(err, f.Close())
}

// counted writes to a file on and on: what cannot be stored is counted.
type counted struct{ *file }

func (c counted) Write(p []byte) (int, error) {
	if _, err := c.file.Write(p); errors.Is(err, os.ErrClosed) {
		return 0, err
	}
	return len(p), nil
}

// FitKept is Fit for a result that was streamed into a File: head and tail are its first and last bytes as they were written, at least
// limit characters of each where there are as many, and kept is what the File tells of it, or the counts and the reason when there is
// no file. Where head and tail meet or overlap they are the whole, which is returned as it is if it fits; then the file is not needed
// and the caller discards it.
func (sh *PrincipalStore) FitKept(head, tail string, kept kept, limit int) fitted {
	if overlap := int64(len(head)) + int64(len(tail)) - kept.Bytes; overlap >= 0 {
		head += tail[min(overlap, int64(len(tail))):]
		if fits(head, limit) {
			return passThrough(head)
		}
		tail = head
	}
	return cut(wholeRunesEnd(head), wholeRunesStart(tail), kept, limit)
}

// wholeRunesEnd returns text without the beginning of a character at its end, where a buffer was full.
func wholeRunesEnd(text string) string {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// wholeRunesStart returns text without the rest of a character at its start.
func wholeRunesStart(text string) string {
	for i := range min(len(text), utf8.UTFMax) {
		if utf8.RuneStart(text[i]) {
			return text[i:]
		}
	}
	return text
}

func passThrough(text string) fitted {
	return fitted{Text: text, Bytes: int64(len(text)), Lines: countLines(text)}
}

// fits reports whether text has at most limit characters.
func fits(text string, limit int) bool {
	return limit <= 0 || len(text) <= limit || len(runePrefix(text, limit)) == len(text)
}

// countLines counts lines; an unfinished last one counts.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// cut shows the beginning of head and the end of tail, which do not overlap in what is shown.
func cut(head, tail string, kept kept, limit int) fitted {
	if kept.Stored == 0 {
		kept.Path = "" // a file with nothing in it is of no use
	}
	fitted := fitted{Path: kept.Path, Bytes: kept.Bytes, Lines: kept.Lines, Cut: true}
	if limit <= 0 {
		limit = math.MaxInt32 // all of head and tail
	}
	longest := notice(kept, elision{afterBytes: kept.Bytes, afterLines: kept.Lines, lines: kept.Lines, bytes: kept.Bytes, insideLine: true, lineShown: limit})
	budget := max(limit-utf8.RuneCountInString(longest), limit/2)
	tail = lastLines(tail, budget/2)
	head = firstLines(head, budget-utf8.RuneCountInString(tail))
	fitted.Text = head + notice(kept, gapBetween(head, tail, kept)) + tail
	return fitted
}

// keepOfCut is the part of its budget, of n characters, that a head or tail must keep for a cut at a line end; a longer line is cut
// inside. Two thirds of the half that a tail gets is the third of the whole that Fit promises.
const keepOfCut = 2.0 / 3

// firstLines returns the beginning of text in at most n characters.
func firstLines(text string, n int) string {
	short := runePrefix(text, n)
	if len(short) == len(text) {
		return text
	}
	if end := strings.LastIndexByte(short, '\n') + 1; n-utf8.RuneCountInString(short[end:]) >= int(keepOfCut*float64(n)) {
		return short[:end]
	}
	return short
}

// lastLines returns the end of text in at most n characters.
func lastLines(text string, n int) string {
	short := runeSuffix(text, n)
	if len(short) == len(text) || text[len(text)-len(short)-1] == '\n' {
		return short
	}
	start := strings.IndexByte(short, '\n') + 1
	if start > 0 && n-utf8.RuneCountInString(short[:start]) >= int(keepOfCut*float64(n)) {
		return short[start:]
	}
	return short
}

// runePrefix returns the first n characters of text, a byte that is not UTF-8 counting as one.
func runePrefix(text string, n int) string {
	i := 0
	for ; n > 0 && i < len(text); n-- {
		for n > word && len(text)-i > word && isASCII(text[i:i+word]) {
			i, n = i+word, n-word
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return text[:i]
}

// runeSuffix returns the last n characters of text, a byte that is not UTF-8 counting as one.
func runeSuffix(text string, n int) string {
	i := len(text)
	for ; n > 0 && i > 0; n-- {
		for n > word && i > word && isASCII(text[i-word:i]) {
			i, n = i-word, n-word
		}
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return text[i:]
}

// word is how many bytes isASCII looks at, at once: nearly all that is cut is ASCII, of which each byte is a character.
const word = 8

func isASCII(s string) bool {
	// Read as one number by the compiler.
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return w&0x8080808080808080 == 0
}

// elision is what is left out between head and tail.
type elision struct {
	afterBytes int64 // bytes shown before it
	afterLines int   // whole lines shown before it
	lines      int   // lines not shown, or not shown whole
	bytes      int64
	insideLine bool // it begins inside a line
	lineShown  int  // of which so many bytes are shown before it
}

func gapBetween(head, tail string, kept kept) elision {
	g := elision{
		afterBytes: int64(len(head)),
		afterLines: strings.Count(head, "\n"),
		insideLine: head != "" && head[len(head)-1] != '\n',
		lineShown:  len(head) - 1 - strings.LastIndexByte(head, '\n'),
		bytes:      max(0, kept.Bytes-int64(len(head))-int64(len(tail))),
	}
	g.lines = max(1, kept.Lines-g.afterLines-countLines(tail))
	return g
}

// readCall, bashCall and grepCall are the arguments of the calls that a notice proposes.
type readCall struct {
	Path   string `json:"file_path"`
	Offset int    `json:"offset"`
}

type bashCall struct {
	Command string `json:"command"`
}

type grepCall struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// notice returns the lines that stand for a gap, complete with the line ends around them.
func notice(kept kept, g elision) string {
	var b strings.Builder
	if g.insideLine {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[… %d of %d lines (%d of %d bytes) are left out here", g.lines, kept.Lines, g.bytes, kept.Bytes)
	if g.insideLine {
		fmt.Fprintf(&b, ", from inside line %d, after byte %d", g.afterLines+1, g.afterBytes)
	}
	b.WriteString(".")
	if kept.Path == "" {
		fmt.Fprintf(&b, " The whole was not kept: %v. To see more, narrow the call.]\n", cause(kept.Err))
		return b.String()
	}
	if kept.Stored < kept.Bytes {
		fmt.Fprintf(&b, " Only the first %d bytes are kept (%v)", kept.Stored, cause(kept.Err))
	} else {
		b.WriteString(" The whole is kept")
	}
	next := "Read " + arguments(readCall{kept.Path, g.afterLines + 1})
	if g.lineShown > longLine {
		next = "Bash " + arguments(bashCall{fmt.Sprintf("tail -c +%d %s | head -c 20000", g.afterBytes+1, quoted(kept.Path))})
	}
	fmt.Fprintf(&b, " in %s. Next part: %s. To search it: Grep %s.]\n", kept.Path, next, arguments(grepCall{"…", kept.Path}))
	return b.String()
}

// quoted returns a path as a shell takes it for one word.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// longLine is from how many bytes on Read does not show the rest of a line.
const longLine = 2000

// cause returns an error without the path in the store that it may carry, which the reader can do nothing about.
func cause(err error) error {
	var pathErr *fs.PathError
	switch {
	case err == nil:
		return errors.New("no file was asked for")
	case errors.As(err, &pathErr):
		return pathErr.Err
	}
	return err
}

// arguments returns the arguments of a call as the reader would send them.
func arguments(call any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // paths may hold & < >
	if err := e.Encode(call); err != nil {
		return err.Error() // not reached: the calls hold strings and numbers
	}
	return strings.TrimSuffix(b.String(), "\n")
}
