package document

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/text"
)

// Limits of reading a PDF.
const (
	// DefaultPDFTimeout bounds one reading.
	DefaultPDFTimeout = 60 * time.Second

	// MaxPDFText is how much text the pages of one answer hold, in bytes: as
	// much as a page of a text file.
	MaxPDFText = text.DefaultPageBytes

	// DPI is the resolution at which pages are drawn: text of 8 points is well
	// readable, and a letter page has 935×1210 pixels.
	DPI = 110

	// maxMessage bounds one message of a worker, in bytes: a picture of
	// [MaxSide] squared that hardly compresses, as base64.
	maxMessage = 32 << 20

	// waitDelay is how long a killed worker's pipes are waited for.
	waitDelay = 2 * time.Second
)

// PDFOptions are the options of [PDF]. Zero fields have defaults.
type PDFOptions struct {
	// Draw asks for a picture of every page. Otherwise only pages without text
	// are drawn.
	Draw bool

	// MaxText is how much text the pages have, in bytes; default [MaxPDFText].
	// The first page is shown whole.
	MaxText int

	// Timeout bounds the reading; default [DefaultPDFTimeout].
	Timeout time.Duration

	// CacheDir is where the compiled PDFium is kept: to compile it takes 4 s.
	// It is created, for the owner only. A program that can write there can run programs as
	// the user: it must be outside of the directories that a sandbox may write. Empty: nothing
	// is kept.
	CacheDir string

	// Compiler compiles PDFium after an answer that was read without. Nil: only
	// answers that take long have it compiled.
	Compiler *Compiler

	// program is what to run as a worker, instead of this very program. Tests
	// under the race detector set it: PDFium is 30 times slower there.
	program string
}

// Pages are some pages of a PDF.
type Pages struct {
	// First is the number of the first page read, from 1. Total is how many the
	// document has.
	First, Total int

	// Text is the text of each page read, empty where there is none. It may be
	// shorter than what was asked for: Notes say how to continue.
	Text []string

	// Pictures are of pages, as their notes say.
	Pictures []Picture

	// Notes say what a reader must also know.
	Notes []string

	maxText int
}

// PDF reads the pages from to to, counted from 1, of which the document may have
// fewer, at most [MaxPages]. The file is read at offsets of its own: f stays
// where it stands.
//
// A worker process does the reading. It is gone when PDF returns, whatever the
// file did to it. An error says what is wrong with the file or the request;
// what was read before a worker was lost is returned without one.
func PDF(ctx context.Context, f *os.File, from, to int, o PDFOptions) (*Pages, error) {
	if from < 1 || to < from || to-from >= MaxPages {
		return nil, fmt.Errorf("pages %d to %d cannot be read: at most %d at once, counted from 1", from, to, MaxPages)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultPDFTimeout
	}
	if o.MaxText <= 0 {
		o.MaxText = MaxPDFText
	}
	p := &Pages{First: from, maxText: o.MaxText}
	cache, err := cacheDir(o.CacheDir)
	if err != nil {
		p.note("PDF files are slow to open: %v.", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errSlow)
	defer cancel()
	order := request{From: from, To: to, Draw: o.Draw, CacheDir: cache, Seconds: int(o.Timeout/time.Second) + 1}
	if isCompiled(cache) {
		err = p.work(ctx, f, o.program, order)
	} else if p, err = p.race(ctx, f, o.program, order); cache != "" && !isCompiled(cache) {
		o.Compiler.start(o.program, order)
	}
	if err != nil && len(p.Text) == 0 {
		return nil, err
	}
	if err != nil {
		p.note("Page %d could not be read: %v.", from+len(p.Text), err)
	}
	p.finish(to)
	return p, nil
}

var errSlow = errors.New("it took too long")

func (p *Pages) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// finish says how to continue.
func (p *Pages) finish(to int) {
	next := p.First + len(p.Text)
	if next <= p.Total {
		if next <= to {
			p.note("The answer is full.")
		}
		p.note(`These are pages %d to %d of %d. Go on with pages="%d-%d".`,
			p.First, next-1, p.Total, next, min(p.Total, next+MaxPages-1))
	}
}

// work runs a worker and takes its pages.
func (p *Pages) work(ctx context.Context, f *os.File, program string, o request) error {
	cmd, err := workerCommand(ctx, program, o)
	if err != nil {
		return err
	}
	// The file is the standard input because that is inherited on every system.
	stderr := &headWriter{limit: 2000}
	cmd.Stdin, cmd.Stderr = f, stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the PDF reader could not be started: %w", err)
	}
	done, takeErr := p.take(&io.LimitedReader{R: out}, o.To-o.From+1)
	if !errors.Is(takeErr, io.EOF) {
		cmd.Process.Kill() // its result is not needed any more
	}
	waitErr := cmd.Wait()
	switch {
	case done:
		return takeErr
	case ctx.Err() != nil:
		return fmt.Errorf("the PDF reader was stopped: %w", context.Cause(ctx))
	case !errors.Is(takeErr, io.EOF):
		return fmt.Errorf("cannot decode the answer of the PDF reader: %w", takeErr)
	}
	return fmt.Errorf("the PDF reader failed on this file (%w)%s", waitErr, stderr.words())
}

