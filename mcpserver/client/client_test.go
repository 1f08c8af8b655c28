package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a server does wrong is in the error; demo, doctor and install meet servers that work.
func TestGreetFails(t *testing.T) {
	const era = "2026-07-28"
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"no such token": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"does not know the token"},
		"no server of MCP": {http.NotFound, "initialize: "},
	} {
		server := httptest.NewServer(tt.answer)
		c, err := NewHTTP(server.URL, "token", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Greet(t.Context(), era, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
	_, in := io.Pipe()
	c := New(strings.NewReader("no message\n"), in)
	in.Close()
	if err := c.Greet(t.Context(), era, nil); err == nil {
		t.Error("a server that has ended was greeted")
	}
}
