package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/time/rate"
)

// TestSearch asks each kind of provider, good and bad ones.
func TestSearch(t *testing.T) {
	const secret = "the-secret-key"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case strings.HasPrefix(r.URL.Path, "/good/") && q.Get("format") == "json":
			fmt.Fprintf(w, `{"results":[{"title":"One <b>&\u200b","url":"https://one.example/a","content":"about <b>%s</b> %s","publishedDate":"2026-01-02"},
				{"title":"","url":"https://sub.two.example/","content":""},{"title":"Script","url":"javascript:alert(1)"},{"title":"Cred","url":"https://u:p@x.example/"},
				{"title":"Denied","url":"https://denied.example/"},{"title":"Three","url":"http://three.example/"}]}`, q.Get("q"), strings.Repeat("long ", 100))
		case strings.HasPrefix(r.URL.Path, "/html/"):
			fmt.Fprint(w, "<html>not json</html>")
		case strings.HasPrefix(r.URL.Path, "/huge/"):
			w.Write(make([]byte, maxFound+10))
		case strings.HasPrefix(r.URL.Path, "/away/"):
			http.Redirect(w, r, "/good/search?format=json", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/403/"):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/brave":
			if r.Header.Get("X-Subscription-Token") != secret {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			fmt.Fprint(w, `{"web":{"results":[{"title":"Brave one","url":"https://one.example/","description":"a <strong>b</strong>","age":"2 days ago"}]}}`)
		}
	}))
	defer server.Close()
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_SEARCH_KEY", secret)
	t.Setenv("TEST_WRONG_KEY", "wrong")
	searxng := func(path string) string {
		return fmt.Sprintf(`{"provider":"searxng","url":"%s/%s"}`, server.URL, path)
	}
	brave := func(key string) string {
		return fmt.Sprintf(`{"provider":"brave","url":"%s/brave",%s}`, server.URL, key)
	}
	command := func(text string) string { return fmt.Sprintf(`{"provider":"command","command":%q}`, text) }
	for name, tt := range map[string]struct {
		entries []string
		query   Query
		want    string // titles, or a part of the error
	}{
		"searxng":           {[]string{searxng("good")}, Query{}, "searxng: One <b>&|sub.two.example|Three"},
		"at most":           {[]string{searxng("good")}, Query{Max: 1}, "searxng: One <b>&"},
		"allowed":           {[]string{searxng("good")}, Query{Allowed: []string{"TWO.example", "three.example."}}, "searxng: sub.two.example|Three"},
		"blocked":           {[]string{searxng("good")}, Query{Blocked: []string{"*.two.example", "one.example"}}, "searxng: Three"},
		"403":               {[]string{searxng("403")}, Query{}, "search.formats"},
		"html":              {[]string{searxng("html")}, Query{}, "did not answer with JSON"},
		"huge":              {[]string{searxng("huge")}, Query{}, "did not answer with JSON"},
		"redirect":          {[]string{searxng("away")}, Query{}, "answered 302"},
		"down":              {[]string{`{"provider":"searxng","url":"http://127.0.0.1:1"}`}, Query{}, "does not answer"},
		"no url":            {[]string{`{"provider":"searxng"}`}, Query{}, "needs a url"},
		"next":              {[]string{searxng("403"), searxng("html"), brave(`"keyEnv":"TEST_SEARCH_KEY"`)}, Query{}, "brave: Brave one"},
		"brave by file":     {[]string{brave(fmt.Sprintf(`"keyFile":%q`, keyFile))}, Query{}, "brave: Brave one"},
		"brave without key": {[]string{brave(`"keyEnv":"TEST_NO_SUCH_KEY"`)}, Query{}, "there is no key"},
		"brave wrong key":   {[]string{brave(`"keyEnv":"TEST_WRONG_KEY"`)}, Query{}, "does not take the key"},
		"brave no file":     {[]string{brave(`"keyFile":"/no/such/file"`)}, Query{}, "cannot be read"},
		"unknown provider":  {[]string{`{"provider":"altavista"}`}, Query{}, "takes searxng, brave and command"},
		"unknown field":     {[]string{`{"provider":"brave","apiKey":"x"}`}, Query{}, "cannot be read"},
		"command":           {[]string{command(`grep -q '"query":"words"' && echo '{"results":[{"title":"C","url":"https://c.example/"}]}'`)}, Query{}, "command: C"},
		"command list":      {[]string{command(`echo '[{"title":"C","url":"https://c.example/"}]'`)}, Query{}, "command: C"},
		"command nothing":   {[]string{command(`cat >/dev/null`)}, Query{}, "did not print JSON"},
		"command fails":     {[]string{command(`exit 3`)}, Query{}, "exit code 3"},
		"command empty":     {[]string{`{"provider":"command"}`}, Query{}, "needs a command"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "command") && runtime.GOOS == "windows" {
				t.Skip("there is no shell")
			}
			c := NewClient("toolhost/test")
			c.searches = rate.NewLimiter(rate.Inf, 1)
			if tt.query.Query = "words"; tt.query.Max == 0 {
				tt.query.Max = 10
			}
			caller := Caller{
				Principal: "a", MayRun: func(string) error { return nil },
				Keep: func(u *url.URL) bool { return u.Hostname() != "denied.example" },
			}
			found, err := c.Search(t.Context(), caller, tt.entries, tt.query)
			got := fmt.Sprint(err)
			if err == nil {
				var titles []string
				for _, r := range found.Results {
					titles = append(titles, r.Title)
					if len([]rune(r.Snippet)) > maxSnippet || strings.Contains(r.Snippet, "<") {
						t.Errorf("snippet %q", r.Snippet)
					}
				}
				got = found.Provider + ": " + strings.Join(titles, "|")
				if again, err := c.Search(t.Context(), caller, tt.entries, tt.query); err != nil || !again.Cached {
					t.Errorf("again: %v, %+v", err, again)
				}
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(got, secret) || strings.Contains(got, "wrong") && !strings.Contains(tt.want, "wrong") {
				t.Errorf("the key is shown: %q", got)
			}
		})
	}
}
