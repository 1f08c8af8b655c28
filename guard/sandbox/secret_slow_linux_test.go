//go:build slow

package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// strays are attempts to get the value, or to have it sent elsewhere.
var strays = []struct {
	name, command string
	want          string // in the output
	refused       string // in the reason of a refusal; "": none
}{
	{"environment", `env; cat /proc/*/environ | tr '\0' '\n'`, "TOKEN=" + fakeToken, ""},
	{"echo in the header", `curl -sSi -H "Authorization: Bearer $TOKEN" https://api.allowed.test/`, "x-echo: Bearer " + fakeToken, ""},
	{"echo of basic", `curl -sSi --http1.1 -u "me:$TOKEN" https://api.allowed.test/`, "Basic bWU6Z2hwXzAwMDAw", ""},
	{"compressed", `curl -sS --compressed -H "Accept-Encoding: br, gzip" -H "Authorization: Bearer $TOKEN" https://api.allowed.test/`, "logged-in", ""},
	{"wrong host", `curl -sS -o /dev/null -w %{http_code} -H "Authorization: Bearer $TOKEN" https://npm.allowed.test/`, "421", "tried to send TOKEN"},
	{"wrong host, basic", `curl -sSi -u "me:$TOKEN" https://npm.allowed.test/`, "HTTP/2 421", "tried to send TOKEN"},
	{"plain", `curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $TOKEN" http://api.allowed.test/`, "421", "without TLS"},
	{"plain, by the TUN", `curl -sS --noproxy '*' -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $TOKEN" http://api.allowed.test/`, "421", "without TLS"},
	{"not a host of secrets", `curl -sSk -H "Authorization: Bearer $TOKEN" https://www.allowed.test/`, fakeToken, ""},
	{"redirect", `curl -sSkL --location-trusted -H "Authorization: Bearer $TOKEN" https://api.allowed.test/redirect`, fakeToken, ""},
	{"Host is not SNI", `curl -sSi --http1.1 -H "Host: npm.allowed.test" -H "Authorization: Bearer $TOKEN" https://api.allowed.test/`, "421", "the request asks for"},
	{"authority is not SNI", `curl -sSi --http2 -H "Host: npm.allowed.test" -H "Authorization: Bearer $TOKEN" https://api.allowed.test/`, "421", "the request asks for"},
	{"SNI is not the host", `curl -sS --connect-to npm.allowed.test:443:api.allowed.test:443 -H "Authorization: Bearer $NPM_TOKEN" https://npm.allowed.test/`, "curl:", "TLS asks for"},
	{"user agent", `curl -sS -A "$TOKEN" -H "Authorization: Bearer $TOKEN" https://api.allowed.test/`, "User-Agent:[" + fakeToken, ""},
	{"search", `curl -sS -H "Authorization: Bearer $TOKEN" "https://api.allowed.test/?q=$TOKEN"`, "?q=" + fakeToken, ""},
	{"another sandbox's sentinel", `curl -sS -H "Authorization: Bearer ghp_1111111111111111111111111111sentinel" https://api.allowed.test/`, "who are you? Bearer ghp_1111", ""},
	{"own certificate", `cat $SSL_CERT_FILE >>$TMPDIR/x; echo x >>$SSL_CERT_FILE`, "Read-only", ""},
	{"pinned client", `openssl s_client -verify_return_error -CAfile "$PINNED" -connect api.allowed.test:443 -servername api.allowed.test </dev/null 2>&1`, "verify error", "ended the TLS handshake"},
	{"smuggling", `printf 'GET / HTTP/1.1\r\nHost: api.allowed.test\r\nAuthorization: Bearer %s\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: npm.allowed.test\r\nAuthorization: Bearer %s\r\n\r\n' $TOKEN $TOKEN |
		openssl s_client -quiet -ign_eof -connect api.allowed.test:443 -servername api.allowed.test 2>&1`, "HTTP/1.1 ", "the request asks for"},
}

// TestStraySecrets: the value is seen nowhere, and goes nowhere but to its hosts.
func TestStraySecrets(t *testing.T) {
	t.Parallel()
	w, f := newSecretNetwork(t), newFixture(t)
	s := w.start(t, f)
	pinned := filepath.Join(f.tmp, "pinned.pem")
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
		"-nodes", "-keyout", "/dev/null", "-subj", "/CN=x", "-out", pinned).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := append(slices.Concat(f.env, s.Env()), "PINNED="+pinned)
	for _, a := range strays {
		t.Run(a.name, func(t *testing.T) {
			if s.outside == nil && strings.Contains(a.command, "noproxy") {
				t.Skip("no TUN device")
			}
			r := runIn(t, s, f.ws, env, "/bin/bash", "-c", a.command)
			checkHidden(t, r.output)
			if !strings.Contains(r.output, a.want) {
				t.Errorf("%q is missing in\n%s", a.want, r.output)
			}
			refused := s.Refused()
			if a.refused != "" { // a program need not wait for it
				waitFor(t, "the refusal", func() bool {
					refused = append(refused, s.Refused()...)
					return len(refused) > 0
				})
			}
			if a.refused == "" && len(refused) > 0 || a.refused != "" &&
				!strings.Contains(fmt.Sprint(refused), a.refused) {
				t.Errorf("refused %+v, want %q", refused, a.refused)
			}
			checkHidden(t, fmt.Sprint(refused))
		})
	}
}
