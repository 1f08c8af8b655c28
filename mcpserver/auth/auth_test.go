package auth

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSent(t *testing.T) {
	tests := []struct {
		headers     []string
		want, wrong string
	}{
		{nil, "", ""}, {[]string{"Bearer abc"}, "abc", ""}, {[]string{"bearer abc"}, "abc", ""}, {[]string{"BEARER  abc "}, "abc", ""},
		{[]string{""}, "", "does not begin with"}, {[]string{"Bearer"}, "", "holds no token"}, {[]string{"Bearer "}, "", "holds no token"},
		{[]string{"Basic abc"}, "", "does not begin with"}, {[]string{"abc"}, "", "does not begin with"},
		{[]string{"Bearerabc"}, "", "does not begin with"}, {[]string{"Bearer\tabc"}, "", "does not begin with"},
		{[]string{"Bearer a b"}, "", "not one token"}, {[]string{"Bearer a,b"}, "", "not one token"}, {[]string{"Bearer a\tb"}, "", "not one token"},
		{[]string{"Bearer abc, Bearer abc"}, "", "not one token"},
		{[]string{"Bearer " + strings.Repeat("x", maxBearer+1)}, "", "longer than"},
		{[]string{"Bearer abc", "Bearer abc"}, "", "there 2 times"}, {[]string{"Bearer abc", "Basic eDp5"}, "", "there 2 times"},
	}
	for _, tt := range tests {
		got, wrong := ParseAuthorization(tt.headers)
		if got != tt.want || (wrong == "") != (tt.wrong == "") || !strings.Contains(wrong, tt.wrong) ||
			strings.Contains(wrong, "abc") {
			t.Errorf("Sent(%.40q) = %q, %q", tt.headers, got, wrong)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"Bearer abc", "bearer  x", "Basic eDp5", "Bearer a, Bearer b", "Bearer \x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got, wrong := ParseAuthorization([]string{header})
		if (got != "") == (wrong != "") || strings.ContainsAny(got, " \t\r\n,") || len(got) > maxBearer ||
			!strings.Contains(header, got) {
			t.Errorf("Sent(%q) = %q, %q", header, got, wrong)
		}
		// Whatever comes is refused by a verifier that does not know it.
		s, err := NewStaticToken("th_secret", "p")
		if err != nil {
			t.Fatal(err)
		}
		if who, err := (Any{s}).Verify(context.Background(), got); err == nil && got != "th_secret" {
			t.Errorf("%q was taken for %q", got, who.Principal)
		}
	})
}

