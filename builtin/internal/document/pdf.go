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

	// MaxPDFText is how many bytes of text the pages of one answer may have: as many as a page of a text file.
	MaxPDFText = text.DefaultPageBytes

	// DPI is the resolution at which pages are drawn: text of 8 points is well readable, and a letter page is 935×1210
	// pixels large.
	DPI = 110

	// maxMessage bounds one message of a worker, in bytes: a picture of
	// [MaxSide] squared that hardly compresses, as base64.
	maxMessage = 32 << 20

	// waitDelay is how long to wait for the pipes of a killed worker.
	waitDelay = 2 * time.Second
)

// PDFOptions are the options of [PDF]. Zero fields have defaults.
type PDFOptions struct {
	// Draw asks for a picture of every page. Otherwise only pages without text
	// are drawn.
	Draw bool

	// MaxText is how many bytes of text the pages may have; default [MaxPDFText]. The first page is returned whole.
	MaxText int

	// Timeout bounds the reading; default [DefaultPDFTimeout].
	Timeout time.Duration

	// CacheDir is where the compiled PDFium is kept, because compiling takes 4 s. It is created, for the owner only. Any
	// program that can write to it can run programs as the user, so it must be outside of the directories that a sandbox
	// may write. Empty: nothing is kept.
	CacheDir string

	// Compiler compiles PDFium after an answer that was read without a compiled one. Nil: PDFium is compiled only if an
	// answer takes long.
	Compiler *Compiler

	// program is the worker program to run instead of this one. Tests under the race detector set it: PDFium is 30 times
	// slower there.
	program string
}

// Pages are some pages of a PDF.
type Pages struct {
	// First is the number of the first page read, from 1. Total is how many the
	// document has.
	First, Total int

	// Text is the text of each page read, empty if it has none. Fewer pages may have been read than were asked for:
	// Notes then say how to continue.
	Text []string

	// Pictures show pages; their notes say which.
	Pictures []Picture

	// Notes say what else the reader must know.
	Notes []string

	maxText int
}

// PDF reads the pages from to to, counted from 1, at most [MaxPages]. The document may have fewer. The offset of f
// does not change.
//
// A worker process reads the file. It has ended when PDF returns, whatever the file made it do. An error says what is
// wrong with the file or the request. If the worker fails after the first page, PDF returns the pages read so far,
// with a note and no error.
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

// finish adds a note that says how to continue.
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

// work runs a worker and adds the pages that it sends.
func (p *Pages) work(ctx context.Context, f *os.File, program string, o request) error {
	cmd, err := workerCommand(ctx, program, o)
	if err != nil {
		return err
	}
	// The file is passed as standard input because that can be inherited on every system.
	stderr := &headWriter{limit: 2000}
	cmd.Stdin, cmd.Stderr = f, stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("the PDF reader could not be started: %w", err)
	}
	done, takeErr := p.take(&io.LimitedReader{R: out}, o.To-o.From+1)
	if !errors.Is(takeErr, io.EOF) {
		cmd.Process.Kill() // its result is not needed
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
	cmd.Env, cmd.WaitDelay = []string{}, waitDelay // no environment is needed, and it may hold secrets
	return cmd, nil
}

// take reads up to count pages that a worker sends. done reports that the worker has sent all, or that the answer is
// full.
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

// picture checks the picture that a worker drew, like any other image: the file may have taken control of the worker.
// It returns the zero Picture if there is none.
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

// words returns the first line, which for a Go program is the fatal error.
func (w *headWriter) words() string {
	line, _, _ := strings.Cut(strings.TrimSpace(w.buf.String()), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}
