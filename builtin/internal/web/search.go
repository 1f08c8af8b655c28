package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/guard/hostprogram"
)

// Limits of a search.
const (
	// SearchTimeout bounds a search by all providers together.
	SearchTimeout = 15 * time.Second
	// MaxResults is how many results a search gives at most.
	MaxResults = 20
	// maxSnippet is the longest snippet, in characters.
	maxSnippet = 300
	// maxFound bounds the answer of a provider, in bytes.
	maxFound = 2 << 20
	// braveAPI is the address of Brave's API.
	braveAPI = "https://api.search.brave.com/res/v1/web/search"
)

// A Provider answers searches: one entry of the setting web.search.
type Provider struct {
	Provider string `json:"provider"`
	URL      string `json:"url"`
	KeyFile  string `json:"keyFile"`
	KeyEnv   string `json:"keyEnv"`
	Command  string `json:"command"`
}

// A Query is one search. It is what a command gets on its standard input.
type Query struct {
	Query   string   `json:"query"`
	Allowed []string `json:"allowed_domains,omitempty"`
	Blocked []string `json:"blocked_domains,omitempty"`
	Max     int      `json:"max_results"`
}

// A Result is a page that was found.
type Result struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
	Date    string `json:"date,omitempty"`
}

// Found is the answer to a search.
type Found struct {
	// Provider is the name of the provider that answered.
	Provider string
	Results  []Result
	Cached   bool
}

// A Caller is the one who searches, with the decisions made for it.
type Caller struct {
	Principal string
	Agent     string                     // what the client calls itself to servers; "" for its own name
	Keep      func(*url.URL) bool        // reports whether a result may be shown
	MayRun    func(command string) error // returns an error if a command must not run
}

// Search asks the providers in order until one answers. Results that caller.Keep does not accept are left out.
func (c *Client) Search(ctx context.Context, caller Caller, entries []string, q Query) (*Found, error) {
	ctx, cancel := context.WithTimeout(ctx, SearchTimeout)
	defer cancel()
	var failed []error
	for i, entry := range entries {
		var p Provider
		source := json.NewDecoder(strings.NewReader(entry))
		source.DisallowUnknownFields()
		if err := source.Decode(&p); err != nil {
			failed = append(failed, fmt.Errorf("entry %d of web.search cannot be read: %w", i+1, err))
			continue
		}
		found, cached, err := c.ask(ctx, caller, p, q)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.Provider, err))
			continue
		}
		return &Found{Provider: p.Provider, Results: q.choose(found, caller.Keep), Cached: cached}, nil
	}
	return nil, fmt.Errorf("the search failed: %w", errors.Join(failed...))
}

// ask returns results of one provider, or from the caller's cache.
func (c *Client) ask(ctx context.Context, caller Caller, p Provider, q Query) (found []Result, cached bool, err error) {
	key, err := json.Marshal([]any{p, q})
	if err != nil {
		return nil, false, err
	}
	if kept := c.cache.get(caller.Principal, string(key)); kept != nil && json.Unmarshal(kept.Body, &found) == nil {
		return found, true, nil
	}
	if err := c.searches.Wait(ctx); err != nil {
		return nil, false, fmt.Errorf("one search a second is made, and too many wait already: %w", err)
	}
	agent := cmp.Or(caller.Agent, c.agent)
	switch p.Provider {
	case "searxng":
		found, err = p.searxng(ctx, agent, q)
	case "brave":
		found, err = p.brave(ctx, agent, q)
	case "command":
		if err = caller.MayRun(p.Command); err == nil {
			found, err = p.command(ctx, q)
		}
	default:
		err = fmt.Errorf("no provider of this name is known; web.search takes searxng, brave and command")
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v", SearchTimeout)
	}
	if err != nil {
		return nil, false, err
	}
	if body, err := json.Marshal(found); err == nil {
		c.cache.put(caller.Principal, string(key), &Response{Body: body})
	}
	return found, false, nil
}

// choose returns the wanted results in order, in the form in which they are shown.
func (q Query) choose(found []Result, keep func(*url.URL) bool) []Result {
	chosen := []Result{}
	for _, r := range found {
		u, err := url.Parse(strings.TrimSpace(r.URL))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil ||
			len(chosen) >= q.Max || !keep(u) ||
			len(q.Allowed) > 0 && !inDomains(u, q.Allowed) || inDomains(u, q.Blocked) {
			continue
		}
		r.URL = u.String()
		r.Title, r.Date = withoutImages(oneLine(r.Title)), oneLine(r.Date)
		if r.Snippet = withoutImages(oneLine(tokenText(r.Snippet))); r.Title == "" {
			r.Title = u.Hostname()
		}
		if s := []rune(r.Snippet); len(s) > maxSnippet {
			r.Snippet = string(s[:maxSnippet-1]) + "…"
		}
		chosen = append(chosen, r)
	}
	return chosen
}

// inDomains reports whether the host of a URL is one of the domains or below one.
func inDomains(u *url.URL, domains []string) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, d := range domains {
		d = strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(strings.TrimSpace(d)), "."), "*.")
		if d != "" && (host == d || strings.HasSuffix(host, "."+d)) {
			return true
		}
	}
	return false
}

// words returns the words of the search. If only one domain is allowed, they include it.
func (q Query) words() string {
	if len(q.Allowed) == 1 {
		return q.Query + " site:" + strings.TrimPrefix(strings.TrimSpace(q.Allowed[0]), "*.")
	}
	return q.Query
}

