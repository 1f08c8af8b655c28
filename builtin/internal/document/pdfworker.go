package document

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// workerArg as the first argument makes this program a worker that reads a PDF. The request is the next argument, the
// file is the standard input, and the responses go to the standard output, one JSON value each.
const workerArg = "__pdf"

// Limits of a worker.
const (
	// memoryPages is the memory of PDFium, in pages of 64 KiB: 256 MiB. Without
	// a limit a small file can take 9.5 GB.
	memoryPages = 4096

	// maxPageText is how many characters of a page are read.
	maxPageText = 60_000
)

// A request describes the work of a worker.
type request struct {
	From, To int
	Draw     bool
	CacheDir string
	// Interpret: read without compiling PDFium. Compile: do nothing but compile it.
	Interpret, Compile bool
	Seconds            int // it ends itself then, if it was not ended before
}

// A response is one message of a worker: the number of pages first, then each
// page, then Done; or an error.
type response struct {
	Total int    `json:",omitempty"`
	Text  string `json:",omitempty"`
	PNG   []byte `json:",omitempty"`
	Note  string `json:",omitempty"` // continues "Page n"
	Done  bool   `json:",omitempty"`
	Error string `json:",omitempty"`
}

// init runs the worker if this process was started as one, and does not return then. So no main function has to call
// it.
func init() {
	if len(os.Args) < 2 || os.Args[1] != workerArg {
		return
	}
	out := json.NewEncoder(os.Stdout)
	last := response{Done: true}
	if err := runWorker(os.Args[2:], out); err != nil {
		last = response{Error: err.Error()}
	}
	if out.Encode(last) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func runWorker(args []string, out *json.Encoder) error {
	var o request
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &o) != nil || o.Seconds <= 0 {
		return errors.New("the order to the PDF reader cannot be read")
	}
	time.AfterFunc(time.Duration(o.Seconds)*time.Second, func() { os.Exit(1) })
	if err := limitProcess(o.Seconds); err != nil {
		return fmt.Errorf("the PDF reader could not limit itself: %w", err)
	}
	if o.Compile {
		go func() { // returns when the parent process has ended
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		_, err := openLibrary(o)
		return err
	}
	info, err := os.Stdin.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("the file is empty")
	}
	lib, err := openLibrary(o)
	if err != nil {
		return fmt.Errorf("the PDF reader could not be started: %w", err)
	}
	doc, err := lib.OpenDocument(&requests.OpenDocument{
		FileReader: io.NewSectionReader(os.Stdin, 0, info.Size()), FileReaderSize: info.Size(),
	})
	if err != nil {
		return openError(err)
	}
	r := &reader{lib: lib, doc: doc.Document, draw: o.Draw}
	return r.run(o, out)
}

// openLibrary compiles or interprets PDFium, and starts it without access to a file system.
func openLibrary(o request) (pdfium.Pdfium, error) {
	cfg := wazero.NewRuntimeConfig()
	if o.Interpret {
		cfg, o.CacheDir = wazero.NewRuntimeConfigInterpreter(), ""
	}
	cfg = cfg.
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(memoryPages)
	if o.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, err
		}
		cfg = cfg.WithCompilationCache(cache)
	}
	pool, err := webassembly.Init(webassembly.Config{
		Context: experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0)), MaxTotal: 1,
		FSConfig: wazero.NewFSConfig(), RuntimeConfig: cfg,
		Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, err
	}
	return pool.GetInstanceWithContext(context.Background())
}

func openError(err error) error {
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword):
		return errors.New("the PDF is encrypted and opens only with a password: decrypt a copy with a program first")
	case errors.Is(err, pdfiumerrors.ErrSecurity):
		return errors.New("the PDF is encrypted in a way that cannot be read")
	case errors.Is(err, pdfiumerrors.ErrFormat), errors.Is(err, pdfiumerrors.ErrFile):
		return errors.New("the file begins as a PDF but is damaged: it cannot be read")
	}
	return fmt.Errorf("the PDF cannot be opened: %w", err)
}

// A reader reads pages of an open document.
type reader struct {
	lib  pdfium.Pdfium
	doc  references.FPDF_DOCUMENT
	draw bool // draw every page
}

func (r *reader) run(o request, out *json.Encoder) error {
	count, err := r.lib.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: r.doc})
	if err != nil {
		return err
	}
	total := count.PageCount
	if total <= 0 {
		return errors.New("the PDF has no pages")
	}
	if o.From > total {
		return fmt.Errorf("the last page of the PDF is %d: page %d does not exist", total, o.From)
	}
	if err := out.Encode(response{Total: total}); err != nil {
		return err
	}
	for n := o.From; n <= min(o.To, total); n++ {
		if err := out.Encode(r.page(n - 1)); err != nil {
			return err
		}
	}
	return nil
}

// page reads the page with an index from 0. Its note says what failed.
func (r *reader) page(index int) (a response) {
	loaded, err := r.lib.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: r.doc, Index: index})
	if err != nil {
		return response{Note: "is damaged and cannot be read"}
	}
	defer r.lib.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
	page := requests.Page{ByReference: &loaded.Page}
	a.Text, a.Note = r.text(page)
	noted := a.Note == "" && r.annotated(page)
	if a.Text != "" && !noted && !r.draw {
		return a
	}
	objects, err := r.lib.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: page})
	if err == nil && objects.Count == 0 && a.Text == "" && !noted && !r.draw {
		a.Note = "is empty"
		return a
	}
	a.PNG, err = r.picture(page)
	switch {
	case err != nil:
		a.Note = fmt.Sprintf("could not be drawn: %v", err)
	case a.Text == "":
		a.Note = "has no text layer: it is shown as a picture"
	case noted:
		a.Note = "has form fields or annotations, which are not in its text: it is shown as a picture too"
	}
	return a
}

// text returns the text of a page, and a note about it or "".
func (r *reader) text(page requests.Page) (text, note string) {
	loaded, err := r.lib.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return "", "has text that cannot be read"
	}
	defer r.lib.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: loaded.TextPage})
	chars, err := r.lib.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: loaded.TextPage})
	if err != nil {
		return "", "has text that cannot be read"
	}
	if chars.Count <= 0 {
		return "", ""
	}
	if chars.Count > maxPageText {
		note = fmt.Sprintf("has %d characters, of which the first %d are shown", chars.Count, maxPageText)
	}
	// A character takes up to two units of UTF-16; PDFium itself knows where the page ends.
	got, err := r.lib.FPDFText_GetText(&requests.FPDFText_GetText{
		TextPage: loaded.TextPage, Count: 2 * min(chars.Count, maxPageText),
	})
	if err != nil {
		return "", "has text that cannot be read"
	}
	return cleanText(got.Text), note
}

// cleanText returns the text with line endings "\n", and with hyphens where PDFium marks that a word continues on the
// next line (U+0002, U+FFFE).
func cleanText(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == 0x02 || r == 0xfffe:
			return '-'
		case r == '\r' || r == '\f':
			return '\n'
		case r < ' ' && r != '\n' && r != '\t', r == 0xffff:
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}
