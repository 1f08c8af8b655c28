package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Secret is put into requests of commands, which have a sentinel in its place and never the value.
type Secret struct {
	// Name is how people call it: the variable or the file.
	Name string
	// Variable is the environment variable that holds the sentinel; "" if there is none.
	Variable string
	// Sentinel is what commands have.
	Sentinel string
	// Hosts are patterns of the hosts that get the value, over TLS. One without a port means port 443.
	Hosts []string
	// Body has the value put into forms, too: into their fields that are named like credentials.
	Body bool
	// Signs keeps the value on the host: requests to AWS are signed with it, and no request carries it. A value in a
	// header or query could be stored at AWS, where anybody can have a bucket.
	Signs bool
	// Value returns the value. It is called for each request that needs it.
	Value func(ctx context.Context) (string, error)
}

// MinSecret is the length of the shortest value that is masked. In responses a shorter one could not be told from
// other text.
const MinSecret = 8

const (
	// maxRepeated bounds the parts of Authorization headers that are looked for in responses as they were sent.
	maxRepeated = 64
	// maxRotated is how many values of a secret are looked for in responses: the last ones.
	maxRotated = 8
	// maxReplaced is how many sentinels of a request are replaced.
	maxReplaced = 8
)

// secrets are those of a sandbox.
type secrets struct {
	all []Secret

	mu       sync.Mutex
	known    map[string][]string // values by sentinel
	repeated []pair              // of parts of headers: user names with passwords in base64, and signatures
	found    *finder             // of what is replaced in responses
}

// Hide returns a text with sentinels in the place of a value of the secret, however it is spelt.
func (s *Secret) Hide(value, text string) string {
	known := &secrets{known: map[string][]string{s.Sentinel: {value}}}
	known.collect()
	return known.found.hide(text)
}

// Serves reports whether a host gets a secret over TLS at a port.
func (s *Secret) Serves(host, port string) bool {
	return slices.ContainsFunc(s.Hosts, func(pattern string) bool {
		if _, own := splitPattern(pattern); own == "" && port != "443" {
			return false
		}
		return matches(pattern, host, port)
	})
}

// injects reports whether requests to a host are read, and whether over TLS, too.
func (s *secrets) injects(host, port string) (plain, overTLS bool) {
	for i := range s.all {
		overTLS = overTLS || s.all[i].Serves(host, port)
		plain = plain || namesAny(s.all[i].Hosts, host)
	}
	return plain || overTLS, overTLS
}

// value returns the value of a secret. From then on the value is taken out of responses.
func (s *secrets) value(ctx context.Context, secret *Secret) (string, error) {
	value, err := secret.Value(ctx)
	switch {
	case err != nil:
		return "", err
	case len(value) < MinSecret:
		return "", fmt.Errorf("its value has %d characters, and at least %d are needed", len(value), MinSecret)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", errors.New("its value has more than one line")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if values := s.known[secret.Sentinel]; !slices.Contains(values, value) {
		if s.known == nil {
			s.known = map[string][]string{}
		}
		s.known[secret.Sentinel] = append(values[max(0, len(values)-maxRotated+1):], value)
		s.collect()
	}
	return value, nil
}

// addRepeated has a part of a header replaced as a whole when a response repeats it.
func (s *secrets) addRepeated(p pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.repeated, p) {
		return
	}
	s.repeated = append(s.repeated[max(0, len(s.repeated)-maxRepeated+1):], p)
	s.collect()
}

// collect makes the list of what is replaced in responses.
func (s *secrets) collect() {
	list := slices.Clone(s.repeated)
	for sentinel, values := range s.known {
		for _, value := range values {
			list = append(list, pair{value, sentinel})
			for _, spell := range spellings {
				if text := spell(value); text != value && len(text) >= minSpelling {
					list = append(list, pair{text, spell(sentinel)})
				}
			}
		}
	}
	s.found = newFinder(list)
}

// echoes returns a finder of the texts that are replaced in responses.
func (s *secrets) echoes() *finder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		s.found = &finder{}
	}
	return s.found
}

// minSpelling is the length of the shortest spelling that is looked for.
const minSpelling = 8

