package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/web"
	"github.com/toolhost/toolhost/guard"
)

// Limits of a WebSearch.
const (
	// searchResults is the default number of results.
	searchResults = 10
	// maxSearchQuery is the longest query, in bytes.
	maxSearchQuery = 1000
)

// webSearchInput is the input of [webSearchTool].
type webSearchInput struct {
	Query   string   `json:"query" jsonschema:"what to search for"`
	Allowed []string `json:"allowed_domains,omitempty" jsonschema:"show results of these domains alone"`
	Blocked []string `json:"blocked_domains,omitempty" jsonschema:"show no results of these domains"`
	Max     int      `json:"max_results,omitempty" jsonschema:"how many results to show, 20 at most (default: 10)"`
}

// webSearchOutput is the structured output of a [webSearchTool].
type webSearchOutput struct {
	Provider string       `json:"provider"`
	Results  []web.Result `json:"results"`
	Cached   bool         `json:"cached"`
}

// webSearchTool searches the web with a provider of the settings.
var webSearchTool = declare(Tool[webSearchInput]{
	Name:            "WebSearch",
	Title:           "Search the web",
	Brief:           "web search",
	Hints:           Hints{ReadOnly: true},
	Limit:           webLimit,
	ConcurrencySafe: always[webSearchInput],
	Configured:      func(p *guard.Policy) bool { return len(p.Web().Search()) > 0 },
	Refine: func(s *jsonschema.Schema) {
		s.Properties["max_results"].Minimum, s.Properties["max_results"].Maximum = jsonschema.Ptr(0.0),
			jsonschema.Ptr(float64(web.MaxResults))
		for _, name := range []string{"allowed_domains", "blocked_domains"} {
			s.Properties[name].Type, s.Properties[name].Types = "array", nil
		}
	},
	Plan: func(_ context.Context, env *Env, in webSearchInput) (Plan, error) {
		in.Query = strings.Join(strings.Fields(in.Query), " ")
		switch {
		case len(env.Policy.Web().Search()) == 0:
			return Plan{}, errors.New(`there is no provider for searches: a person sets web.search in the user settings, such ` +
				`as {"provider": "searxng", "url": "http://localhost:8888"}`)
		case in.Query == "":
			return Plan{}, errors.New("query: expected words to search for, got none")
		case len(in.Query) > maxSearchQuery:
			return Plan{}, fmt.Errorf("query: expected at most %d bytes, got %d", maxSearchQuery, len(in.Query))
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Fetch{Query: in.Query}}},
			Run:    func(ctx context.Context) (Result, error) { return webSearch(ctx, env, in) },
		}, nil
	},
})

func webSearch(ctx context.Context, env *Env, in webSearchInput) (Result, error) {
	settings := env.Policy.Web()
	if in.Max == 0 {
		in.Max = searchResults
	}
	q := web.Query{Query: in.Query, Allowed: in.Allowed, Blocked: in.Blocked, Max: in.Max}
	found, err := env.Runtime.web.Search(ctx, web.Caller{
		Principal: env.Principal, Agent: settings.UserAgent(),
		Keep: func(u *url.URL) bool { return !deniedHost(env.Policy, u) }, MayRun: env.Policy.Commands().MaySearch,
	}, settings.Search(), q)
	if err != nil {
		return Result{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %s.\n", count(len(found.Results), "result"), found.Provider)
	if len(found.Results) > 0 {
		b.WriteString(contentMark)
	}
	for i, r := range found.Results {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, r.Title, r.URL)
		if text := strings.TrimSpace(r.Snippet + " (" + r.Date + ")"); r.Date != "" {
			fmt.Fprintf(&b, "   %s\n", text)
		} else if r.Snippet != "" {
			fmt.Fprintf(&b, "   %s\n", r.Snippet)
		}
	}
	text := b.String()
	kinds := env.maskSecrets(&text)
	return Result{
		Text: text + env.secretsNote(kinds), Structured: webSearchOutput{Provider: found.Provider, Results: found.Results,
			Cached: found.Cached},
		Summary: fmt.Sprintf("%s: %s", found.Provider, count(len(found.Results), "result")),
	}, nil
}

// deniedHost reports whether a rule or setting denies the host of a URL.
func deniedHost(policy *guard.Policy, u *url.URL) bool {
	f, err := guard.FetchOf(u)
	if err != nil {
		return true
	}
	v := policy.Judge(guard.Intent{Tool: "WebFetch", Effects: []guard.Effect{f}})
	return slices.ContainsFunc(v.Parts,
		func(p guard.Part) bool { return p.Action == guard.Deny && strings.HasPrefix(p.What, "fetch ") })
}
