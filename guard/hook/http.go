package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/settings"
)

// post sends the event to an HTTP hook and reads its answer.
func (r *Runner) post(ctx context.Context, h settings.Hook, event string, body []byte) (response, error) {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return response{}, errors.New("its url is not a complete http or https address")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return response{}, errors.New("its url is not a complete http or https address")
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range h.Headers {
		value = expand(value, h.AllowedEnvVars, r.env)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return response{}, withoutURL(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxOutput+1))
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return response{}, fmt.Errorf("it answered %s; redirects are not followed", res.Status)
	case res.StatusCode < 200 || res.StatusCode > 299:
		return response{}, fmt.Errorf("it answered %s%s", res.Status, headersHint(h))
	case err != nil:
		return response{}, fmt.Errorf("its answer broke off: %w", withoutURL(err))
	case len(text) > maxOutput:
		return response{}, errTooLong
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
		return response{}, errors.New("it answered with a page (HTML or XML), as a proxy or login does, not as a hook")
	}
	return parse(event, text)
}

// headersHint says which variables were left out of the headers of a hook that was
// refused.
func headersHint(h settings.Hook) string {
	for name, value := range h.Headers {
		for _, ref := range references.FindAllString(value, -1) {
			if variable := strings.Trim(ref, "${}"); !slices.Contains(h.AllowedEnvVars, variable) {
				return fmt.Sprintf(" (%s in the header %s was left out: allowedEnvVars does not name it)",
					variable, name)
			}
		}
	}
	return ""
}

// withoutURL drops the address from an error: its query may hold a secret.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return fmt.Errorf("it could not be reached: %w", e.Err)
	}
	return err
}

// bareURL is an address without user and query.
func bareURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
