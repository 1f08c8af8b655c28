package builtin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/memory"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// maxImage is the largest image file that is read, in bytes. Larger images are of no use to a model.
const maxImage = 64 << 20

// An opened file is one that is not plain text.
type opened struct {
	path guard.Path
	file *os.File
	info fs.FileInfo
	kind document.Kind
	what string // a description, such as "PNG image"
}

// readDocument shows a file that is not plain text.
func readDocument(ctx context.Context, env *Env, f opened, in readInput) (Result, error) {
	if in.Pages != "" && f.kind != document.PDFFile {
		return Result{}, fmt.Errorf("pages is for PDF files, and %s is not one (%s): omit it", f.path, f.what)
	}
	var r Result
	var err error
	switch f.kind {
	case document.ImageFile:
		r, err = f.image(ctx, env)
	case document.PDFFile:
		r, err = f.pdf(ctx, env, in)
	case document.NotebookFile:
		r, err = f.notebook(ctx, env, in)
	default:
		return Result{}, fmt.Errorf("%s is not text (%s, %s): it cannot be shown. Use Bash with a program that "+
			"understands it",
			f.path, f.what, count(int(f.info.Size()), "byte"))
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s cannot be shown: %w", f.path, err)
	}
	return r, nil
}

// content reads the whole file, up to a limit, and records it as read. Until release is called, its memory is
// reserved, so that few files are converted concurrently.
func (f opened) content(ctx context.Context, env *Env, limit int64) (raw []byte, release func(), err error) {
	if f.info.Size() > limit {
		return nil, nil, fmt.Errorf("it has %d bytes (%s); at most %d are read", f.info.Size(), f.what, limit)
	}
	if _, err := f.file.Seek(0, 0); err != nil {
		return nil, nil, err
	}
	converted, err := env.Runtime.convert(ctx, f.info.Size())
	if err != nil {
		return nil, nil, err
	}
	freed, err := memory.Take(f.info.Size())
	if err != nil {
		converted()
		return nil, nil, err
	}
	release = func() { freed(); converted() }
	if raw, err = readAll(f.file, f.info.Size(), limit); err != nil {
		release()
		return nil, nil, err
	}
	v := readstate.VersionOf(f.info)
	v.Size = int64(len(raw))
	env.ReadState.MarkRead(f.path.Real(), v, raw)
	return raw, release, nil
}

func (f opened) image(ctx context.Context, env *Env) (Result, error) {
	raw, release, err := f.content(ctx, env, maxImage)
	if err != nil {
		return Result{}, err
	}
	defer release()
	picture, err := document.Image(raw)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Text:   fmt.Sprintf("%s: %s\n", f.path, picture.Note),
		Images: images([]document.Picture{picture}),
	}, nil
}

func (f opened) pdf(ctx context.Context, env *Env, in readInput) (Result, error) {
	from, to, err := document.ParsePages(in.Pages)
	if err != nil {
		return Result{}, err
	}
	release, err := env.Runtime.convert(ctx, 0)
	if err != nil {
		return Result{}, err
	}
	defer release()
	pages, err := document.PDF(ctx, f.file, from, to, document.PDFOptions{
		CacheDir: env.Runtime.cache, Compiler: &env.Runtime.pdf, MaxText: pageBytes(env.ClientLimits),
	})
	if err != nil {
		return Result{}, err
	}
	var out strings.Builder
	for i, page := range pages.Text {
		fmt.Fprintf(&out, "--- page %d of %d ---\n%s\n", pages.First+i, pages.Total, strings.TrimRight(page, "\n"))
	}
	writeNotes(&out, pages.Notes, pages.Pictures)
	return Result{Text: out.String(), Images: images(pages.Pictures)}, nil
}

func (f opened) notebook(ctx context.Context, env *Env, in readInput) (Result, error) {
	raw, release, err := f.content(ctx, env, document.MaxNotebook)
	if err != nil {
		return Result{}, err
	}
	defer release()
	decoded, source := text.Decode(raw), raw
	if decoded.Charset() != "utf-8" {
		source = []byte(decoded.String())
	}
	n, err := document.ParseNotebook(source)
	if err != nil { // shown as text, so that it can be repaired
		shown, page := text.NumberPage(raw, pageOptions(in, env.ClientLimits), maxLineShown)
		r := showPage(f.path, shown, page, in)
		r.Text += fmt.Sprintf("\n[This notebook is damaged and is shown as text: %v]\n", err)
		return r, nil
	}
	shown := n.Render(document.RenderOptions{Offset: in.Offset, Limit: in.Limit, MaxBytes: pageBytes(env.ClientLimits)})
	var out strings.Builder
	out.WriteString(shown.Text)
	if decoded.Charset() != "utf-8" {
		shown.Notes = append(shown.Notes, "The encoding is "+decoded.Charset()+"; edits keep it.")
	}
	writeNotes(&out, shown.Notes, shown.Pictures)
	return Result{Text: out.String(), Images: images(shown.Pictures)}, nil
}

// writeNotes appends the notes that a reader needs, and what the images show.
func writeNotes(out *strings.Builder, notes []string, pictures []document.Picture) {
	for i, p := range pictures {
		notes = append(notes, fmt.Sprintf("Picture %d: %s.", i+1, strings.TrimSuffix(p.Note, ".")))
	}
	if len(notes) > 0 {
		fmt.Fprintf(out, "\n[%s]\n", strings.Join(notes, " "))
	}
}

func images(pictures []document.Picture) []Image {
	var all []Image
	for _, p := range pictures {
		all = append(all, Image{Data: p.Data, MIME: p.MIME})
	}
	return all
}
