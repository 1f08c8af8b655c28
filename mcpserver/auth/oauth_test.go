package auth

import (
	"strings"
	"testing"
)

// An oauthCase is a token and what becomes of it.
type oauthCase struct {
	name, token string
	want        Rights
	kind        kind // of the refusal
}

func TestOAuth(t *testing.T) {
	i := newIssuer(t)
	for _, tt := range i.tokens(t) {
		t.Run(tt.name, func(t *testing.T) {
			o := i.verifier("")
			who, err := o.Verify(t.Context(), tt.token)
			switch {
			case tt.want != 0 && (err != nil || who.Rights != tt.want || who.Principal != "oauth:"+testIssuer+" alice"):
				t.Errorf("got %+v, %v", who, err)
			case tt.want == 0 && kindOf(err) != int(tt.kind):
				t.Errorf("got %+v, %v, want a refusal of the kind %d", who, err, tt.kind)
			}
			if err != nil && tt.token != "" && strings.Contains(err.Error(), tt.token) {
				t.Errorf("the refusal repeats the token: %v", err)
			}
		})
	}
}

func TestScopePrefix(t *testing.T) {
	i := newIssuer(t)
	o := i.verifier("toolhost:")
	if who, err := o.Verify(t.Context(), i.token(nil, map[string]any{"scope": "toolhost:read write toolhost:"})); err != nil || who.Rights != Read {
		t.Errorf("got %+v, %v", who, err)
	}
	_, err := o.Verify(t.Context(), i.token(nil, map[string]any{"scope": "read write exec"}))
	if kindOf(err) != int(Insufficient) || !strings.Contains(Challenge(err, ""), `scope="toolhost:read toolhost:write toolhost:exec"`) {
		t.Errorf("scopes without the prefix: %v, %s", err, Challenge(err, ""))
	}
}

func TestOAuthConfig(t *testing.T) {
	tests := []struct {
		cfg OAuthConfig
		ok  bool
	}{
		{OAuthConfig{Issuer: testIssuer, Audience: "a"}, true},
		{OAuthConfig{Issuer: "http://127.0.0.1:1", Audience: "a"}, true},
		{OAuthConfig{Issuer: "http://login.example.com", Audience: "a"}, false},
		{OAuthConfig{Issuer: "http://localhost.evil.example", Audience: "a"}, false},
		{OAuthConfig{Issuer: "login.example.com", Audience: "a"}, false},
		{OAuthConfig{Issuer: "https://u@login.example.com", Audience: "a"}, false},
		{OAuthConfig{Issuer: "https://login.example.com?x", Audience: "a"}, false},
		{OAuthConfig{Issuer: "https://login.example.com/a b", Audience: "a"}, false},
		{OAuthConfig{Issuer: testIssuer}, false},
		{OAuthConfig{Audience: "a"}, false},
		{OAuthConfig{Issuer: testIssuer, Audience: "a", ScopePrefix: "a b"}, false},
	}
	for _, tt := range tests {
		if _, err := NewOAuth(tt.cfg); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.cfg, err)
		}
	}
}
