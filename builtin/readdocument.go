package builtin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"toolhost/builtin/internal/document"
	"toolhost/guard"
	"toolhost/readstate"
)

// MaxImage is the largest image file that is read, in bytes. Larger ones are no pictures for a model.
const MaxImage = 64 << 20

// An opened file is one that is not plain text.
type opened struct {
	path guard.Path
	file *os.File
	info fs.FileInfo
	kind document.Kind
	what string // in words, such as "PNG image"
}

// readDocument shows what is not plain text.
func readDocument(ctx context.Context, env *Env, f opened, in ReadInput) (Result, error) {
	if in.Pages != "" && f.kind != document.PDFFile {
		return Result{}, fmt.Errorf("pages is for PDF files, and %s is a %s", f.path, f.what)
	}
	var r Result
	var err error
	switch f.kind {
	case document.ImageFile:
		r, err = f.image(env)
	case document.PDFFile:
		r, err = f.pdf(ctx, env, in)
	case document.NotebookFile:
		r, err = f.notebook(env, in)
	default:
		return Result{}, fmt.Errorf("%s is no text but a %s, %d bytes: it cannot be shown. Use Bash with a program that understands it",
			f.path, f.what, f.info.Size())
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s cannot be shown: %w", f.path, err)
	}
	return r, nil
}

// content reads the whole file, up to a limit, and remembers that it was seen.
func (f opened) content(env *Env, limit int64) ([]byte, error) {
	if f.info.Size() > limit {
		return nil, fmt.Errorf("it is a %s of %d bytes; at most %d are read", f.what, f.info.Size(), limit)
	}
	if _, err := f.file.Seek(0, 0); err != nil {
		return nil, err
	}
	raw, err := readAll(f.file, f.info.Size(), limit)
	if err != nil {
		return nil, err
	}
	v := readstate.VersionOf(f.info)
	v.Size = int64(len(raw))
	env.Seen.SawWhole(f.path.Real(), v, raw)
	return raw, nil
}

func (f opened) image(env *Env) (Result, error) {
	raw, err := f.content(env, MaxImage)
	if err != nil {
		return Result{}, err
	}
	picture, err := document.Image(raw)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Text:   fmt.Sprintf("%s: %s\n", f.path, picture.Note),
		Images: images([]document.Picture{picture}),
	}, nil
}

func (f opened) pdf(ctx context.Context, env *Env, in ReadInput) (Result, error) {
	from, to, err := document.ParsePages(in.Pages)
	if err != nil {
		return Result{}, err
	}
	pages, err := document.PDF(ctx, f.file, from, to, document.PDFOptions{CacheDir: env.Box.cache})
	if err != nil {
		return Result{}, err
	}
	var out strings.Builder
	for i, page := range pages.Text {
		fmt.Fprintf(&out, "--- page %d of %d ---\n%s\n", pages.First+i, pages.Total, strings.TrimRight(page, "\n"))
	}
	if len(pages.Notes) > 0 {
		fmt.Fprintf(&out, "\n[%s]\n", strings.Join(pages.Notes, " "))
	}
	return Result{Text: out.String(), Images: images(pages.Pictures)}, nil
}

func (f opened) notebook(env *Env, in ReadInput) (Result, error) {
	raw, err := f.content(env, document.MaxNotebook)
	if err != nil {
		return Result{}, err
	}
	n, err := document.ParseNotebook(raw)
	if err != nil {
		return Result{}, err
	}
	shown := n.Render(document.RenderOptions{Offset: in.Offset, Limit: in.Limit})
	out := shown.Text
	if len(shown.Notes) > 0 {
		out += "\n[" + strings.Join(shown.Notes, " ") + "]\n"
	}
	return Result{Text: out, Images: images(shown.Pictures)}, nil
}

func images(pictures []document.Picture) []Image {
	var all []Image
	for _, p := range pictures {
		all = append(all, Image{Data: p.Data, MIME: p.MIME})
	}
	return all
}
