package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// Limits of one Read.
const (
	// maxLineShown limits how much of a line is shown, in characters.
	maxLineShown = 2000
	// wholeFile is the largest file, in bytes, that is read and remembered whole even when a page of it is
	// shown. Of larger ones only the page is read on, so that its cost does not grow with the file.
	wholeFile = 1 << 20
	// longestRead is the limit for a page of text or cells, including the notes about the images of a document.
	longestRead = 120_000
	// pageNotesRoom is reserved for the notes after a page, in characters.
	pageNotesRoom = 500
)

// readInput is the input of [Read].
type readInput struct {
	FilePath string `json:"file_path" jsonschema:"the file to read: absolute, ~/… or relative to the first root"`
	Offset   int    `json:"offset,omitempty" jsonschema:"the first line to show, counted from 1; of a notebook the first cell (default: 1)"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many lines, or cells, to show (default: 2000 lines)"`
	Pages    string `json:"pages,omitempty" jsonschema:"which pages of a PDF to show, such as 3 or 1-5; 20 at most"`
}

// readOutput is the structured result of [Read].
type readOutput struct {
	Path       string `json:"path"`
	StartLine  int    `json:"start_line"`
	Lines      int    `json:"lines"`
	TotalLines int    `json:"total_lines"`
	NextOffset int    `json:"next_offset,omitempty"`
	Encoding   string `json:"encoding"`
	EOL        string `json:"eol"`
}

// Read shows the lines of a file.
var Read = declare(Tool[readInput]{
	Name:       "Read",
	SeesHeld:   true,
	Title:      "Read a file",
	Brief:      "read a file",
	Core:       true,
	Hints:      Hints{ReadOnly: true, Closed: true},
	Permission: guard.ToRead,
	MaxResult:  longestRead,
	Refine: func(s *jsonschema.Schema) {
		// Many models set every field, and use 0 for those that they do not mean.
		s.Properties["offset"].Minimum = jsonschema.Ptr(0.0)
		s.Properties["limit"].Minimum = jsonschema.Ptr(0.0)
	},
	Forms:           readForms,
	ConcurrencySafe: always[readInput],
	Plan: func(_ context.Context, env *Env, in readInput) (Plan, error) {
		path, err := findNamed(env.Policy, in.FilePath)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Read{Path: path.Path, Range: in.part()}}},
			Run: func(ctx context.Context) (Result, error) {
				r, err := read(ctx, env, path.Path, in)
				r.Text = atMost(r.Text, env.ClientLimits)
				return path.say(r, err)
			},
		}, nil
	},
})

// readForms turns a page that is a number into text. A limit of -1 means no limit.
func readForms(given map[string]json.RawMessage) {
	numbersAsText("pages")(given)
	if string(given["limit"]) == "-1" {
		delete(given, "limit")
	}
}

// part returns the part of the file that is read, or "" for its beginning.
func (in readInput) part() string {
	switch {
	case in.Pages != "":
		return "pages " + in.Pages
	case in.Limit > 0:
		return fmt.Sprintf("lines %d-%d", max(in.Offset, 1), max(in.Offset, 1)+in.Limit-1)
	case in.Offset > 1:
		return fmt.Sprintf("from line %d", in.Offset)
	}
	return ""
}

// contents is a pool of buffers for files. A new buffer for each Read would displace much of the processor's caches.
var contents = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func read(ctx context.Context, env *Env, path guard.Path, in readInput) (Result, error) {
	room := contents.Get().(*bytes.Buffer)
	room.Reset()
	defer contents.Put(room) // the result and the read state have copies
	f, err := openText(ctx, env, path, room)
	if err != nil {
		return Result{}, err
	}
	defer f.file.Close()
	src := f.source()
	head, err := headOf(f.whole, src)
	if err != nil {
		return Result{}, fmt.Errorf("%s could not be read: %w", path, err)
	}
	kind, what := document.Detect(head, path.Real())
	if kind != document.TextFile {
		return f.document(ctx, env, opened{path: path, kind: kind, what: what}, in)
	}
	if in.Pages != "" {
		return Result{}, fmt.Errorf("pages is for PDF files, and %s is text: use offset and limit", path)
	}
	options := pageOptions(in, env.ClientLimits)
	options.Charset = env.ReadState.Charset(path.Real(), readstate.VersionOf(f.info))
	shown, page, err := pageOf(ctx, f.whole, src, options)
	if err != nil {
		return Result{}, fmt.Errorf("%s could not be read: %w", path, err)
	}
	if err := remember(env.ReadState, path, f.info, page, f.whole, src); err != nil {
		return Result{}, fmt.Errorf("%s could not be read: %w", path, err)
	}
	return showPage(path, shown, page, in), nil
}