// spellings are the encodings of a value that may stand in a text.
var spellings = func() (list []func(string) string) {
	for _, escape := range []func(string) string{url.QueryEscape, url.PathEscape} {
		list = append(list, escape, func(s string) string {
			return percents.ReplaceAllStringFunc(escape(s), strings.ToLower)
		})
	}
	slashes, equals := strings.NewReplacer("/", `\/`), strings.NewReplacer("=", `\u003d`, "+", `\u002b`, "/", `\u002f`)
	decimal, hexadecimal := strings.NewReplacer("=", "&#61;", "+", "&#43;", "/", "&#47;"), strings.NewReplacer("=",
		"&#x3D;", "+", "&#x2B;", "/", "&#x2F;")
	list = append(list, inJSON, html.EscapeString, decimal.Replace, hexadecimal.Replace,
		func(s string) string { return slashes.Replace(inJSON(s)) },
		func(s string) string { return equals.Replace(inJSON(s)) },
		func(s string) string { return strings.NewReplacer("=", "&#61;", "+", "&#43;").Replace(s) }, // a slash needs none
		func(s string) string { return strings.NewReplacer("=", `\u003d`).Replace(inJSON(s)) })
	list = append(list, func(s string) string { return hex.EncodeToString([]byte(s)) },
		func(s string) string { return fmt.Sprintf("% x", s) }) // as S3 repeats requests
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for skip := range 3 { // what precedes the value takes a part of its first group
			list = append(list,
				func(s string) string { return encoding.EncodeToString([]byte(s[min(skip, len(s)):])) },
				func(s string) string {
					return encoding.WithPadding(base64.NoPadding).EncodeToString([]byte(s[min(skip, len(s)):]))
				},
				func(s string) string {
					s = s[min(skip, len(s)):]
					return encoding.EncodeToString([]byte(s[:len(s)/3*3]))
				})
		}
	}
	return list
}()

// percents are the escapes of URLs.
var percents = regexp.MustCompile(`%[0-9A-F]{2}`)

// inJSON returns a text as it stands in a string of JSON.
func inJSON(text string) string {
	b, _ := json.Marshal(text) // strings have no errors
	return string(b[1 : len(b)-1])
}

// credentialName matches the names of headers and query parameters that carry credentials, in lower case and with
// their words apart. A sentinel elsewhere is not replaced: servers log, store and show what is sent there.
var credentialName = regexp.MustCompile(`(?:^|[^a-z0-9])(?:[ox]?auth|authorization|authentication|` +
	`(?:api|auth|access|secret|private|session)?key|(?:php)?sess(?:ion)?(?:id)?|cookies?|credentials?|` +
	`[a-z0-9]*(?:token|secret|password|passwd))s?[0-9]*(?:$|[^a-z0-9])`)

// camelCase matches the end of a word within a name.
var camelCase = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func carriesCredential(name string) bool {
	name = strings.ToLower(camelCase.ReplaceAllString(name, "$1-$2"))
	return credentialName.MatchString(name) && !strings.Contains(name, "idempotency")
}

// A request is a request of a command, before it is sent to a host.
type request struct {
	*http.Request
	*secrets
	may func(*Secret) bool // be sent to this host
	// used are the secrets that were put in, and replaced is how many times.
	used     []*Secret
	replaced int
}

// stray returns a secret whose sentinel the request carries although it may not go to the host; nil if there is none.
func (r *request) stray() *Secret {
	texts := []string{r.Host, r.URL.Path, r.URL.RawQuery}
	for _, field := range strings.FieldsFunc(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		if text, err := url.QueryUnescape(field); err == nil {
			texts = append(texts, text)
		}
	}
	if r.URL.User != nil {
		texts = append(texts, r.URL.User.String())
	}
	for name, values := range r.Header {
		texts = append(texts, name)
		for _, value := range values {
			texts = append(texts, value)
			if _, plain, ok := basicAuth(value); ok {
				texts = append(texts, plain)
			}
		}
	}
	for i := range r.all {
		secret := &r.all[i]
		if !r.may(secret) &&
			slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, secret.Sentinel) }) {
			return secret
		}
	}
	return nil
}

