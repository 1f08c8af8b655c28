package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Clients of AWS send no secret: they sign each request with it (Signature Version 4). A request that was signed with
// a sentinel is signed anew with the value.

const (
	sigv4 = "AWS4-HMAC-SHA256"
	// contentHash is the header with the hash of the body; without it the body must be read.
	contentHash = "X-Amz-Content-Sha256"
	// signedChunks begins that hash where the client has signed each part of the body, too.
	signedChunks = "STREAMING-AWS4-"
	// maxSigned is the size of the largest body that is read to sign it, and maxSigning is how many are held.
	maxSigned, maxSigning = 8 << 20, 8
	// smallSigned is the size of the largest body that is not counted as held.
	smallSigned = 16 << 10
)

var (
	errSignedChunks = errors.New("the client has signed each part of the body, with a secret that it does not have; let " +
		"it send the body unsigned or in one piece")
	errSignedTwice = errors.New("its header and its query are signed; sign one of them")
	errSigned      = errors.New("the body is larger than " + strconv.Itoa(maxSigned>>20) + " MiB and has no " +
		contentHash)
)

// secretKey and ofAWS match a secret key of AWS and hosts that it is for.
var (
	secretKey = regexp.MustCompile(`^[A-Za-z0-9/+]{40}$`)
	ofAWS     = regexp.MustCompile(`(?i)(?:^|\.)(?:amazonaws\.com(?:\.cn)?|api\.aws)(?::[0-9]+)?$`)
)

// isKey reports whether a value only signs requests although its entry does not say so, because the variable has
// another name than usual.
func (s *Secret) isKey(value string) bool {
	return secretKey.MatchString(value) && slices.ContainsFunc(s.Hosts, ofAWS.MatchString)
}

// A signature is that of a request to AWS.
type signature struct {
	key    *Secret  // with whose sentinel the request was signed
	scope  []string // date, region, service and "aws4_request"
	names  []string // of headers that are signed
	body   string   // hash of the body
	was    string   // what the program has signed
	double bool     // the path is escaped twice, as by all services but S3
}

// signedBy returns the signature of a request if a secret that may go to the host has made it; nil if none has.
func (r *request) signedBy() (*signature, error) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), sigv4+" ")
	if !ok {
		return nil, nil
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	_, scope, _ := strings.Cut(fields["Credential"], "/")
	s := &signature{scope: strings.Split(scope, "/"), names: strings.Split(fields["SignedHeaders"], ";"),
		body: r.Header.Get(contentHash), was: fields["Signature"]}
	if len(s.scope) != 4 || !slices.ContainsFunc(r.all, func(secret Secret) bool { return r.may(&secret) }) {
		return nil, nil
	}
	if s.body == "" {
		if err := r.hashBody(s); err != nil {
			return nil, err
		}
	}
	for i := range r.all {
		for _, s.double = range []bool{true, false} {
			if s.key = &r.all[i]; r.may(s.key) && s.sign(r.Request, s.key.Sentinel) == s.was {
				switch {
				case strings.HasPrefix(s.body, signedChunks):
					return nil, errSignedChunks
				case r.presigned():
					return nil, errSignedTwice
				}
				return s, nil
			}
		}
	}
	return nil, nil
}

// presigned reports whether the query has parts of a signature. With a signature in the header as well, the URL could
// be used by anybody for a week.
func (r *request) presigned() bool {
	for name := range r.URL.Query() {
		if slices.ContainsFunc([]string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature"},
			func(s string) bool { return strings.EqualFold(s, name) }) {
			return true
		}
	}
	return false
}

// readsBody reports whether a body that is not small must be read to sign the request.
func (r *request) readsBody() bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), sigv4+" ") && r.Header.Get(contentHash) == "" &&
		(r.ContentLength < 0 || r.ContentLength > smallSigned)
}

// hashBody reads the body.
func (r *request) hashBody(s *signature) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxSigned+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxSigned:
		return errSigned
	}
	hash := sha256.Sum256(text)
	s.body = hex.EncodeToString(hash[:])
	r.Body = &begunBody{bytes.NewReader(text), r.Body}
	return nil
}

// resign signs a request that is as the host gets it.
func (r *request) resign(ctx context.Context, s *signature) error {
	value, err := r.value(ctx, s.key)
	if err != nil {
		return &valueError{s.key.Name}
	}
	if !slices.Contains(r.used, s.key) {
		r.used = append(r.used, s.key)
	}
	s.names = slices.DeleteFunc(s.names, func(name string) bool {
		return name != "host" && name != "content-length" && r.Header.Get(name) == ""
	})
	credential, _, _ := strings.Cut(r.Header.Get("Authorization"), ",")
	signed := s.sign(r.Request, value)
	r.addRepeated(pair{signed, s.was}) // with it, anybody could send the request for some minutes
	r.Header.Set("Authorization", credential+", SignedHeaders="+strings.Join(s.names, ";")+", Signature="+signed)
	return nil
}

// notUnreserved matches what is escaped in a path.
var notUnreserved = regexp.MustCompile(`[^A-Za-z0-9/._~-]`)

// sign returns the signature of a request with a key.
func (s *signature) sign(r *http.Request, key string) string {
	path := cmp.Or(r.URL.EscapedPath(), "/")
	if s.double {
		path = notUnreserved.ReplaceAllStringFunc(path, func(c string) string { return fmt.Sprintf("%%%02X", c) })
	}
	var query [][2]string
	for field := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if name, value, _ := strings.Cut(field, "="); field != "" {
			query = append(query, [2]string{name, value})
		}
	}
	slices.SortFunc(query, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	fields := make([]string, len(query))
	for i, f := range query {
		fields[i] = f[0] + "=" + f[1]
	}
	text := []string{r.Method, path, strings.Join(fields, "&")}
	for _, name := range s.names {
		values := slices.Clone(r.Header.Values(name))
		switch {
		case name == "host":
			values = []string{r.Host}
		case name == "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		}
		for i := range values {
			values[i] = strings.Join(strings.Fields(values[i]), " ")
		}
		text = append(text, name+":"+strings.Join(values, ","))
	}
	text = append(text, "", strings.Join(s.names, ";"), s.body)
	hash := sha256.Sum256([]byte(strings.Join(text, "\n")))
	text = []string{sigv4, r.Header.Get("X-Amz-Date"), strings.Join(s.scope, "/"), hex.EncodeToString(hash[:])}
	sum := []byte("AWS4" + key)
	for _, part := range append(slices.Clone(s.scope), strings.Join(text, "\n")) {
		mac := hmac.New(sha256.New, sum)
		mac.Write([]byte(part))
		sum = mac.Sum(nil)
	}
	return hex.EncodeToString(sum)
}