// pageOptions returns the options of the page. The page and its notes together do not exceed what the client passes
// on.
func pageOptions(in readInput, passes ClientLimits) text.PageOptions {
	return text.PageOptions{Offset: in.Offset, Limit: in.Limit, MaxBytes: pageBytes(passes)}
}

// pageBytes returns the limit of a page, without the room for its notes.
func pageBytes(passes ClientLimits) int {
	most := text.DefaultPageBytes
	if client := passes.Of(false); client > 0 {
		most = min(most, client)
	}
	return max(most-pageNotesRoom, most/2)
}

// atMost cuts a result that is longer than longestRead, such as a page of a PDF.
func atMost(shown string, passes ClientLimits) string {
	most := longestRead
	if client := passes.Of(false); client > 0 {
		most = min(most, client)
	}
	if len(shown) <= most || utf8.RuneCountInString(shown) <= most {
		return shown
	}
	const note = "\n[The rest is not shown: a Read shows %d characters at most.]\n"
	runes := 0
	keep := max(most-len(note)-len("000000"), most/2)
	for at := range shown {
		if runes++; runes > keep {
			return shown[:at] + fmt.Sprintf(note, most)
		}
	}
	return shown
}

// pageOf returns the requested page of a file that is in memory or is read from disk, and how it is shown.
func pageOf(ctx context.Context, whole []byte, src io.Reader, o text.PageOptions) (shown string, page *text.Page,
	err error) {
	if whole != nil && int64(len(whole)) <= wholeFile {
		shown, page = text.NumberPage(whole, o, maxLineShown)
		return shown, page, context.Cause(ctx)
	}
	if page, err = text.ReadPage(&cancelled{ctx, src}, o); err != nil {
		return "", nil, err
	}
	return page.Numbered(maxLineShown), page, nil
}

// headOf returns the beginning of a file, and leaves src at its start.
func headOf(whole []byte, src io.ReadSeeker) ([]byte, error) {
	if whole != nil {
		return whole[:min(len(whole), document.DetectBytes)], nil
	}
	head := make([]byte, document.DetectBytes)
	n, err := io.ReadFull(src, head)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		_, err = src.Seek(0, io.SeekStart)
	}
	return head[:n], err
}

