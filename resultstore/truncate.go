package resultstore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// A fitted result is a result as shown.
type fitted struct {
	Text string
	Path string // of the whole, when it is kept
	Cut  bool   // Text is not the whole
}

// Fit returns text unchanged if it has at most limit characters, or if limit is 0. Otherwise it stores the whole and
// returns head and tail, cut at line ends if that loses little, with a notice between them. With the notice the
// result has at most limit characters, or half of limit and the notice if limit is too small for one (it takes about
// 400 and two times the path). The tail gets at least a third of the space: errors are usually at the end.
//
// The result is valid even if there is an error: it says itself that the whole, or the rest of it, was not stored.
// The error is for the log.
func (sh *PrincipalStore) Fit(text string, limit int) (fitted, error) {
	if fits(text, limit) {
		return fitted{Text: text}, nil
	}
	kept, err := sh.keep(text)
	return cut(text, kept, limit), err
}

// resultName begins the names of results that are complete when they are stored.
const resultName = "result"

// keep stores a text, as far as possible.
func (sh *PrincipalStore) keep(text string) (kept, error) {
	f, err := sh.create(resultName, int64(len(text)))
	if err != nil {
		return kept{Err: err}, err
	}
	err = f.writeText(text)
	kept := f.Kept()
	kept.Err = cmp.Or(kept.Err, err)
	return kept, err
}

// writeText writes a text, and closes the file.
func (f *file) writeText(text string) error {
	// In pieces, so that no second copy of a large text is made; the wrapper hides the reader's WriteTo, which makes one.
	_, err := io.Copy(f, struct{ io.Reader }{strings.NewReader(text)})
	if err != nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errQuota) {
		err = errors.Join(err, f.Discard()) // on a full disk half a result is useless
	}
	return errors.Join(err, f.Close())
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

// cut shows the beginning and the end of text, which do not overlap in the result.
func cut(text string, kept kept, limit int) fitted {
	if kept.Stored == 0 {
		kept.Path = "" // an empty file is useless
	}
	whole := elision{ofBytes: len(text), ofLines: countLines(text)}
	longest := whole
	longest.afterBytes, longest.afterLines, longest.bytes, longest.lines = len(text), whole.ofLines, len(text),
		whole.ofLines
	longest.insideLine, longest.lineShown = true, limit
	budget := max(limit-utf8.RuneCountInString(notice(kept, longest)), limit/2)
	tail := lastLines(text, budget/2)
	head := firstLines(text, budget-utf8.RuneCountInString(tail))
	return fitted{Text: head + notice(kept, whole.between(head, tail)) + tail, Path: kept.Path, Cut: true}
}

// keepOfCut is the part of its budget, of n characters, that a head or tail must keep for a cut at a line end; a
// longer line is cut inside. Two thirds of the half that a tail gets are the third of the whole that Fit promises.
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

// runePrefix returns the first n characters of text. A byte that is not UTF-8 counts as one character.
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

// runeSuffix returns the last n characters of text. A byte that is not UTF-8 counts as one character.
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

// word is how many bytes isASCII checks at once: most text is ASCII, where each byte is a character.
const word = 8

func isASCII(s string) bool {
	// The compiler reads this as one number.
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return w&0x8080808080808080 == 0
}

// elision is the part of a text left out between head and tail.
type elision struct {
	ofBytes, ofLines int  // of the whole text
	afterBytes       int  // bytes shown before it
	afterLines       int  // whole lines shown before it
	lines            int  // lines not shown, or not shown whole
	bytes            int  // not shown
	insideLine       bool // it begins inside a line
	lineShown        int  // of which so many bytes are shown before it
}

// between returns the elision between a head and a tail of the text.
func (g elision) between(head, tail string) elision {
	g.afterBytes = len(head)
	g.afterLines = strings.Count(head, "\n")
	g.insideLine = head != "" && head[len(head)-1] != '\n'
	g.lineShown = len(head) - 1 - strings.LastIndexByte(head, '\n')
	g.bytes = max(0, g.ofBytes-len(head)-len(tail))
	g.lines = max(1, g.ofLines-g.afterLines-countLines(tail))
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

// notice returns the lines that replace a gap, including the line ends around them.
func notice(kept kept, g elision) string {
	var b strings.Builder
	if g.insideLine {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[… %d of %d lines (%d of %d bytes) are left out here", g.lines, g.ofLines, g.bytes, g.ofBytes)
	if g.insideLine {
		fmt.Fprintf(&b, ", from inside line %d, after byte %d", g.afterLines+1, g.afterBytes)
	}
	b.WriteString(".")
	if kept.Path == "" {
		fmt.Fprintf(&b, " The whole was not kept: %v. To see more, narrow the call.]\n", cause(kept.Err))
		return b.String()
	}
	if kept.Stored < int64(g.ofBytes) {
		fmt.Fprintf(&b, " Only the first %d bytes are kept (%v)", kept.Stored, cause(kept.Err))
	} else {
		b.WriteString(" The whole is kept")
	}
	next := "Read " + arguments(readCall{kept.Path, g.afterLines + 1})
	if g.lineShown > longLine {
		next = "Bash " + arguments(bashCall{fmt.Sprintf("tail -c +%d %s | head -c 20000", g.afterBytes+1, quoted(kept.Path))})
	}
	fmt.Fprintf(&b, " in %s. Next part: %s. To search it: Grep %s.]\n", kept.Path, next,
		arguments(grepCall{"…", kept.Path}))
	return b.String()
}

// quoted returns a path as one word of shell text.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// longLine is the length in bytes beyond which Read truncates a line.
const longLine = 2000

// cause returns an error without the path in the store, which does not help the reader.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
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
