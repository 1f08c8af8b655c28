package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxSized is the size of the longest text whose Content-Length is corrected when the text is rewritten. A longer
	// text is sent without a Content-Length. In other bodies with a length, sentinels are cut or padded to the length
	// of the value.
	maxSized = 1 << 20
	// echoChunk is how much of a body is read at a time.
	echoChunk = 32 << 10
)

// hideEchoes takes values out of a response: out of its header, its body of any type, and its trailer. values returns
// the values that are known by then. carries says that the request has a value: then the body must not be in an
// encoding that is not read.
func hideEchoes(r *http.Response, values func() *finder, carries bool) error {
	known := values()
	hideHeader(r.Header, known)
	r.Status = known.hide(r.Status) // which an upgrade repeats
	e := &echoReader{from: r.Body, values: values, response: r}
	if r.StatusCode == http.StatusSwitchingProtocols {
		to, ok := r.Body.(io.Writer)
		if !ok {
			return errors.New("the connection cannot be upgraded")
		}
		e.fixed = true // a frame says how long it is
		r.Body = struct {
			*echoReader
			io.Writer
		}{e, to}
		return nil
	}
	r.Body = e
	if r.Request.Method == http.MethodHead || r.ContentLength == 0 {
		return nil
	}
	switch encoding := encodingOf(r.Header); {
	case encoding == gzipped && acceptsGzip(r.Request.Header):
		e.from = &gunzip{ReadCloser: e.from}
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		r.Header.Del("Content-Encoding")
	case encoding != "" && carries && !archiveTypes.MatchString(r.Header.Get("Content-Type")):
		return fmt.Errorf("its answer has the encoding %.100q, which was not asked for; ask for gzip (curl --compressed)",
			encoding)
	}
	switch text := isText(r.Header.Get("Content-Type")); {
	case r.ContentLength < 0:
		return nil
	case !text || known.sameLengths():
		e.fixed = true
		return nil
	case r.ContentLength > maxSized:
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}
	text, err := io.ReadAll(e)
	if err != nil {
		return err
	}
	e.Close()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

// hideHeader takes values out of a header.
func hideHeader(header http.Header, known *finder) {
	for _, values := range header {
		for i := range values {
			values[i] = known.hide(values[i])
		}
	}
}

// gzipped is the encoding of bodies that are read for values.
const gzipped = "gzip"

// encodingOf returns the encodings of a body; "" if there is none.
func encodingOf(header http.Header) string {
	names := strings.Split(strings.ToLower(strings.Join(header.Values("Content-Encoding"), ",")), ",")
	for i := range names {
		names[i] = strings.TrimPrefix(strings.TrimSpace(names[i]), "x-")
	}
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "identity" }),
		",")
}

// acceptsGzip reports whether a client has asked for gzip.
func acceptsGzip(header http.Header) bool {
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(header.Values("Accept-Encoding"), ",")), ",") {
		name, quality, _ := strings.Cut(name, ";")
		quality = strings.TrimSpace(quality)
		never := strings.HasPrefix(quality, "q=0") && strings.Trim(quality[3:], ".0") == ""
		if strings.TrimSpace(name) == gzipped && !never {
			return true
		}
	}
	return false
}

// archiveTypes match the types of files that are compressed themselves. Servers often say so by the encoding as well. A
// program that has not asked for that encoding gets the file as it is.
var archiveTypes = regexp.MustCompile(
	`^(?i)\s*application/(?:octet-stream|(?:x-)?(?:g?tar|gzip|tgz|compressed[a-z-]*))\s*(?:$|;)`)

// gunzip decodes a body as it arrives.
type gunzip struct {
	io.ReadCloser
	z *gzip.Reader
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.z == nil {
		if g.z, err = gzip.NewReader(g.ReadCloser); err != nil {
			g.z = nil
			return 0, err
		}
	}
	return g.z.Read(p)
}

// isText reports whether bodies of a type are text, whose length may change. A body without a type may be text.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return true
	}
	top, _, _ := strings.Cut(kind, "/")
	return top == "text" || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") ||
		strings.HasSuffix(kind, "javascript") ||
		strings.HasSuffix(kind, "yaml") || kind == formType
}

// An echoReader takes values out of a body as it arrives. It keeps back only what may be the beginning of a value.
type echoReader struct {
	from     io.ReadCloser
	values   func() *finder // the values that are known by now: a stream may be older than a value
	fixed    bool           // what replaces a value has the length of the value
	response *http.Response // whose trailer arrives with the end; may be nil
	buf      []byte         // what is read
	rest     []byte         // what is not examined yet, in buf
	out      []byte         // what can be read from this reader
	err      error
}

// Close closes the body. A trailer that has arrived is rewritten by then.
func (e *echoReader) Close() error {
	err := e.from.Close()
	e.hideTrailer()
	return err
}

func (e *echoReader) hideTrailer() {
	if e.response != nil {
		hideHeader(e.response.Trailer, e.values())
	}
}

func (e *echoReader) Read(p []byte) (int, error) {
	for len(e.out) == 0 && e.err == nil {
		kept := len(e.rest)
		if size := kept + echoChunk; len(e.buf) < size {
			buf := make([]byte, size)
			copy(buf, e.rest)
			e.buf = buf
		} else {
			copy(e.buf, e.rest)
		}
		var n int
		n, e.err = e.from.Read(e.buf[kept : kept+echoChunk])
		e.examine(e.buf[:kept+n], e.err != nil)
		if e.err != nil {
			e.hideTrailer()
		}
	}
	if len(e.out) == 0 {
		return 0, e.err
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// examine moves what was read to out, and keeps the rest. last says that nothing follows.
func (e *echoReader) examine(in []byte, last bool) {
	values := e.values()
	e.out = nil
	for {
		kept := 0
		if !last {
			kept = values.beginning(in)
		}
		at, found := values.find(in, len(in)-kept) // the rest may be the beginning of a longer value
		if at < 0 {
			e.rest = in[len(in)-kept:]
			if in = in[:len(in)-kept]; e.out == nil {
				e.out = in
			} else {
				e.out = append(e.out, in...)
			}
			return
		}
		inside := found.inside
		if n := len(found.outside); e.fixed && len(inside) != n {
			inside = (inside + strings.Repeat("*", n))[:n]
		}
		e.out = append(append(e.out, in[:at]...), inside...)
		in = in[at+len(found.outside):]
	}
}
