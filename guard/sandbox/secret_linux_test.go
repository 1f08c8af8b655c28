package sandbox

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
)

const (
	realToken  = "ghp_therealtokenoftheuserthatnoonesees00"
	fakeToken  = "ghp_0000000000000000000000000000sentinel"
	otherToken = "npm_anotherrealtokenthatnoonesees"
	otherFake  = "npm_00000000000000000000sentinel"
	awsKey     = "aws/secretkeythatnoonesees+withsomemore0"
	awsFake    = "thm_00000000000000000000000000sentinel"
	awsToken   = "awssessiontokenthatnoonesees"
	awsFakeTok = "thm_00000000000000000000000000othersen"
)

// secretNetwork is an outerNetwork in which api.allowed.test and git.allowed.test know the user by realToken, and npm.allowed.test
// by otherToken. It serves a repository as /repo.git.
type secretNetwork struct {
	*outerNetwork
	roots *x509.CertPool
}

func newSecretNetwork(t testing.TB) *secretNetwork {
	w := &secretNetwork{newOuterNetwork(t), x509.NewCertPool()}
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo.git")
	if out, err := exec.Command("git", "init", "-q", "--bare", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("git", "-C", repo, "config", "http.receivepack", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	backend := &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend",
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=me"}, Stderr: io.Discard}
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token := realToken
		switch {
		case strings.HasPrefix(r.Host, "npm."):
			token = otherToken
		case strings.HasPrefix(r.Host, "aws."):
			serveAWS(rw, r)
			return
		}
		_, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") != "Bearer "+token && r.Header.Get("X-Api-Key") != token &&
			password != token && r.URL.Query().Get("access_token") != token {
			rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(rw, "who are you? "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/repo.git"):
			backend.ServeHTTP(rw, r)
		case r.URL.Path == "/-/whoami":
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, `{"username":"logged-in"}`)
		case r.URL.Path == "/redirect":
			http.Redirect(rw, r, "https://www.allowed.test/", http.StatusFound)
		default:
			rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
			fmt.Fprintf(rw, "logged-in %s %s %s %s\n", r.Proto, r.Host, r.RequestURI, r.Header)
		}
	}))
	api.EnableHTTP2 = true
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	certificate, roots := testCertificate(t, "*.allowed.test")
	api.TLS = certificate
	w.roots = roots
	api.StartTLS()
	t.Cleanup(api.Close)
	w.servers["443"] = api.Listener.Addr().String()
	return w
}

// serveAWS is a service of AWS, which knows the user by a signature.
func serveAWS(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	auth := strings.Split(strings.ReplaceAll(r.Header.Get("Authorization"), ", ", "="), "=") // its name, Credential, SignedHeaders, Signature
	if len(auth) != 6 {
		http.Error(rw, "no signature", http.StatusForbidden)
		return
	}
	_, scope, _ := strings.Cut(auth[1], "/")
	hash := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	text := r.Method + "\n" + r.URL.EscapedPath() + "\n" + strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20") + "\n"
	for _, name := range strings.Split(auth[3], ";") {
		text += name + ":" + map[bool]string{true: r.Host, false: r.Header.Get(name)}[name == "host"] + "\n"
	}
	text += "\n" + auth[3] + "\n" + cmp.Or(r.Header.Get("X-Amz-Content-Sha256"), hash(body))
	key := []byte("AWS4" + awsKey)
	for _, part := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+
		"\n"+hash([]byte(text))) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	switch {
	case fmt.Sprintf("%x", key) != auth[5] || r.Header.Get("X-Amz-Security-Token") != awsToken:
		http.Error(rw, "<Error><Code>SignatureDoesNotMatch</Code><Message>"+text+"</Message></Error>",
			http.StatusForbidden)
	case strings.Contains(scope, "/sts/"):
		io.WriteString(rw, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>logged-in</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	case r.Method == http.MethodPut:
		rw.Header().Set("ETag", `"logged-in"`)
	default:
		rw.Header().Set("ETag", `"x"`)
		http.ServeContent(rw, r, "", time.Unix(1e9, 0), strings.NewReader(strings.Repeat("logged-in\n", 2<<20)))
	}
}

// start starts a sandbox with secrets for api.allowed.test, git.allowed.test and npm.allowed.test.
func (w *secretNetwork) start(t testing.TB, f *fixture) *Sandbox {
	p := f.policy()
	p.Network.AllowedDomains = []string{"*.allowed.test"}
	value := func(v string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return v, nil }
	}
	p.Network.Secrets = []Secret{
		{Name: "TOKEN", Variable: "TOKEN", Sentinel: fakeToken, Hosts: []string{"api.allowed.test", "git.allowed.test"}, Value: value(realToken)},
		{Name: "NPM_TOKEN", Variable: "NPM_TOKEN", Sentinel: otherFake, Hosts: []string{"npm.allowed.test"}, Value: value(otherToken)},
		{Name: "AWS_SECRET_ACCESS_KEY", Variable: "AWS_SECRET_ACCESS_KEY", Sentinel: awsFake, Hosts: []string{"aws.allowed.test"}, Value: value(awsKey)},
		{Name: "AWS_SESSION_TOKEN", Variable: "AWS_SESSION_TOKEN", Sentinel: awsFakeTok, Hosts: []string{"aws.allowed.test"}, Value: value(awsToken)},
	}
	o := w.options()
	o.Roots = w.roots
	s, err := Start(context.Background(), p, o)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type login struct{ name, command, want string }

