package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestSignature: requests are signed as AWS documents it ("get-vanilla" and others of its test suite).
func TestSignature(t *testing.T) {
	const key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, c := range []struct {
		method, target string
		want           string
	}{
		{"GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	} {
		r, _ := http.NewRequest(c.method, "https://example.amazonaws.com"+c.target, nil)
		r.Header.Set("X-Amz-Date", "20150830T123600Z")
		s := &signature{scope: []string{"20150830", "us-east-1", "service", "aws4_request"},
			names: []string{"host", "x-amz-date"}, body: empty, double: true}
		if got := s.sign(r, key); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.target, got, c.want)
		}
	}
}

// TestResign: a request that was signed with a sentinel arrives signed with the value, and one that was signed with
// anything else as it is.
func TestResign(t *testing.T) {
	verified := func(r *http.Request, key string) bool {
		all := []Secret{{Sentinel: key}}
		signed, err := (&request{Request: r, secrets: &secrets{all: all},
			may: func(*Secret) bool { return true }}).signedBy()
		return err == nil && signed != nil
	}
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
		w.Header().Set("Repeated", signed+" "+r.Header.Get("X-Token"))
		if verified(r, value) {
			io.WriteString(w, "logged-in ")
		}
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.Header.Get("Range")+string(body))
	})
	const signing = "thm_signing_sentinel"
	f.secrets.all = append(f.secrets.all, Secret{Name: "KEY", Sentinel: signing, Signs: true,
		Hosts: []string{"example.com"}, Value: f.secrets.all[0].Value})
	f.secrets.all = append(f.secrets.all, Secret{Name: "ID", Sentinel: "AKIASENTINEL", Hosts: []string{"example.com"},
		Value: func(context.Context) (string, error) { return "AKIATHEVALUE", nil }})
	for _, c := range []struct {
		name, key, hash, body string
		header, text, query   string
		code                  int
		want                  string
	}{
		{name: "body", key: sentinel, body: "a=b", code: 200, want: "logged-in a=b"},
		{name: "hash", key: sentinel, hash: "UNSIGNED-PAYLOAD", body: "x", code: 200, want: "logged-in x"},
		{name: "no body", key: sentinel, code: 200, want: "logged-in "},
		{name: "range", key: sentinel, header: "Range", text: "bytes=0-3", code: 200, want: "logged-in bytes=0-3"},
		{name: "a header that is taken out", key: sentinel, header: "Accept-Encoding", text: "br", code: 200, want: "logged-in "},
		{name: "spaces", key: sentinel, header: "X-Amz-Meta-A", text: "a   b ", code: 200, want: "logged-in "},
		{name: "another key", key: "another", body: "a=b", code: 200, want: "a=b"},
		{name: "chunks", key: sentinel, hash: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", body: "x", code: 502, want: "each part"},
		{name: "a key that only signs", key: signing, header: "X-Token", text: signing, code: 200, want: "logged-in "},
		{name: "presigned", key: signing, query: "&X-Amz-Algorithm=AWS4-HMAC-SHA256", code: 502, want: "sign one"},
		{name: "large", key: sentinel, body: strings.Repeat("x", maxSigned+1), code: 502, want: "8 MiB"},
	} {
		for _, h2 := range []bool{false, true} {
			for _, path := range []string{"/?b=1", "/a%20b/c:d?x=1&a-b=2&a=3"} {
				for _, double := range []bool{true, false} {
					r, _ := http.NewRequest("POST", "https://example.com"+path+c.query, strings.NewReader(c.body))
					r.Header.Set("X-Amz-Date", "20150830T123600Z")
					s := &signature{scope: []string{"20150830", "us-east-1", "service", "aws4_request"},
						names: []string{"content-length", "host", "x-amz-date"}, double: double}
					if c.header != "" {
						r.Header.Set(c.header, c.text)
						s.names = append(s.names, strings.ToLower(c.header))
					}
					if c.hash != "" {
						r.Header.Set(contentHash, c.hash)
						s.body = c.hash
					} else if len(c.body) <= maxSigned {
						sum := sha256.Sum256([]byte(c.body))
						s.body = hex.EncodeToString(sum[:])
					}
					r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIASENTINEL/"+
						strings.Join(s.scope, "/")+", SignedHeaders="+strings.Join(s.names, ";")+", Signature="+
						s.sign(r, c.key))
					client := f.client(h2)
					answer, err := client.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					text, _ := io.ReadAll(answer.Body)
					_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
					if repeated := signed + " " + r.Header.Get("X-Token"); c.code == 200 &&
						strings.TrimSpace(answer.Header.Get("Repeated")) != strings.TrimSpace(repeated) {
						t.Errorf("%s: the answer repeats %q, want %q", c.name, answer.Header.Get("Repeated"), repeated)
					}
					answer.Body.Close()
					client.CloseIdleConnections()
					if answer.StatusCode != c.code || c.code == 200 && string(text) != c.want ||
						!strings.Contains(string(text), c.want) {
						t.Errorf("%s, h2 %v, %s, %v: %d %.200s", c.name, h2, path, double, answer.StatusCode, text)
					}
				}
			}
		}
	}
}