// remember records what was shown. A file that grew beyond [wholeFile] while it was read counts as a page.
func remember(seen *readstate.Scope, path guard.Path, info fs.FileInfo, page *text.Page, whole []byte,
	src io.ReadSeeker) error {
	v := readstate.VersionOf(info)
	if whole != nil && page.Charset != "utf-8" && !page.BOM {
		v.Charset = page.Charset // an edit may be too short to tell the charset, and so may a page of a large file
	}
	if whole != nil && int64(len(whole)) <= wholeFile {
		v.Size = int64(len(whole))
		if page.First <= 1 && !page.More {
			seen.MarkRead(path.Real(), v, whole)
			return nil
		}
		v.Hash, v.Hashed = readstate.HashOf(whole), true
	}
	shown := make([]byte, page.End-page.Start)
	if _, err := src.Seek(page.Start, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.ReadFull(src, shown); err != nil {
		return err
	}
	seen.MarkPartRead(path.Real(), v, readstate.Part{FirstLine: page.First, Lines: page.Count, Start: page.Start},
		shown)
	return nil
}

// showPage adds the notes that say how to continue after the page.
func showPage(path guard.Path, shown string, page *text.Page, in readInput) Result {
	if notes := pageNotes(path, page, in); notes != "" {
		if shown != "" {
			notes = "\n" + notes
		}
		shown += notes
	}
	return Result{Text: shown, Structured: readOutput{
		Path: path.String(), StartLine: page.First, Lines: page.Count, TotalLines: page.Total,
		NextOffset: page.Next, Encoding: encodingName(page.Charset, page.BOM), EOL: page.EOL.String(),
	}}
}

func pageNotes(path guard.Path, page *text.Page, in readInput) string {
	var notes []string
	if page.Charset != "utf-8" || page.BOM {
		notes = append(notes, "The encoding is "+encodingName(page.Charset, page.BOM)+"; edits keep it.")
	}
	if page.Invalid > 0 {
		notes = append(notes, fmt.Sprintf("%s of this page %s not valid UTF-8; edits elsewhere keep %s.",
			count(page.Invalid, "byte"), plural(page.Invalid, "is", "are"), plural(page.Invalid, "it", "them")))
	}
	if page.EOL == text.CRLF || page.EOL == text.CR || page.EOL == text.Mixed {
		notes = append(notes, fmt.Sprintf("The line endings are %s; edits keep them.", page.EOL))
	}
	if line := cutLine(page); line > 0 {
		notes = append(notes, fmt.Sprintf("Lines of more than %d characters are cut, such as line %d: Bash shows more of "+
			"it, as in sed -n %dp FILE | cut -c%d-%d.",
			maxLineShown, line, line, maxLineShown+1, 5*maxLineShown))
	}
	lines, total := count(page.Total, "line"), strconv.Itoa(page.Total)
	if !page.Exact {
		lines, total = "more than "+lines, "more than "+total
	}
	switch {
	case page.Total == 0 && page.Exact:
		notes = append(notes, path.String()+" is empty.")
	case page.Count == 0:
		notes = append(notes, fmt.Sprintf("offset %d is beyond the end: %s has %s.", in.Offset, path, lines))
	case page.More:
		notes = append(notes, fmt.Sprintf("This is not the whole file: lines %d to %d of %s. Go on with offset=%d.",
			page.First, page.First+page.Count-1, total, page.Next))
	}
	if len(notes) == 0 {
		return ""
	}
	return "[" + strings.Join(notes, " ") + "]\n"
}

// cutLine returns the number of the first line of a page that is cut and that a command can show whole, or 0.
func cutLine(page *text.Page) int {
	if page.Charset != "utf-8" || !runsCommands(nil) {
		return 0
	}
	for i, line := range page.Lines { // there is no such line if no line is cut
		if line.Hidden > 0 || len(line.Text) > maxLineShown && utf8.RuneCountInString(line.Text) > maxLineShown {
			return page.First + i
		}
	}
	return 0
}

func encodingName(charset string, bom bool) string {
	if bom {
		return charset + " with byte-order mark"
	}
	return charset
}

// A textFile is a text file that is read.
type textFile struct {
	info  fs.FileInfo
	whole []byte // the content of a small file, otherwise nil
	file  *os.File
}

// source returns a reader of the content.
func (f *textFile) source() io.ReadSeeker {
	if f.whole != nil {
		return bytes.NewReader(f.whole)
	}
	return f.file
}

// document shows a file that turned out not to be plain text.
func (f *textFile) document(ctx context.Context, env *Env, of opened, in readInput) (Result, error) {
	of.file, of.info = f.file, f.info
	return readDocument(ctx, env, of, in)
}

// openText opens a file, and reads it into room if it is small.
func openText(ctx context.Context, env *Env, path guard.Path, room *bytes.Buffer) (*textFile, error) {
	if err := refuseSpecial(path); err != nil {
		return nil, err
	}
	f, err := openFile(ctx, env, path)
	if err != nil || f.info.Size() > wholeFile {
		return f, err
	}
	if f.whole, err = readInto(room, f.file, f.info.Size(), wholeFile+1); err != nil {
		f.file.Close()
		return nil, fmt.Errorf("%s could not be read: %w", path, err)
	}
	return f, nil
}

// openFile opens a regular file. It refuses directories, devices and other files that could block.
func openFile(ctx context.Context, env *Env, path guard.Path) (*textFile, error) {
	f, err := path.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(ctx, env, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s could not be opened: %w", path, inFile(path, err))
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = directory(env.Policy, path, f)
	} else if err == nil && !info.Mode().IsRegular() {
		err = special(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &textFile{info: info, file: f}, nil
}

// A cancelled reader fails after its context is done.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelled) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
