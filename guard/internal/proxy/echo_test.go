package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

// TestEchoReader: values are found wherever a body is split, and nothing is kept back that cannot be one.
func TestEchoReader(t *testing.T) {
	f := newFinder([]pair{{"secret-value", "sentinel"}, {"secret%2Dvalue", "sentinel%2D"}})
	text := "a secret-value, b secret-secret-value secret%2Dvalue secre"
	want := "a sentinel, b secret-sentinel sentinel%2D secre"
	for name, split := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "data with the end": iotest.DataErrReader,
	} {
		got, err := io.ReadAll(&echoReader{from: io.NopCloser(split(strings.NewReader(text))),
			values: func() *finder { return f }})
		if string(got) != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	e := &echoReader{from: io.NopCloser(io.MultiReader(strings.NewReader("event: secret\n\n"),
		iotest.ErrReader(errors.New("later")))), values: func() *finder { return f }}
	buf := make([]byte, 100)
	if n, err := e.Read(buf); string(buf[:n]) != "event: secret\n\n" || err != nil {
		t.Errorf("kept back: got %q, %v", buf[:n], err)
	}
}

// TestEchoSizes: bodies of every size and kind are rewritten, with a right length.
func TestEchoSizes(t *testing.T) {
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		text := strings.Repeat("x", len(r.URL.Query().Get("size"))*maxSized) + value
		if r.URL.Query().Get("length") != "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		}
		io.WriteString(w, text)
	})
	client := f.client(false)
	for _, query := range []string{"type=text/plain", "type=application/json&length=1",
		"type=text/html%3Bcharset=x&size=1", "type=application/vnd.api%2Bjson&size=11&length=1", "type="} {
		r, _ := http.NewRequest("GET", "https://example.com/?"+query, nil)
		r.Header.Set("Authorization", "Bearer "+sentinel)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || !bytes.HasSuffix(text, []byte(sentinel)) || bytes.Contains(text, []byte(value)) ||
			answer.ContentLength >= 0 && answer.ContentLength != int64(len(text)) {
			t.Errorf("%s: %d bytes of %d, %v", query, len(text), answer.ContentLength, err)
		}
	}
}

// TestHidden: whatever a host does with a request that has the value, the client does not see it, and honest answers
// arrive as they were sent.
func TestHidden(t *testing.T) {
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if got == "" {
			got = value
		}
		h := w.Header()
		switch r.URL.Path {
		case "/binary":
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Content-Length", fmt.Sprint(len(got)))
		case "/multipart":
			h.Set("Content-Type", "multipart/byteranges; boundary=x")
		case "/trailer":
			h.Set("Trailer", "Grpc-Message")
			defer h.Set("Grpc-Message", got)
			defer h.Set(http.TrailerPrefix+"Late", got)
		case "/early":
			h.Set("Link", got)
			w.WriteHeader(http.StatusEarlyHints)
			h.Del("Link")
		case "/br":
			h.Set("Content-Encoding", "br")
		case "/gzip":
			h.Set("Content-Encoding", "gzip")
			got = packed(got)
		case "/asked":
			got = r.Header.Get("Accept-Encoding") + r.Header.Get("Range") + r.Header.Get("Upgrade")
		case "/spelt":
			text := got + "+/=x" // as the value of another request
			got = strings.Join([]string{strings.ToLower(url.QueryEscape(text)), base64.RawStdEncoding.EncodeToString([]byte(got)),
				fmt.Sprintf("% x %[1]x", got), base64.URLEncoding.EncodeToString([]byte("a" + got +
					"b")), base64.StdEncoding.EncodeToString([]byte("ab" + got + "cd"))}, " ")
		case "/query":
			got = r.URL.RawQuery
		}
		io.WriteString(w, got)
	})
	for _, c := range []struct {
		method, path, header, text string
		code                       int
		want                       string
	}{
		{"GET", "/text", "", "", 200, sentinel},
		{"GET", "/binary", "", "", 200, sentinel},
		{"GET", "/multipart", "", "", 200, sentinel},
		{"GET", "/trailer", "", "", 200, sentinel},
		{"GET", "/early", "", "", 200, sentinel},
		{"GET", "/br", "", "", 502, "was not asked for"},
		{"GET", "/gzip", "", "", 502, "was not asked for"},
		{"GET", "/gzip", "Accept-Encoding", "br, gzip;q=0.5", 200, sentinel},
		{"GET", "/gzip", "Accept-Encoding", "gzip;q=0.0", 502, "was not asked for"},
		{"GET", "/asked", "Accept-Encoding", "identity", 200, "identity"},
		{"GET", "/asked", "Accept-Encoding", "br, zstd", 200, "identity"},
		{"GET", "/asked", "Range", "bytes=0-3", 200, ""},
		{"GET", "/asked", "Upgrade", "h2c", 200, ""},
		{"GET", "/spelt", "", "", 200, " "},
		{"GET", "/query?a=1;b=%zz", "", "", 200, "a=1;b=%zz"},
		{"GET", "/?token=" + strings.Repeat(sentinel, maxReplaced), "", "", 431, "more than 8"},
		{"TRACE", "/", "", "", 405, "no TRACE"},
		{"track", "/", "", "", 405, "no TRACK"},
	} {
		for _, h2 := range []bool{false, true} {
			if h2 && c.header == "Upgrade" {
				continue
			}
			client := f.client(h2)
			r, _ := http.NewRequest(c.method, "https://example.com"+c.path, nil)
			r.Header.Set("Authorization", "Bearer "+sentinel)
			if c.header != "" {
				r.Header.Set(c.header, c.text)
			}
			if c.header == "Upgrade" {
				r.Header.Set("Connection", "Upgrade")
			}
			early := ""
			trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int,
				h textproto.MIMEHeader) error {
				early = fmt.Sprint(h)
				return nil
			}}
			answer, err := client.Do(r.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
			if err != nil {
				t.Fatal(c, err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			client.CloseIdleConnections()
			all := fmt.Sprint(answer.Header, string(text), answer.Trailer, early)
			if err != nil || answer.StatusCode != c.code || !strings.Contains(string(text), c.want) {
				t.Errorf("%+v, h2 %v: got %s %v", c, h2, all, err)
			}
			if c.path == "/asked" && string(text) != c.want {
				t.Errorf("%+v: the host was asked for %q", c, text)
			}
			if c.path == "/trailer" && strings.Count(fmt.Sprint(answer.Trailer), sentinel) != 2 || c.path == "/early" &&
				!strings.Contains(early, sentinel) {
				t.Errorf("%+v, h2 %v: got %s", c, h2, all)
			}
			for skip := range 3 {
				part := base64.RawStdEncoding.EncodeToString([]byte(value[skip : skip+21]))
				if strings.Contains(all, value) || strings.Contains(all, part) ||
					strings.Contains(strings.ReplaceAll(all, " ", ""), fmt.Sprintf("%x", value)) {
					t.Errorf("%+v, h2 %v: the value is in %s", c, h2, all)
				}
			}
		}
	}
}

