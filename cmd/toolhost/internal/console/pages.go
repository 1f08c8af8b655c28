package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

//go:embed assets
var assets embed.FS

// A website is the state that all pages share. The pages of each feature are a type that embeds it.
type website struct {
	console  *Console
	host     *mcpserver.Host
	operator mcpserver.Operator
	sessions *sessionStore
	cross    *http.CrossOriginProtection
	kind     string
	roots    []string                 // without symbolic links, like the files in records
	short    func(path string) string // returns a path as a page shows it
	closing  context.Context          // done when the server closes: streams end
	counts   lineCounts               // of calls in the history
	noAway   string                   // why questions are not announced although the settings ask for it
}

// write writes a page as the response to a request.
func (s *website) write(w http.ResponseWriter, v pageRequest, status int, f layout) {
	f.Token, f.Kind, f.Roots = v.session.token, s.kind, s.operator.Roots()
	f.Mode, f.Sandbox = s.operator.Settings().DefaultMode, s.operator.Containment()
	f.Waiting = s.console.next().waiting
	f.Servers = len(s.operator.Gateway().Servers()) > 0
	if err := s.operator.MayAnswer(); err != nil {
		f.Closed = err.Error()
	}
	render(w, status, f.document())
}

// gone serves the page for a missing or deleted object.
func (s *website) gone(w http.ResponseWriter, v pageRequest, title, said string) {
	s.write(w, v, http.StatusNotFound, layout{Page: "gone", Title: title, Said: said, Failed: true, Body: notFound{}})
}

// render writes a page or a part of one as a response.
func render(w http.ResponseWriter, status int, page g.Node) {
	var b bytes.Buffer
	_ = page.Render(&b) // writing to a buffer cannot fail

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // fails only if the connection is closed
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // fails if the client is gone
}

// tell responds to a form: the script of a page gets only the text; without script the page shows it.
func (s *website) tell(w http.ResponseWriter, v pageRequest, text string, err error, page func(said string, failed bool,
	status int)) {
	status := http.StatusOK
	if err != nil {
		status, text = http.StatusConflict, sentence(err.Error())
	}
	if v.Header.Get("X-Console") == "" {
		page(text, err != nil, status)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // the action may have taken long
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(mcpserver.Sanitize(text)))
}

// showLocked shows the page for a visitor without a session.
func showLocked(w http.ResponseWriter, status int, said string) { render(w, status, loginPage(said)) }

// asset returns a handler that serves an embedded file without secrets.
func asset(name, kind string) http.Handler {
	content, err := assets.ReadFile("assets/" + name)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // fails if the client is gone
	})
}

// resultLines returns the lines of the beginning of a result. If the call writes files, a diff in it is shown as a
// diff.
func resultLines(c call, most int) []line {
	if len(c.Record.Writes) == 0 {
		return plain("", clip(c.Result, most))
	}
	return diffLines(clip(c.Result, most))
}

// period returns a text for one of the [periods].
func period(p string) string {
	switch p {
	case "":
		return "ever"
	case "10m":
		return "10 minutes"
	case "1h":
		return "an hour"
	case "24h":
		return "a day"
	case "168h":
		return "a week"
	}
	return p
}

// recordText returns what a call is about: the summary of its command, or its files.
func recordText(r audit.Record, short func(string) string) string {
	if r.Command != "" {
		return mcpserver.Sanitize(cmp.Or(r.Summary, r.Command))
	}
	files := r.Writes
	if len(files) == 0 {
		files = r.Reads
	}
	var all []string
	for _, f := range files {
		all = append(all, short(f))
	}
	for _, e := range r.Effects {
		all = append(all, mcpserver.Sanitize(e))
	}
	return strings.Join(all, "\n")
}

// summary returns the summary in a record of a call without a command: a pattern, a range, the last line of a task.
func summary(r audit.Record) string {
	if r.Command != "" {
		return r.LastLine
	}
	return strings.TrimSpace(r.Summary + " " + r.LastLine)
}

// shortener returns a function that makes paths below the first root relative to it, as callers may write them.
func shortener(root string) func(string) string {
	root = strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator)
	return func(path string) string {
		if path+string(filepath.Separator) == root {
			return "."
		}
		return mcpserver.Sanitize(strings.TrimPrefix(path, root))
	}
}

// from returns the file or flag that a rule comes from, or "" if it is built in.
func from(source string) string {
	if source == "built in" {
		return ""
	}
	return mcpserver.Sanitize(source)
}

// A lineCount is how many lines a diff adds and removes.
type lineCount struct{ Added, Removed int }

// countLines counts the lines of a diff.
func countLines(lines []line) (t lineCount) {
	for _, l := range lines {
		switch l.Kind {
		case "add":
			t.Added++
		case "del":
			t.Removed++
		}
	}
	return t
}

// sentence returns s with a capital at the start and a full stop at the end.
func sentence(s string) string {
	if s == "" {
		return s
	}
	r := []rune(s)
	if 'a' <= r[0] && r[0] <= 'z' {
		r[0] += 'A' - 'a'
	}
	if last := r[len(r)-1]; last != '.' && last != '?' && last != '!' {
		r = append(r, '.')
	}
	return string(r)
}

// A taskView is a task for display. Pages use Key, because knowing the id of a task gives access to it.
type taskView struct {
	*builtin.Task
	Key, Last string // Last is the last line of its output
}
