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
	roots    []string                 // without symbolic links, as records name files
	short    func(path string) string // as a page shows it
	closing  context.Context          // done when the server closes: streams end
	counts   lineCounts               // of the history
	noAway   string                   // why questions are not announced although the settings want it
}

// show renders a page for a request.
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

// render writes a page, or a part of one.
func render(w http.ResponseWriter, status int, page g.Node) {
	var b bytes.Buffer
	_ = page.Render(&b) // a buffer takes everything

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // only a connection that is gone has none
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // a client that has gone needs no answer
}

// tell answers a form: the script of a page gets the text alone, and without script the page shows it.
func (s *website) tell(w http.ResponseWriter, v pageRequest, text string, err error, page func(said string, failed bool, status int)) {
	status := http.StatusOK
	if err != nil {
		status, text = http.StatusConflict, sentence(err.Error())
	}
	if v.Header.Get("X-Console") == "" {
		page(text, err != nil, status)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // it may have taken long
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(mcpserver.Sanitize(text)))
}

// showLocked shows the page for a visitor without a session.
func showLocked(w http.ResponseWriter, status int, said string) { render(w, status, loginPage(said)) }

// asset serves a file that holds no secret.
func asset(name, kind string) http.Handler {
	content, err := assets.ReadFile("assets/" + name)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // a client that has gone needs no answer
	})
}

// resultLines are the lines of the beginning of a result; where the call writes, a diff is shown as one.
func resultLines(c call, most int) []line {
	if len(c.Record.Writes) == 0 {
		return plain("", clip(c.Result, most))
	}
	return diffLines(clip(c.Result, most))
}

// period names one of the [periods].
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

// recordText is what a call is about: what its record sums up of its command, or its files.
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

// summary is what a record sums up of a call that runs no command: a pattern, a range, the last line of a task.
func summary(r audit.Record) string {
	if r.Command != "" {
		return r.LastLine
	}
	return strings.TrimSpace(r.Summary + " " + r.LastLine)
}

// shortener makes paths below the first root relative to it, as callers may write them.
func shortener(root string) func(string) string {
	root = strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator)
	return func(path string) string {
		if path+string(filepath.Separator) == root {
			return "."
		}
		return mcpserver.Sanitize(strings.TrimPrefix(path, root))
	}
}

// from returns where a rule is written, if that is a file or a flag.
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

// sentence begins with a capital and ends with a full stop.
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

// A taskView is a task with a name that is no key to it: ids of tasks are.
type taskView struct {
	*builtin.Task
	Key, Last string // Last is its last line of output
}