// TestEncodedFile: a file that is compressed itself arrives as it was sent, and so does any answer to a request without a
// value, whatever the host says that it is.
func TestEncodedFile(t *testing.T) {
	const archive = "\x1f\x8barchive"
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "x-gzip")
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		io.WriteString(w, archive)
	})
	for _, c := range []struct {
		kind, token string
		code        int
	}{
		{"", "none", 200},
		{"application/json", "none", 200},
		{"application/x-tar", sentinel, 200},
		{"application/gzip; x=y", sentinel, 200},
		{"application/octet-stream", sentinel, 200},
		{"application/x-compressed-tar", sentinel, 200},
		{"", sentinel, 502},
		{"text/plain", sentinel, 502},
		{"application/json", sentinel, 502},
		{"application/cbor", sentinel, 502},
	} {
		if _, err := f.secrets.value(t.Context(), &f.secrets.all[0]); err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("GET", "https://example.com/archive.tar.gz?type="+url.QueryEscape(c.kind), nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		answer, err := f.client(false).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.code || c.code == http.StatusOK &&
			(string(text) != archive || answer.Header.Get("Content-Encoding") != "x-gzip") {
			t.Errorf("%+v: got %s %q %v", c, answer.Status, text, answer.Header)
		}
	}
}

// TestRotated: a value that was replaced is looked for, too, and in a stream that is older than it.
func TestRotated(t *testing.T) {
	now := ""
	s := &secrets{all: []Secret{{Sentinel: sentinel, Value: func(context.Context) (string, error) { return now, nil }}}}
	in, out := io.Pipe()
	e := &echoReader{from: in, values: s.echoes}
	for _, stage := range []struct{ value, want string }{
		{"first-value", sentinel + ", " + sentinel + "-2 and third-value."},
		{"first-value-2", sentinel + ", " + sentinel + " and third-value."},
		{"third-value", sentinel + ", " + sentinel + " and " + sentinel + "."},
	} {
		now = stage.value
		if _, err := s.value(t.Context(), &s.all[0]); err != nil {
			t.Error(err)
		}
		go func() {
			io.WriteString(out, "first-value, first-va")
			io.WriteString(out, "lue-2 and third-value.")
		}()
		text := make([]byte, len(stage.want)) // the next value must not be known before all of it is read
		if _, err := io.ReadFull(e, text); string(text) != stage.want || err != nil {
			t.Errorf("got %q, want %q, %v", text, stage.want, err)
		}
	}
}
