// Package kube speaks to the API server of a Kubernetes cluster as kubectl would: with the configuration of kubectl, or
// with the account of the pod that this program runs in. It has what toolhost needs: objects as JSON, a watch, and a
// command in a pod.
//
// Its Go API is not stable.
package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// answerTime is how long the API server may take to begin an answer.
	answerTime = 15 * time.Second
	// maxAnswer bounds one answer, in bytes.
	maxAnswer = 32 << 20
)

// A Client speaks to one API server.
type Client struct {
	server string // without a slash at its end
	login  *login
	web    *http.Transport
	plain  *http.Transport // of HTTP/1.1, which a connection that is upgraded needs
}

// A StatusError is an answer of the API server that is an error.
type StatusError struct {
	Code    int    // of HTTP
	Reason  string `json:"reason"` // in one word, such as AlreadyExists
	Message string `json:"message"`
}

func (e *StatusError) Error() string {
	text := strings.TrimSpace(e.Message)
	if text == "" {
		text = http.StatusText(e.Code)
	}
	switch e.Code {
	case http.StatusUnauthorized:
		return "the API server does not know these credentials, which may have expired: " +
			"log in again, and check with: kubectl auth whoami"
	case http.StatusForbidden:
		return "the API server forbids it: " + text
	}
	return fmt.Sprintf("the API server answers %d: %s", e.Code, text)
}

// Is reports whether an error is an answer with a code of HTTP.
func Is(err error, code int) bool {
	status, ok := errors.AsType[*StatusError](err)
	return ok && status.Code == code
}

// Denied reports whether an error stays until somebody changes rights or credentials.
func Denied(err error) bool {
	return Is(err, http.StatusUnauthorized) || Is(err, http.StatusForbidden)
}

// A Request is one call of the API. In is sent as JSON if it is not nil; PATCH merges it into the object.
type Request struct {
	Method, Path string
	Query        url.Values
	Accept       string // of the answer; empty: JSON
	In           any
}

// Do makes a request and decodes the answer into out, unless that is nil.
func (c *Client) Do(ctx context.Context, r Request, out any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime,
		fmt.Errorf("%s did not answer in %s", c.server, answerTime))
	defer cancel()
	response, err := c.send(ctx, c.web, r, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// Each is called for each object that exists or has changed, and with gone set for each one that was deleted. It ends
// the watch by returning done or an error.
type Each func(object json.RawMessage, gone bool) (done bool, err error)

// Watch passes the objects that a query selects to each.
func (c *Client) Watch(ctx context.Context, path string, query url.Values, each Each) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query.Set("watch", "true")
	for {
		done, err := c.watch(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, each)
		if done || err != nil {
			return err
		}
	}
}

// watch is one connection of Watch; the server ends it from time to time.
func (c *Client) watch(ctx context.Context, r Request, each Each) (done bool, err error) {
	response, err := c.send(ctx, c.web, r, nil)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	for events := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := events.Decode(&event); err != nil {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			return false, nil
		}
		if event.Type == "ERROR" {
			status := &StatusError{}
			err := json.Unmarshal(event.Object, status)
			return false, errors.Join(err, status)
		}
		if done, err := each(event.Object, event.Type == "DELETED"); done || err != nil {
			return done, err
		}
	}
}

// send sends a request, and once more with new credentials if the server refuses the old ones. An answer other than a
// success is an error.
func (c *Client) send(
	ctx context.Context, transport *http.Transport, r Request, header http.Header,
) (*http.Response, error) {
	body, err := json.Marshal(r.In)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		request, err := http.NewRequestWithContext(ctx, r.Method, c.server+r.Path+"?"+r.Query.Encode(), nil)
		if err != nil {
			return nil, err
		}
		if r.In != nil {
			request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			request.Header.Set("Content-Type", "application/json")
			if r.Method == http.MethodPatch {
				request.Header.Set("Content-Type", "application/merge-patch+json")
			}
		}
		request.Header.Set("Accept", "application/json")
		if r.Accept != "" {
			request.Header.Set("Accept", r.Accept)
		}
		for name, values := range header {
			request.Header[name] = values
		}
		if err := c.login.sign(request, again); err != nil {
			return nil, err
		}
		response, err := transport.RoundTrip(request)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, fmt.Errorf("no API server answers at %s: %w", c.server, err)
		case response.StatusCode < 300:
			return response, nil
		}
		status := &StatusError{Code: response.StatusCode}
		raw, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // an error here only shortens the message
		response.Body.Close()
		if json.Unmarshal(raw, status) != nil || status.Message == "" {
			status.Message = string(raw)
		}
		status.Code = response.StatusCode
		if again || status.Code != http.StatusUnauthorized || !c.login.renews() {
			return nil, status
		}
	}
}

// Close closes the connections that nothing uses.
func (c *Client) Close() {
	c.web.CloseIdleConnections()
	c.plain.CloseIdleConnections()
}