// inject replaces sentinels in the header and the query by the values.
func (r *request) inject(ctx context.Context) error {
	for name, values := range r.Header {
		if !carriesCredential(name) {
			continue
		}
		for i, value := range values {
			scheme, plain, ok := basicAuth(value)
			if !ok {
				plain = value
			}
			text, err := r.replace(ctx, plain, false)
			if err != nil {
				return err
			}
			if ok && text != plain {
				encoded := base64.StdEncoding.EncodeToString([]byte(text))
				r.addRepeated(pair{encoded, strings.TrimSpace(value[len(scheme):])})
				text = scheme + encoded
			} else if ok {
				text = value
			}
			values[i] = text
		}
	}
	query, err := r.injectFields(ctx, r.URL.RawQuery, false)
	r.URL.RawQuery = query
	return errors.Join(err, r.injectForm(ctx))
}

// injectForm replaces sentinels in a body that is a form. One that is too long is sent as it is.
func (r *request) injectForm(ctx context.Context) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	wanted := func(s Secret) bool { return s.Body && r.may(&s) }
	if err != nil || kind != formType || r.Header.Get("Content-Encoding") != "" || !slices.ContainsFunc(r.all, wanted) {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxSized+1))
	if err != nil {
		return err
	}
	if len(text) > maxSized {
		r.Body = &begunBody{io.MultiReader(bytes.NewReader(text), r.Body), r.Body}
		return nil
	}
	form, err := r.injectFields(ctx, string(text), true)
	if err != nil {
		return err
	}
	r.Body = &begunBody{strings.NewReader(form), r.Body}
	r.ContentLength, r.TransferEncoding = int64(len(form)), nil
	r.Header.Set("Content-Length", strconv.Itoa(len(form)))
	return nil
}

// formType is the type of a body that is a form.
const formType = "application/x-www-form-urlencoded"

// begunBody is a body of which the beginning, or all, was read. The Reader begins anew.
type begunBody struct {
	io.Reader
	io.Closer
}

// injectFields replaces sentinels in a query, or in a form.
func (r *request) injectFields(ctx context.Context, text string, form bool) (string, error) {
	fields := strings.Split(text, "&")
	for i, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		plain, err := url.QueryUnescape(value)
		if err != nil || !carriesCredential(name) {
			continue
		}
		text, err := r.replace(ctx, plain, form)
		if err != nil {
			return "", err
		}
		if text != plain {
			fields[i] = name + "=" + url.QueryEscape(text)
		}
	}
	return strings.Join(fields, "&"), nil
}

// replace returns a text with values in the place of sentinels: all, or those that forms get, too.
func (r *request) replace(ctx context.Context, text string, form bool) (string, error) {
	for i := range r.all {
		secret := &r.all[i]
		if secret.Signs || form && !(secret.Body && r.may(secret)) || !strings.Contains(text, secret.Sentinel) {
			continue
		}
		if r.replaced += strings.Count(text, secret.Sentinel); r.replaced > maxReplaced {
			return "", errReplaced
		}
		value, err := r.value(ctx, secret)
		if err != nil {
			return "", &valueError{secret.Name}
		}
		if secret.isKey(value) {
			continue
		}
		text = strings.ReplaceAll(text, secret.Sentinel, value)
		if !slices.Contains(r.used, secret) {
			r.used = append(r.used, secret)
		}
	}
	return text, nil
}

// errReplaced says that a request has too many sentinels.
var errReplaced = fmt.Errorf("the request has more than %d sentinels of credentials", maxReplaced)

// valueError says that a secret has no value. It does not say why, which may name something that commands do not see.
type valueError struct{ name string }

func (e *valueError) Error() string {
	return fmt.Sprintf("the credential %s cannot be used; toolhost credential test %[1]s shows a person why", e.name)
}

// basicAuth splits a header value of the scheme Basic: its scheme with the space, and the user name and password.
func basicAuth(value string) (scheme, plain string, ok bool) {
	const basic = "basic "
	if len(value) < len(basic) || !strings.EqualFold(value[:len(basic)], basic) {
		return "", "", false
	}
	encoded := strings.TrimRight(strings.TrimSpace(value[len(basic):]), "=")
	text, err := base64.RawStdEncoding.DecodeString(encoded)
	return value[:len(basic)], string(text), err == nil
}
