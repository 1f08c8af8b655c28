//go:build slow

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestRedirects: hops of the same host are followed, judged and guarded one by one; another host is told.
func TestRedirects(t *testing.T) {
	var hits []string
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		hits = append(hits, r.Host+r.URL.Path)
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		hello(w, r)
	})
	p := policyOf(t, "allow WebFetch", "robots", "deny WebFetch(domain:www.denied.example)",
		"ask WebFetch(domain:www.asked.example)", "deny WebFetch(url:*secret*)")
	for _, name := range []string{"denied.example", "www.denied.example", "asked.example", "www.asked.example"} {
		w.names[name] = []string{"93.184.216.34"}
	}
	for _, tt := range []struct{ from, want string }{
		{"/?to=/b", "the page"},
		{"/?to=https://www.example.com/b", "the page"},
		{"/?to=http://example.com/b", "the page"},
		{"/?to=https://other.example/b", "=> https://other.example/b"},
		{"/?to=https://a.example.com/b", "=> https://a.example.com/b"},
		{"/?to=http://169.254.169.254/latest", "=> http://169.254.169.254/latest"},
		{"/?to=//other.example/", "=> https://other.example/"},
		{"/?to=https://example.com:9999/", "=> https://example.com:9999/"},
		{"/?to=file:///etc/passwd", "not fetched"},
		{"/?to=javascript:alert(1)", "not fetched"},
		{"/?to=https://u:p@example.com/", "not fetched"},
		{"https://denied.example/?to=https://www.denied.example/b", "denied by a rule"},
		{"https://asked.example/?to=https://www.asked.example/b", "=> https://www.asked.example/b"},
		{"/?to=" + url.QueryEscape("/?to="+url.QueryEscape("https://www.example.com/?to="+url.QueryEscape("http://10.0.0.1/"))), "=> http://10.0.0.1/"},
	} {
		if strings.HasPrefix(tt.from, "/") {
			tt.from = "https://example.com" + tt.from
		}
		resp, err := w.fetch(t, p, tt.from)
		got := fmt.Sprint(err)
		if err == nil && resp.Redirect != nil {
			got = "=> " + resp.Redirect.String()
		} else if err == nil {
			got = string(resp.Body)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.from, got, tt.want)
		}
	}
	if slices.ContainsFunc(hits, func(h string) bool {
		return strings.HasPrefix(h, "www.denied") || strings.HasPrefix(h, "www.asked") || strings.HasPrefix(h, "other")
	}) {
		t.Errorf("fetched: %v", hits)
	}
	loop := newWorld(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	if _, err := loop.fetch(t, p, "https://example.com"); err == nil || len(loop.dialed) != maxRedirects+1 {
		t.Errorf("a loop: %v, after %d requests", err, len(loop.dialed))
	}
}
