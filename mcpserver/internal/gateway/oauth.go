package gateway

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

	"github.com/mark3labs/mcp-go/client/transport"
)

// Paths of metadata that the path of the server may follow: of the protected resource (RFC 9728), and of the
// authorization server of a server of 2025-03-26, which has it at its origin alone.
const (
	protectedMetadata = "/.well-known/oauth-protected-resource"
	serverMetadata    = "/.well-known/oauth-authorization-server"
)

// facts are members of the metadata of an authorization server, which the library ignores.
type facts struct {
	Issuer string `json:"issuer"`
	Named  bool   `json:"authorization_response_iss_parameter_supported"` // in its responses (RFC 9207)
	// Pages says that the server reads the page that a client ID is the address of.
	Pages  bool     `json:"client_id_metadata_document_supported"`
	Proofs []string `json:"dpop_signing_alg_values_supported"` // algorithms, see proofs
}

// An oauthTransport limits the responses of authorization servers. It also sets the application type, tries the
// metadata path without the path of the server, and reads metadata that the library ignores.
type oauthTransport struct {
	http.RoundTripper
	login *login
}

// RoundTrip implements [http.RoundTripper].
func (t oauthTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json" {
		r = r.Clone(r.Context())
		if err := registerNative(r); err != nil {
			return nil, err
		}
	}
	t.login.fault.Store(nil)
	resp, err := t.RoundTripper.RoundTrip(r)
	if whole := t.atOrigin(r.URL); err == nil && resp.StatusCode == http.StatusNotFound && whole != "" {
		resp.Body.Close()
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = whole, ""
		resp, err = t.RoundTripper.RoundTrip(r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(r.URL), err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLogin))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(r.URL), err)
	}
	if r.Method == http.MethodGet {
		t.login.fault.Store(metadataFault(r.URL, resp.StatusCode, text))
	}
	var metadata struct {
		facts
		// In the metadata of the server itself, which has no issuer:
		Resource string
		Scopes   []string `json:"scopes_supported"`
	}
	if json.Unmarshal(text, &metadata) == nil && metadata.Issuer != "" {
		t.login.facts.Store(&metadata.facts)
	} else if metadata.Resource != "" {
		t.login.supported.Store(&metadata.Scopes)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

// place returns the part of an address that errors name: the path of a server may contain a key.
func place(u *url.URL) string {
	origin := u.Scheme + "://" + u.Host
	_, metadata, found := strings.Cut(u.Path, "/.well-known/")
	if !found {
		return origin
	}
	name, _, _ := strings.Cut(metadata, "/")
	return origin + "/.well-known/" + name
}

// metadataFault returns what is wrong with the response to a request for metadata, or nil.
func metadataFault(u *url.URL, status int, text []byte) *string {
	fault := ""
	switch {
	case status >= http.StatusBadRequest:
		fault = fmt.Sprintf("%s answers with HTTP %d", place(u), status)
	case status == http.StatusOK && (json.Unmarshal(text, &transport.OAuthProtectedResource{}) != nil ||
		json.Unmarshal(text, &transport.AuthServerMetadata{}) != nil):
		fault = place(u) + " answers with something other than metadata in JSON"
	default: // usable, or a redirect
		return nil
	}
	return &fault
}

// metadata returns the metadata of the authorization server, which it has checked.
func (l *login) metadata(ctx context.Context, h *transport.OAuthHandler) (*transport.AuthServerMetadata, error) {
	m, err := h.GetServerMetadata(ctx)
	if err == nil {
		return m, l.checkMetadata(ctx, m)
	}
	if fault := l.fault.Load(); fault != nil { // the library tells a decoder's error
		err = errors.New(*fault)
	}
	return nil, fmt.Errorf("its OAuth metadata cannot be used: %w: check its url, or report this to those who run it",
		withoutURL(err))
}

// atOrigin returns the path of metadata without the path of the server, or "" if the path has none.
func (t oauthTransport) atOrigin(u *url.URL) string {
	if strings.HasPrefix(u.Path, protectedMetadata+"/") {
		return protectedMetadata
	}
	server, _ := url.Parse(t.login.entry.URL) // expanded has checked it
	if server.Path != "" && server.Host == u.Host && u.Path == serverMetadata+strings.TrimSuffix(server.Path, "/") {
		return serverMetadata
	}
	return ""
}

// registerNative sets the application type of a registration to "native", as MCP requires (SEP-837). An authorization
// server may refuse loopback redirects of other types.
func registerNative(r *http.Request) error {
	defer r.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	body["application_type"] = "native"
	text := marshal(body)
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
	return nil
}