// workerCommand returns the command of a worker.
func workerCommand(ctx context.Context, program string, o request) (*exec.Cmd, error) {
	arg, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if program == "" {
		if program, err = ownProgram(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = []string{"toolhost", workerArg, string(arg)}
	cmd.Env, cmd.WaitDelay = []string{}, waitDelay // an environment is not needed, and may hold secrets
	return cmd, nil
}

// take reads up to count pages that a worker sends. It reports whether that
// came to its end, or to that of what an answer may hold.
func (p *Pages) take(out *io.LimitedReader, count int) (done bool, err error) {
	answers := json.NewDecoder(out)
	texts, pictures := 0, 0
	for {
		var a response
		out.N = maxMessage
		if err := answers.Decode(&a); err != nil {
			return false, err
		}
		switch {
		case a.Error != "":
			return true, errors.New(a.Error)
		case a.Done:
			return true, nil
		case a.Total > 0:
			p.Total = a.Total
			continue
		case len(p.Text) == count:
			return false, errors.New("it has more pages than it was asked for")
		}
		number := p.First + len(p.Text)
		pic, err := a.picture(number)
		if err != nil {
			p.note("Page %d could not be drawn: %v.", number, err)
		}
		texts += len(a.Text)
		pictures += base64.StdEncoding.EncodedLen(len(pic.Data))
		if len(p.Text) > 0 && (texts > p.maxText || pictures > MaxPictures) {
			return true, nil
		}
		p.Text = append(p.Text, a.Text)
		if pic.Data != nil {
			p.Pictures = append(p.Pictures, pic)
		}
		if a.Note != "" {
			p.note("Page %d %s.", number, a.Note)
		}
	}
}

// picture checks what a worker drew, which may have been turned against us by
// the file, as any other image. The zero Picture: it drew none.
func (a *response) picture(number int) (Picture, error) {
	if len(a.PNG) == 0 {
		return Picture{}, nil
	}
	pic, err := Image(a.PNG)
	if err != nil {
		return Picture{}, err
	}
	pic.Note = fmt.Sprintf("page %d, %d×%d pixels", number, pic.Width, pic.Height)
	return pic, nil
}

// headWriter keeps the first bytes written to it.
type headWriter struct {
	buf   bytes.Buffer
	limit int
}

func (w *headWriter) Write(p []byte) (int, error) {
	w.buf.Write(p[:min(len(p), w.limit-w.buf.Len())])
	return len(p), nil
}

// words returns the first line, which in Go says what was fatal.
func (w *headWriter) words() string {
	line, _, _ := strings.Cut(strings.TrimSpace(w.buf.String()), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}