// logins are real programs that log in with what they have. More of them are in programs_slow_linux_test.go.
var logins = []login{
	{"curl", `curl -sS -H "Authorization: Bearer $TOKEN" https://api.allowed.test/user`, "logged-in HTTP/2.0"},
	{"curl", `curl -sS --http1.1 -H "authorization: bearer x" -H "X-Api-Key: $TOKEN" https://api.allowed.test/user`, "logged-in HTTP/1.1"},
	{"curl", `curl -sS -u "me:$TOKEN" https://api.allowed.test/user`, "logged-in"},
	{"curl", `curl -sS "https://me:$TOKEN@api.allowed.test/user"`, "logged-in"},
	{"curl", `curl -sS "https://api.allowed.test/user?a=b%2Fc&access_token=$TOKEN"`, "/user?a=b%2Fc&access_token=" + fakeToken},
	{"curl", `curl -sS "https://api.allowed.test/user?access_token=${TOKEN/_/%5f}"`, "logged-in"},
	{"curl", `curl -sS -H "Authorization: Bearer $TOKEN" https://API.Allowed.Test./user`, "logged-in"},
	{"curl", `curl -sS -H "Authorization: Bearer $NPM_TOKEN" https://npm.allowed.test/user`, "logged-in"},
	{"git", `git -c user.name=x -c user.email=x@y init -q r && cd r && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x &&
		git push -qf "https://me:$TOKEN@git.allowed.test/repo.git" HEAD:refs/heads/main && git ls-remote "https://me:$TOKEN@git.allowed.test/repo.git"`, "refs/heads/main"},
	{"python3", `python3 -c '
import os, urllib.request as u
print(u.urlopen(u.Request("https://api.allowed.test/", headers={"Authorization": "Bearer " + os.environ["TOKEN"]})).read().decode())'`, "logged-in"},
}

// TestLogins: real programs log in with the sentinel, with the proxy and without, and never see the value.
func TestLogins(t *testing.T) {
	t.Parallel()
	w, f := newSecretNetwork(t), newFixture(t)
	s := w.start(t, f)
	direct := []string{"HTTP_PROXY=", "HTTPS_PROXY=", "ALL_PROXY=", "http_proxy=", "https_proxy=", "all_proxy=",
		"NODE_USE_ENV_PROXY="}
	for _, way := range []struct {
		name string
		env  []string
	}{{"proxy", nil}, {"direct", direct}} {
		if way.name == "direct" && s.outside == nil {
			continue // no TUN device
		}
		some := logins
		if way.name == "direct" { // the programs are those of TestProgramsFindHosts
			some = samples.Of(logins, 1)
		}
		for i, l := range some {
			if _, err := exec.LookPath(l.name); err != nil {
				continue
			}
			t.Run(fmt.Sprint(way.name, " ", l.name, " ", i), func(t *testing.T) {
				env := (&exec.Cmd{Env: slices.Concat(f.env, []string{"HOME=" + f.tmp, "PATH=" + os.Getenv("PATH")},
					s.Env(), way.env)}).Environ()
				r := runIn(t, s, f.ws, env, "/bin/bash", "-c", "rm -rf r; "+l.command)
				checkHidden(t, r.output)
				if !strings.Contains(r.output, l.want) {
					t.Errorf("%q is missing in\n%s", l.want, r.output)
				}
			})
		}
	}
	if refused := s.Refused(); len(refused) > 0 {
		t.Errorf("refused %+v", refused)
	}
}

// checkHidden looks for values in what a command has seen.
func checkHidden(t testing.TB, text string) {
	t.Helper()
	for _, token := range []string{realToken, otherToken, awsKey, awsToken} {
		for _, form := range []string{token, base64.StdEncoding.EncodeToString([]byte("me:" + token)),
			base64.StdEncoding.EncodeToString([]byte(token))} {
			if strings.Contains(text, form) {
				t.Errorf("the command has seen %s:\n%s", form, text)
			}
		}
	}
}

// TestSecretsVerify: a host whose certificate is not valid gets no secret.
func TestSecretsVerify(t *testing.T) {
	w, f := newSecretNetwork(t), newFixture(t)
	w.roots = x509.NewCertPool()
	s := w.start(t, f)
	r := runIn(t, s, f.ws, append(slices.Clone(f.env), s.Env()...), "/bin/bash", "-c",
		`curl -sSk -H "Authorization: Bearer $TOKEN" https://api.allowed.test/`)
	checkHidden(t, r.output)
	if !strings.Contains(r.output, "certificate") || !strings.Contains(fmt.Sprint(s.Refused()), "certificate") {
		t.Errorf("got %s", r.output)
	}
}
