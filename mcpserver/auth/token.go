package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// A Token is one named token as the tokens file keeps it. The token itself is kept nowhere.
//
// Its plain SHA-256 is enough: a token is 130 random bits, which cannot be found by trial, however fast the hash. Slow
// hashes such as bcrypt protect passwords that people choose; here each guess of any program that reaches the
// port would only cost 0.1 s of the host's time.
type Token struct {
	Name string `json:"name"`
	// SHA256 is the digest of the token, in hexadecimal.
	SHA256  string    `json:"sha256"`
	Rights  Rights    `json:"rights"`
	Created time.Time `json:"created"`
	// Servers are the other servers that its bearer may use; nil: all of them.
	Servers []string `json:"servers,omitzero"`
	// Root is the directory in the host's roots that its bearer works in, absolute. "": the host's roots.
	Root string `json:"root,omitzero"`
	// Expires is when the token ends; zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Expired reports whether the token has expired.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// maxTokens is how many tokens a file may hold. Each request's token is compared with all of them, at about 50 ns each.
const maxTokens = 1000

// tokenPrefix identifies the tokens to people and secret scanners.
const tokenPrefix = "th_"

// newToken returns a new token: [rand.Text] has 130 random bits.
func newToken() string { return tokenPrefix + rand.Text() }

// tokenPrincipal returns the principal of the token with this name. No name contains a colon, and the names of no other
// verifier begin like this.
func tokenPrincipal(name string) string { return "token:" + name }

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// maxName is the longest name of a token, in characters.
const maxName = 64

// usableName reports whether a token may have this name, which appears in records and in the names of principals.
func usableName(name string) bool {
	return name != "" && len(name) <= maxName && strings.Contains(letters, name[:1]) &&
		strings.Trim(name, letters+"._-") == ""
}

// tokenList is the content of a tokens file.
type tokenList struct {
	Tokens []Token `json:"tokens"`
}

// parseTokens parses the content of a tokens file. It is strict: a misspelled field could be the one that ends or
// limits a token.
func parseTokens(text []byte) ([]Token, error) {
	var list tokenList
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty: remove it, and the next token creates it again")
		}
		return nil, readable(err)
	}
	if name := duplicateName(json.NewDecoder(bytes.NewReader(text))); name != "" {
		return nil, fmt.Errorf("%q occurs twice in one object: give it once", name)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list of tokens")
	}
	if len(list.Tokens) > maxTokens {
		return nil, fmt.Errorf("it holds %d tokens, %d are the most", len(list.Tokens), maxTokens)
	}
	names, sums := map[string]bool{}, map[string]bool{}
	for i, t := range list.Tokens {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if names[t.Name] || sums[t.SHA256] {
			return nil, fmt.Errorf("token %d: the name %q or its sha256 appears twice", i+1, t.Name)
		}
		names[t.Name], sums[t.SHA256] = true, true
	}
	return list.Tokens, nil
}

// readable returns a decoding error in the words of the file, with what to do.
func readable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return fmt.Errorf(`it holds a JSON %s: {"tokens": […]} is expected`, wrong.Value)
		}
		return fmt.Errorf("%s is a %s: a value of another kind is expected", wrong.Field, wrong.Value)
	}
	if date, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Errorf("%s is not a time such as 2026-12-31T00:00:00Z", strings.TrimSpace(date.Value))
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("it is not JSON at byte %d: correct it, or remove it and add the tokens again", syntax.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut off: correct it, or remove it and add the tokens again")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // encoding/json has no type for it
		return fmt.Errorf("it has the member %s, which toolhost does not know: correct its name or remove it", name)
	}
	return err
}

// duplicateName returns a member that an object has twice, or "". The decoder silently takes the last one, even if it
// is the expiry of a token. It ignores the case of letters, and so does duplicateName.
func duplicateName(dec *json.Decoder) (name string) {
	open, _ := dec.Token() // what was decoded before has no errors
	if open != json.Delim('{') && open != json.Delim('[') {
		return ""
	}
	for seen := map[string]bool{}; dec.More(); {
		if open == json.Delim('{') {
			key, _ := dec.Token()
			member, _ := key.(string)
			if seen[strings.ToLower(member)] {
				return member
			}
			seen[strings.ToLower(member)] = true
		}
		if name := duplicateName(dec); name != "" {
			return name
		}
	}
	_, _ = dec.Token() // its end
	return ""
}

// CheckName returns an error if no token may have this name.
func CheckName(name string) error {
	if usableName(name) {
		return nil
	}
	return fmt.Errorf("the name %q is not one to %d letters, digits, dots, dashes or underscores, beginning with a "+
		"letter or digit", name, maxName)
}

func (t Token) check() error {
	if err := CheckName(t.Name); err != nil {
		return err
	}
	switch sum, err := hex.DecodeString(t.SHA256); {
	case err != nil || len(sum) != sha256.Size || strings.ToLower(t.SHA256) != t.SHA256:
		return fmt.Errorf("the sha256 of %q is not 64 hexadecimal digits", t.Name)
	case t.Rights == 0:
		return fmt.Errorf("%q has no rights: name some of read, write and exec", t.Name)
	}
	if t.Root != "" && (!filepath.IsAbs(t.Root) || filepath.Clean(t.Root) != t.Root) {
		return fmt.Errorf("the root %q of %q is not a clean absolute path", t.Root, t.Name)
	}
	for _, server := range t.Servers {
		if strings.Trim(server, letters+"_-") != "" || server == "" {
			return fmt.Errorf("the server %q of %q is not named in letters, digits, dashes and underscores, as `toolhost mcp "+
				"list` names it", server, t.Name)
		}
	}
	return nil
}
