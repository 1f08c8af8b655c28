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

//go:embed testdata/download.md
var downloadDoc string

type downloadInput struct {
	URL string `json:"url" jsonschema:"the address to fetch"`
}

// download is a tool with an effect that no other tool has.
var download = builtin.Tool[downloadInput]{
	Name:       "Download",
	Title:      "Download a URL",
	Brief:      "fetch a URL",
	Doc:        downloadDoc,
	Hints:      builtin.Hints{ReadOnly: true},
	Permission: guard.ToRead,
	Limit:      10_000,
	Plan: func(_ context.Context, _ *builtin.Env, in downloadInput) (builtin.Plan, error) {
		return builtin.Plan{
			Intent: guard.Intent{Effects: []guard.Effect{downloading{in.URL}}},
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
