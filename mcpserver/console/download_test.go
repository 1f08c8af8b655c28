package console

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

//go:embed testdata/webfetch.md
var webFetchDoc string

type webFetchInput struct {
	URL string `json:"url" jsonschema:"the address to fetch"`
}

// webFetch is a tool with an effect that no other tool has.
var webFetch = builtin.Tool[webFetchInput]{
	Name:       "WebFetch",
	Title:      "Fetch a URL",
	Brief:      "fetch a URL",
	Doc:        webFetchDoc,
	Hints:      builtin.Hints{ReadOnly: true},
	Permission: guard.ToRead,
	Limit:      10_000,
	Plan: func(_ context.Context, _ *builtin.Env, in webFetchInput) (builtin.Plan, error) {
		return builtin.Plan{
			Intent: guard.Intent{Effects: []guard.Effect{fetch{in.URL}}},
			Run: func(ctx context.Context) (builtin.Result, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
				if err != nil {
					return builtin.Result{}, fmt.Errorf("url: expected an address, got %q: %w", in.URL, err)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return builtin.Result{}, err
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
				return builtin.Result{Text: string(text)}, err
			},
		}, nil
	},
}
