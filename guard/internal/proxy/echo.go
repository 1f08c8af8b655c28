package proxy

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const (
	// maxSized is the size of the longest body whose Content-Length is kept right when it is rewritten. Longer ones are
	// sent without.
	maxSized = 1 << 20
	// echoChunk is how much of a body is read at a time.
	echoChunk = 32 << 10
)

// hideEchoes takes values out of a response.
func hideEchoes(r *http.Response, pairs []pair) error {
	if len(pairs) == 0 {
		return nil
	}
	for _, header := range []http.Header{r.Header, r.Trailer} {
		for _, values := range header {
			for i := range values {
				values[i] = hide(values[i], pairs)
			}
		}
	}
	if !isText(r.Header.Get("Content-Type")) || r.StatusCode == http.StatusSwitchingProtocols || r.ContentLength == 0 || r.Request.Method == http.MethodHead {
		return nil
	}
	body := &echoReader{from: r.Body, pairs: pairs}
	r.Body = body
	switch {
	case r.ContentLength < 0 || sameLengths(pairs):
		return nil
	case r.ContentLength > maxSized:
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	body.Close()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

// hide returns a text without values.
func hide(text string, pairs []pair) string {
	for _, p := range pairs {
		text = strings.ReplaceAll(text, p.outside, p.inside)
	}
	return text
}

func sameLengths(pairs []pair) bool {
	for _, p := range pairs {
		if len(p.outside) != len(p.inside) {
			return false
		}
	}
	return true
}

// isText reports whether bodies of a type are rewritten. One that says nothing may be.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return true
	}
	top, _, _ := strings.Cut(kind, "/")
	return top == "text" || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "javascript") ||
		strings.HasSuffix(kind, "yaml") || kind == "application/x-www-form-urlencoded"
}

// An echoReader takes values out of a body as it arrives. It keeps back no more than what may be the beginning of one.
type echoReader struct {
	from  io.ReadCloser
	pairs []pair
	buf   []byte // what is read
	in    []byte // what is not examined yet
	out   []byte // what can be read from this reader
	err   error
}

func (e *echoReader) Close() error { return e.from.Close() }

func (e *echoReader) Read(p []byte) (int, error) {
	if e.buf == nil {
		e.buf = make([]byte, echoChunk)
	}
	for len(e.out) == 0 && e.err == nil {
		var n int
		n, e.err = e.from.Read(e.buf)
		e.in = append(e.in, e.buf[:n]...)
		e.examine(e.err != nil)
	}
	if len(e.out) == 0 {
		return 0, e.err
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// examine moves what was read from in to out. last says that nothing follows.
func (e *echoReader) examine(last bool) {
	e.out = e.out[:0]
	for {
		at, found := len(e.in), pair{}
		for _, p := range e.pairs {
			if i := bytes.Index(e.in[:min(len(e.in), at+len(p.outside)-1)], []byte(p.outside)); i >= 0 {
				at, found = i, p
			}
		}
		if found.outside == "" {
			break
		}
		e.out = append(append(e.out, e.in[:at]...), found.inside...)
		e.in = e.in[at+len(found.outside):]
	}
	kept := 0
	for _, p := range e.pairs {
		for k := min(len(p.outside)-1, len(e.in)); k > kept && !last; k-- {
			if bytes.HasSuffix(e.in, []byte(p.outside[:k])) {
				kept = k
			}
		}
	}
	e.out = append(e.out, e.in[:len(e.in)-kept]...)
	e.in = append([]byte(nil), e.in[len(e.in)-kept:]...)
}