func (p Provider) searxng(ctx context.Context, agent string, q Query) ([]Result, error) {
	at, err := url.Parse(p.URL)
	if err != nil || at.Host == "" {
		return nil, errors.New(`its entry in web.search needs a url, such as "http://localhost:8888"`)
	}
	if !strings.HasSuffix(at.Path, "/search") {
		at = at.JoinPath("search")
	}
	at.RawQuery = url.Values{"q": {q.words()}, "format": {"json"}}.Encode()
	var answer struct {
		Results []struct{ Title, URL, Content, PublishedDate string }
	}
	status, err := getJSON(ctx, at, agent, nil, &answer)
	if status == http.StatusForbidden {
		return nil, errors.New("it answered 403: JSON is not turned on there; add json to search.formats in its settings.yml")
	}
	var found []Result
	for _, r := range answer.Results {
		found = append(found, Result{r.Title, r.URL, r.Content, r.PublishedDate})
	}
	return found, err
}

func (p Provider) brave(ctx context.Context, agent string, q Query) ([]Result, error) {
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(cmp.Or(p.URL, braveAPI))
	if err != nil {
		return nil, errors.New("web.search has an invalid url: use an http or https URL")
	}
	at.RawQuery = url.Values{"q": {q.words()}, "count": {strconv.Itoa(MaxResults)}}.Encode()
	var answer struct {
		Web struct {
			Results []struct {
				Title, URL, Description string
				Age                     string
				PageAge                 string `json:"page_age"`
			}
		}
	}
	status, err := getJSON(ctx, at, agent, http.Header{"X-Subscription-Token": {key}}, &answer)
	if status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusUnprocessableEntity {
		return nil, fmt.Errorf("it answered %d: it does not take the key", status)
	}
	var found []Result
	for _, r := range answer.Web.Results {
		found = append(found, Result{r.Title, r.URL, r.Description, cmp.Or(r.PageAge, r.Age)})
	}
	return found, err
}

// key returns the key of the provider. It is read each time, and no error contains it.
func (p Provider) key() (string, error) {
	key := os.Getenv(p.KeyEnv)
	if p.KeyFile != "" {
		name := p.KeyFile
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			name = filepath.Join(home, rest)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("its key cannot be read: %w", err)
		}
		key = string(content)
	}
	if key = strings.TrimSpace(key); key == "" || strings.ContainsAny(key, "\r\n") {
		return "", errors.New("there is no key: its entry in web.search needs a keyFile, or a keyEnv that is set where the " +
			"host runs")
	}
	return key, nil
}

// getJSON fetches JSON from a provider that the user has configured. It does not follow redirects.
func getJSON(ctx context.Context, at *url.URL, agent string, header http.Header, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", agent)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // the URL has the query
			err = e.Err
		}
		return 0, fmt.Errorf("%s does not answer: %w", at.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, fmt.Errorf("%s answered %d", at.Host, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFound+1))
	if err != nil {
		return resp.StatusCode, err
	}
	if len(body) > maxFound || json.Unmarshal(body, into) != nil {
		return resp.StatusCode, fmt.Errorf("%s did not answer with JSON of at most %d MiB (%.60q)", at.Host,
			maxFound>>20, resp.Header.Get("Content-Type"))
	}
	return resp.StatusCode, nil
}

// command runs a program of the user. It gets the query as JSON and prints {"results": […]} or only the list.
func (p Provider) command(ctx context.Context, q Query) ([]Result, error) {
	if strings.TrimSpace(p.Command) == "" {
		return nil, errors.New("its entry in web.search needs a command")
	}
	input, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	output, err := run(ctx, p.Command, input)
	if err != nil {
		return nil, err
	}
	var answer struct{ Results []Result }
	if json.Unmarshal(output, &answer.Results) != nil && json.Unmarshal(output, &answer) != nil {
		return nil, errors.New(`it did not print JSON of the form {"results": [{"title", "url", "snippet", "date"}]}`)
	}
	return answer.Results, nil
}

// run runs a command of the user with an input and returns its output. It ends all descendants of the command.
func run(ctx context.Context, command string, input []byte) ([]byte, error) {
	files := make([]*os.File, 4) // its input and output, and our ends of them
	defer func() {
		for _, f := range files {
			f.Close() // a nil file only returns an error
		}
	}()
	var err error
	if files[0], files[2], err = os.Pipe(); err == nil {
		files[3], files[1], err = os.Pipe()
	}
	if err != nil {
		return nil, err
	}
	void, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer void.Close()
	shell, err := hostprogram.Find("sh")
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	process, err := supervise.Start(supervise.Spec{Argv: []string{shell, "-c", command}, Dir: home,
		Env: hostprogram.Clean(os.Environ()), Files: []*os.File{files[0], files[1], void}})
	if err != nil {
		return nil, fmt.Errorf("it could not be started: %w", err)
	}
	files[0].Close()
	files[1].Close()
	go func() {
		files[2].Write(input) // the command need not read it, so an error does not matter
		files[2].Close()
	}()
	type said struct {
		output []byte
		err    error
	}
	read := make(chan said, 1)
	go func() {
		output, err := io.ReadAll(io.LimitReader(files[3], maxFound))
		read <- said{output, err}
	}()
	var got said
	select {
	case got = <-read:
	case <-ctx.Done():
		got.err = ctx.Err()
	}
	var status supervise.Status
	if got.err == nil {
		select {
		case <-process.Done():
		case <-ctx.Done():
			got.err = ctx.Err()
		}
	}
	_, killErr := process.Kill()
	status, err = process.Wait()
	if err = errors.Join(got.err, err, killErr); err != nil {
		return nil, err
	}
	if status.ExitCode != 0 {
		return nil, fmt.Errorf("it ended with exit code %d", status.ExitCode)
	}
	return bytes.TrimSpace(got.output), nil
}
