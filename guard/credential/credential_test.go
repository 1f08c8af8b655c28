package credential

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSentinel(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":99,"email":"me@example.com"}`)) + ".c2lnbmF0dXJl"
	for value, begin := range map[string]string{
		"ghp_" + strings.Repeat("a", 36): "ghp_", "github_pat_" + strings.Repeat("a", 82): "github_pat_", "npm_" + strings.Repeat("a", 36): "npm_",
		"sk-ant-" + strings.Repeat("a", 90): "sk-ant-", "sk-" + strings.Repeat("a", 48): "sk-", jwt: "eyJhbGciOiJIUzI1NiJ9.", "hunter2": "thm_", "ghp_": "thm_", strings.Repeat("x", 40): "thm_",
	} {
		a, b := Sentinel(value, nil), Sentinel(value, nil)
		if !strings.HasPrefix(a, begin) || a == b || a == value {
			t.Errorf("%s: %s, %s", value, a, b)
		}
		if begin != "thm_" && value != jwt && len(a) != len(value) {
			t.Errorf("%s: %s has another length", value, a)
		}
		if begin == "thm_" && len(a) != 36 {
			t.Errorf("%s: %s", value, a)
		}
	}
	if body, _ := base64.RawURLEncoding.DecodeString(strings.Split(Sentinel(jwt, nil),
		".")[1]); string(body) != `{"exp":99,"sub":"toolhost"}` {
		t.Errorf("a token with the body %s", body)
	}
	for host, begin := range map[string]string{"api.github.com": "ghp_", "registry.npmjs.org": "npm_",
		"api.anthropic.com": "sk-ant-", "example.com": "thm_"} {
		if got := Sentinel("", []string{host}); !strings.HasPrefix(got, begin) {
			t.Errorf("%s: %s", host, got)
		}
	}
}

// TestMaskFile: each kind of file is read, and nothing but its secrets changes.
func TestMaskFile(t *testing.T) {
	const secret = "therealsecret0"
	basic := base64.StdEncoding.EncodeToString([]byte("me:" + secret))
	for _, c := range []struct{ path, text, extract string }{
		{path: "/h/.netrc", text: "machine github.com\n  login me\n  password therealsecret0\nmachine b login x password therealsecret0"},
		{path: "/h/_netrc", text: `machine a login me password "therealsecret0"`},
		{path: "/h/.npmrc", text: "registry=https://r/\n//r/:_authToken=therealsecret0\n; //r/:_authToken=therealsecret0\n# it was therealsecret0\n"},
		{path: "/h/.npmrc", text: "//r/:_auth=" + basic + "\n"},
		{path: "/h/.npmrc", text: "//r/:_password = \"" + base64.StdEncoding.EncodeToString([]byte(secret)) + "\"\n"},
		{path: "/h/.config/gh/hosts.yml", text: "github.com:\n    user: me\n    oauth_token: therealsecret0\n    users:\n        me:\n            oauth_token: therealsecret0\n"},
		{path: "/h/.docker/config.json", text: `{"auths": {"https://index.docker.io/v1/": {"auth": "` + basic + `", "identitytoken": "therealsecret0"}}}`},
		{path: "/h/.pypirc", text: "[pypi]\nusername = __token__\npassword = therealsecret0\n"},
		{path: "/h/.aws/credentials", text: "[default]\nregion = x\naws_secret_access_key = therealsecret0\n"},
		{path: "/h/own.toml", text: "token = 'therealsecret0'", extract: `token = '([^']+)'`},
	} {
		if HasReader(c.path) != (c.extract == "") {
			t.Errorf("%s: has a reader: %v", c.path, HasReader(c.path))
		}
		masked, found := MaskFile(c.path, c.text, c.extract, nil)
		if len(found) != 1 {
			t.Errorf("%s: %d secrets in %s", c.path, len(found), c.text)
		}
		for _, f := range found {
			back := strings.ReplaceAll(masked, f.Sentinel, f.Value)
			for _, user := range []string{"me:", ""} {
				back = strings.ReplaceAll(back, base64.StdEncoding.EncodeToString([]byte(user+f.Sentinel)),
					base64.StdEncoding.EncodeToString([]byte(user+f.Value)))
			}
			if f.Value != secret || back != c.text || strings.Contains(masked, secret) ||
				strings.Contains(masked, basic) {
				t.Errorf("%s: %q by %q:\n%s\n%s", c.path, f.Value, f.Sentinel, masked, back)
			}
		}
	}
	if masked, found := MaskFile("/h/other", "password x", "", nil); masked != "password x" || len(found) > 0 {
		t.Errorf("a file without a reader: %s", masked)
	}
}