func TestChallenge(t *testing.T) {
	const metadata = "https://h/.well-known/oauth-protected-resource/mcp"
	tests := []struct {
		name, metadata string
		err            error
		status         int
		want           string
	}{
		{"no token", "", refuse(Missing, "no"), 401, `Bearer realm="toolhost"`},
		{"no token, with an issuer", metadata, &Error{Kind: Missing, Scope: "read write"}, 401, `Bearer realm="toolhost", scope="read write", resource_metadata="` + metadata + `"`},
		{"invalid", "", refuse(Invalid, "not known"), 401, `Bearer realm="toolhost", error="invalid_token", error_description="not known"`},
		{"expired", "", refuse(expiredToken, "over"), 401, `Bearer realm="toolhost", error="invalid_token", error_description="over"`},
		{"too few rights", "", &Error{Kind: Insufficient, Reason: "none", Scope: "read"}, 403, `Bearer realm="toolhost", error="insufficient_scope", error_description="none", scope="read"`},
		{"not to be told", "", refuse(unavailable, "later"), 503, `Bearer realm="toolhost"`},
		{"another error", "", errors.New("x"), 401, `Bearer realm="toolhost"`},
		{"what a long token claims", "", refuse(Invalid, "%s", strings.Repeat("x", maxBearer)), 401, `Bearer realm="toolhost", error="invalid_token", error_description="` + strings.Repeat("x", maxDescription) + `..."`},
		{"what would end the parameter", "", refuse(Invalid, "a\"b\\c\r\nX: d\x80é"), 401, `Bearer realm="toolhost", error="invalid_token", error_description="a'b'c''X: d''"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Challenge(tt.err, tt.metadata); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := Status(tt.err); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
		})
	}
	h := http.Header{}
	h.Set("WWW-Authenticate", Challenge(refuse(Invalid, "a\nb"), "x\ny"))
	if v := h.Get("WWW-Authenticate"); strings.ContainsAny(v, "\r\n") {
		t.Errorf("a header with two lines: %q", v)
	}
}

func TestRights(t *testing.T) {
	if (Rights(0)).Has(0) || Rights(0).Has(Read) || All.Has(0) || !All.Has(Read|Exec) || Read.Has(Read|Write) {
		t.Error("a set holds what it must not, or not what it must")
	}
	tests := []struct {
		names string
		want  Rights
		bad   bool
	}{
		{"read", Read, false}, {"read,write", Read | Write, false}, {"exec, read", Exec | Read, false}, {"read,read", Read, false},
		{"", 0, true}, {"all", 0, true}, {"Read", 0, true}, {"read,", 0, true},
	}
	for _, tt := range tests {
		got, err := ParseRights(strings.Split(tt.names, ","))
		if got != tt.want || (err != nil) != tt.bad {
			t.Errorf("ParseRights(%q) = %v, %v", tt.names, got, err)
		}
	}
	if _, err := ParseRights(nil); err == nil {
		t.Error("no rights are a set")
	}
}

// A says verifier answers always the same.
type says struct {
	who Identity
	err error
}

func (s says) Verify(context.Context, string) (Identity, error) { return s.who, s.err }

func TestAny(t *testing.T) {
	invalid, expired, away := says{err: refuse(Invalid, "i")}, says{err: refuse(expiredToken,
		"e")}, says{err: refuse(unavailable, "u")}
	unknown := says{err: refuse(Invalid, unknownToken)}
	good := says{who: Identity{Principal: "p", Rights: Read}}
	tests := []struct {
		name   string
		all    Any
		bearer string
		want   kind
		ok     bool
	}{
		{"nobody", nil, "x", Invalid, false},
		{"nobody, no token", nil, "", Missing, false},
		{"the second knows", Any{invalid, good}, "x", 0, true},
		{"the first is away, the second knows", Any{away, good}, "x", 0, true},
		{"the most telling", Any{invalid, expired, invalid}, "x", expiredToken, false},
		{"made for another audience", Any{unknown, invalid, unknown}, "x", Invalid, false},
		{"it cannot be told", Any{expired, away}, "x", unavailable, false},
		{"an error of another kind", Any{says{err: errors.New("?")}}, "x", Invalid, false},
	}
	for _, tt := range tests {
		who, err := tt.all.Verify(t.Context(), tt.bearer)
		var e *Error
		errors.As(err, &e)
		if e != nil && e.Reason == unknownToken && strings.Contains(tt.name, "audience") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if (err == nil) != tt.ok || e != nil && e.Kind != tt.want || !tt.ok && who.Principal != "" {
			t.Errorf("%s: %+v, %v", tt.name, who, err)
		}
	}
}

func TestSingle(t *testing.T) {
	s, err := NewStaticToken("the-token", "token")
	if err != nil {
		t.Fatal(err)
	}
	for bearer, ok := range map[string]bool{"the-token": true, "": false, "the-toke": false, "the-token2": false,
		"THE-TOKEN": false} {
		who, err := s.Verify(t.Context(), bearer)
		if (err == nil) != ok || ok != (who.Principal == "token" && who.Rights == All) {
			t.Errorf("%q: %+v, %v", bearer, who, err)
		}
	}
	for _, pair := range [][2]string{{"", "p"}, {"t", ""}} {
		if _, err := NewStaticToken(pair[0], pair[1]); err == nil {
			t.Errorf("NewSingle(%q, %q) was taken", pair[0], pair[1])
		}
	}
	if who, err := new(staticToken).Verify(t.Context(), "x"); err == nil {
		t.Errorf("the zero verifier knows %+v", who)
	}
}

// What no request can carry is refused when it is read, and not with every request afterwards.
func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	const good = "0123456789abcdef"
	for _, tt := range []struct{ name, holds, says string }{
		{"a token", good, ""},
		{"a token with its line's end", " " + good + "\r\n", ""},
		{"the longest", strings.Repeat("a", maxBearer), ""},
		{"nothing", "", "at least 16"},
		{"a short one", good[1:], "at least 16"},
		{"two", good + "\n" + good, "one token"},
		{"a comma", good + ",b", "commas"},
		{"UTF-16", "0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00", "ASCII"},
		{"another alphabet", good + "ä", "ASCII"},
		{"a byte order mark", "\uFEFF" + good, "byte order mark"},
		{"more than a header takes", strings.Repeat("a", maxBearer+1), "16384"},
		{"no end", strings.Repeat("a", 4*maxBearer), "16384"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.holds), 0o600); err != nil {
				t.Fatal(err)
			}
			token, err := ReadToken(file)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), file) {
					t.Errorf("got %q, %v, want %q of %s", token, err, tt.says, file)
				}
				return
			}
			if bearer, wrong := ParseAuthorization([]string{"Bearer " + token}); err != nil ||
				bearer != strings.TrimSpace(tt.holds) {
				t.Errorf("the token %q comes as %q: %v, %s", token, bearer, err, wrong)
			}
		})
	}
	if _, err := ReadToken(filepath.Join(filepath.Dir(file), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
