package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/text"
)

// A Document is the text of an answer as shown to a model.
type Document struct {
	// Kind says how the answer is shown. If it is not a text, only Kind and Type are set.
	Kind document.Kind
	// Type is the media type, such as "text/html".
	Type string
	// Title and Date are those of the page, "" if it has none.
	Title, Date string
	// Text is the page as Markdown, or unchanged.
	Text string
	// Begin is the offset in Text, in bytes, of the part that the fragment of the URL names.
	Begin int
	// Notes are additional texts for the reader.
	Notes []string

	markdown bool // Text is Markdown
	once     sync.Once
	blocks   []block // of Text, for choosing passages
}

// documents are the documents of one answer.
type documents struct {
	mu  sync.Mutex
	all map[documentKey]*Document
}

type documentKey struct {
	raw      bool
	fragment string
}

// Document returns the document of an answer. raw requests the whole page instead of its main content; fragment is
// the part of the page at which to begin.
func (r *Response) Document(raw bool, fragment string) (*Document, error) {
	r.documents.mu.Lock()
	defer r.documents.mu.Unlock()
	key := documentKey{raw, fragment}
	if d := r.documents.all[key]; d != nil {
		return d, nil
	}
	d, err := r.document(raw, fragment)
	if err != nil {
		return nil, err
	}
	var removed int
	if d.Text, removed = text.Visible(d.Text); removed > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d invisible characters were taken out.", removed))
	}
	if d.markdown {
		d.Text, d.Title = withoutImages(d.Text), withoutImages(oneLine(d.Title))
	}
	d.Text = standBy.Replace(d.Text)
	if at := strings.Index(d.Text, beginMark); at >= 0 {
		d.Begin = strings.LastIndexByte(d.Text[:at], '\n') + 1
	} else if fragment != "" && d.Kind == document.TextFile {
		d.Notes = append(d.Notes, fmt.Sprintf("The page has no part #%.100s.", oneLine(fragment)))
	}
	d.Text = strings.ReplaceAll(d.Text, beginMark, "")
	d.Title, d.Date = oneLine(d.Title), oneLine(d.Date)
	if len(r.documents.all) == 0 { // only the first is kept: a caller may ask for any number of fragments
		r.documents.all = map[documentKey]*Document{key: d}
	}
	return d, nil
}

// beginMark marks the beginning of the fragment. It is a private-use character, which is removed from pages.
const beginMark = "\U0010FFFD"

// oneLine returns a text on one line, at most 300 characters of it, without invisible ones.
func oneLine(s string) string {
	s, _ = text.Visible(strings.Join(strings.Fields(s), " "))
	s = strings.ReplaceAll(s, "\n", " ")
	return strings.ReplaceAll(cutText(s, 300), beginMark, "")
}

func (r *Response) document(raw bool, fragment string) (*Document, error) {
	declared, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		declared, params = "", nil
	}
	kind, _ := document.Detect(r.Body[:min(len(r.Body), document.DetectBytes)], "")
	d := &Document{Kind: kind, Type: declared}
	if d.Type == "" {
		d.Type, _, _ = strings.Cut(mimetype.Detect(r.Body).String(), ";")
	}
	if kind == document.OtherFile && isTextType(declared) && bytes.IndexByte(r.Body, 0) < 0 {
		d.Kind = document.TextFile
	}
	if d.Kind != document.TextFile {
		return d, nil
	}
	d.Text = ownMarks.Replace(decode(r.Body, params["charset"]))
	head := strings.ToLower(strings.TrimSpace(d.Text[:min(len(d.Text), 4096)]))
	switch {
	case looksLikeHTML(head), isHTMLType(d.Type) && strings.HasPrefix(head, "<"), isHTMLType(d.Type) &&
		strings.Contains(d.Text, "</"):
		if !isHTMLType(d.Type) {
			d.Type = "text/html"
		}
		d.markdown = true
		return d, d.fromHTML(d.Text, r.URL, raw, fragment)
	case !raw && (strings.HasPrefix(head, "<?xml") || strings.HasPrefix(head, "<rss") || strings.HasPrefix(head, "<feed")):
		d.markdown = d.fromFeed(r.URL)
	case isMarkdownType(d.Type):
		d.markdown = true
	case strings.HasPrefix(head, "{") || strings.HasPrefix(head, "["):
		d.indentJSON()
	}
	return d, nil
}

func isTextType(t string) bool {
	return strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "json") ||
		strings.HasSuffix(t, "/xml")
}

func isHTMLType(t string) bool { return t == "text/html" || t == "application/xhtml+xml" }

func isMarkdownType(t string) bool { return t == "text/markdown" || t == "text/x-markdown" }

// looksLikeHTML reports whether a text, in lower case, begins as an HTML page does. Markdown may begin with other
// elements.
func looksLikeHTML(head string) bool {
	for strings.HasPrefix(head, "<!--") || strings.HasPrefix(head, "<?xml") {
		_, rest, ok := strings.Cut(head, ">")
		if !ok {
			return false
		}
		head = strings.TrimSpace(rest)
	}
	return strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html")
}

// indentJSON indents JSON that is on one line.
func (d *Document) indentJSON() {
	trimmed := strings.TrimSpace(d.Text)
	var out bytes.Buffer
	if !strings.Contains(trimmed, "\n") && indentSize(trimmed) <= maxGrowth*len(trimmed)+growthRoom &&
		json.Indent(&out, []byte(trimmed), "", "  ") == nil {
		d.Text = out.String()
	}
}

var metaCharset = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<meta[^>]{1,200}charset\s*=\s*["']?\s*([a-z0-9_:.-]+)|^\s*<\?xml[^>]{1,100}encoding\s*=\s*["']([a-z0-9_:.-]+)`)
})

// decode returns a body as text. It uses its byte order mark; UTF-8 if the body is valid; the charset that the
// header, or else the page, names if the body is valid in it; and otherwise the charset that Read would find.
func decode(body []byte, charset string) string {
	head := body[:min(len(body), 4096)]
	if m := metaCharset().FindSubmatch(head); charset == "" && m != nil {
		charset = string(m[1]) + string(m[2])
	}
	escapes := bytes.IndexByte(head, 0x1b) >= 0 // ISO-2022 looks like ASCII
	marked := bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(body, []byte("\xff\xfe")) ||
		bytes.HasPrefix(body, []byte("\xfe\xff"))
	if enc, err := htmlindex.Get(strings.TrimSpace(charset)); err == nil && !marked && (escapes || !utf8.Valid(body)) {
		if plain, err := enc.NewDecoder().Bytes(body); err == nil &&
			bytes.Count(plain, []byte("\uFFFD")) <= len(plain)/1000 {
			return string(plain)
		}
	}
	return strings.ToValidUTF8(text.Decode(bytes.Clone(body)).String(), "\uFFFD")
}