// TestMaskFileHosts: a secret goes to hosts of the domain for which the file has it.
func TestMaskFileHosts(t *testing.T) {
	hosts := []string{"api.github.com", "*.b.example:8443", "registry.corp", "localhost:99"}
	basic := func(s string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + s)) }
	for _, c := range []struct {
		path, text string
		want       map[string]string
	}{
		{"/h/.netrc", "machine github.com login me password secret-1\nmachine a.b.example password secret-2 machine c.example password secret-3\nmachine registry.corp password secret-3 default password secret-4",
			map[string]string{"secret-1": "api.github.com", "secret-2": "*.b.example:8443", "secret-3": "registry.corp",
				"secret-4": "*.b.example:8443 api.github.com localhost:99 registry.corp"}},
		{"/h/.npmrc", "//localhost:99/:_authToken=secret-1\n//npm.c.example/x/:_authToken=secret-2\n_authToken=secret-5\n; //a.github.com/:_authToken=secret-3\n",
			map[string]string{"secret-1": "localhost:99", "secret-2": "", "secret-3": "api.github.com"}},
		{"/h/.config/gh/hosts.yml", "github.com:\n    oauth_token: secret-1\n    users:\n        me:\n            oauth_token: secret-2\nb.example:\n    oauth_token: secret-3\n",
			map[string]string{"secret-1": "api.github.com", "secret-2": "api.github.com",
				"secret-3": "*.b.example:8443"}},
		{"/h/.docker/config.json", `{"auths": {"https://index.b.example/v1/": {"auth": "` + basic("secret-1") + `"}, "registry.corp": {"auth": "` + basic("secret-2") + `"}}, "c": {}}`,
			map[string]string{"secret-1": "*.b.example:8443", "secret-2": "registry.corp"}},
		{"/h/.pypirc", "[pypi]\npassword = secret-1\n", map[string]string{"secret-1": "*.b.example:8443 api.github.com localhost:99 registry.corp"}},
	} {
		_, found := MaskFile(c.path, c.text, "", hosts)
		got := map[string]string{}
		for _, f := range found {
			got[f.Value] = strings.Join(f.Hosts, " ")
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.path, got, c.want)
		}
	}
}

// TestRun: a command is not run again for each request, and its errors do not repeat what it wrote.
func TestRun(t *testing.T) {
	count := filepath.Join(t.TempDir(), "n")
	for range 3 {
		if got, err := Run(context.Background(), "echo x >>"+count+"; echo value"); got != "value" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if text, _ := os.ReadFile(count); string(text) != "x\n" {
		t.Errorf("it ran %d times", len(text)/2)
	}
	failing := filepath.Join(t.TempDir(), "n")
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the request that needs the value has ended, and others wait
		if _, err := Run(ctx, "echo x >>"+failing+"; exit 1"); err == nil {
			t.Error("a command that fails writes a value")
		}
	}
	if text, _ := os.ReadFile(failing); string(text) != "x\n" {
		t.Errorf("a failing command ran %d times", len(text)/2)
	}
	if _, err := Run(context.Background(), "echo leaked; exit 3"); err == nil ||
		strings.Count(err.Error(), "leaked") > 1 {
		t.Errorf("got %v", err)
	}
}

// TestPresetFor: a token is sent to test it only to a host that gets it, and not where that points.
func TestPresetFor(t *testing.T) {
	for hosts, want := range map[string]bool{"api.github.com,x.example": true, "github.com": false,
		"uploads.github.com": false, "": false} {
		if p, ok := For(strings.Split(hosts, ",")); ok != want || ok && p.Name != "github" {
			t.Errorf("%s: %v", hosts, p)
		}
	}
	followed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		followed = followed || r.URL.Path == "/elsewhere"
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	p := Preset{URL: server.URL, header: "X-Api-Key", value: "$"}
	if err := p.Test(t.Context(), http.DefaultClient, "v"); err == nil || followed {
		t.Errorf("got %v, followed %v", err, followed)
	}
}
