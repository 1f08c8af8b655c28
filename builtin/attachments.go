package builtin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/text"
)

// maxAttached is how many images of a result of another server are shown. APIs refuse a conversation with too many
// images.
const maxAttached = 20

// Attachments shows the binary content of one result of another server as Read shows files. The declared type of
// content is not trusted.
type Attachments struct {
	env   *Env
	album document.Album
	shown int
}

// Attachments returns the empty attachments of a result.
func (e *Env) Attachments() *Attachments { return &Attachments{env: e} }

// Show returns base64 content as an image, as text, or as both. what describes the content in the text, such as
// "Image (image/png)".
func (a *Attachments) Show(ctx context.Context, what, encoded string) (*Image, string) {
	raw, err := document.Decode(encoded)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("[%s is not shown: it is not valid base64.]", what)
	case len(raw) == 0:
		return nil, fmt.Sprintf("[%s is not shown: it is empty.]", what)
	}
	kind, words := document.Detect(raw[:min(len(raw), document.DetectBytes)], "")
	switch kind {
	case document.ImageFile:
		return a.picture(ctx, what, raw)
	case document.TextFile:
		return nil, fmt.Sprintf("[%s is %s:]\n%s", what, words, text.Decode(raw).String())
	}
	next := ""
	if kind == document.PDFFile {
		next = ", and Read shows its pages"
	}
	path, err := a.env.keep("attachment", raw)
	if err != nil {
		return nil, fmt.Sprintf("[%s is not shown: %s, %s, could not be kept: %v.]", what, words,
			count(len(raw), "byte"), err)
	}
	return nil, fmt.Sprintf("[%s is not shown: %s, %s, is kept in %s%s.]", what, words,
		count(len(raw), "byte"), path, next)
}

// picture returns an image within the limits of models. It says in text what was done to the image.
func (a *Attachments) picture(ctx context.Context, what string, raw []byte) (*Image, string) {
	if a.shown == maxAttached {
		return nil, fmt.Sprintf("[%s is not shown: a result has at most %s.]", what, count(maxAttached, "image"))
	}
	if err := a.env.Runtime.decoding.Acquire(ctx, 1); err != nil {
		return nil, fmt.Sprintf("[%s is not shown: %v.]", what, err)
	}
	defer a.env.Runtime.decoding.Release(1)
	picture, err := a.album.Picture(raw)
	if err != nil {
		return nil, fmt.Sprintf("[%s is not shown: %v.]", what, err)
	}
	a.shown++
	image := &Image{Data: picture.Data, MIME: picture.MIME}
	if len(picture.Data) == len(raw) && &picture.Data[0] == &raw[0] {
		return image, ""
	}
	return image, fmt.Sprintf("[%s: %s.]", what, picture.Note)
}

// Base64 returns the data as it is sent.
func (i Image) Base64() string { return base64.StdEncoding.EncodeToString(i.Data) }

// keep keeps content among the results of the caller, in a file whose name begins with name, and returns its path.
func (e *Env) keep(name string, content []byte) (path string, err error) {
	if e.Results == nil {
		return "", errors.New("this host keeps no results")
	}
	file, err := e.Results.Create(name)
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close(), file.Kept().Err); err != nil {
		return "", errors.Join(err, file.Discard())
	}
	return file.Kept().Path, nil
}
