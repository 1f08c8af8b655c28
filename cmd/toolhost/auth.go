package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// authFlags are the flags that authorize HTTP callers.
type authFlags struct {
	tokenFile, tokens             string
	issuer, audience, scopePrefix string
}

// prefixFlag is the one flag whose value may be empty: no prefix.
const prefixFlag = "oauth-scope-prefix"

func (f *authFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.tokenFile, "token-file", "",
		"the `FILE` that holds the bearer token with every right (default: one is made and kept in the state directory; with --oauth-issuer: none)")
	addTokens(flags, &f.tokens)
	flags.StringVar(&f.issuer, "oauth-issuer", "", "take access tokens of the authorization server at this `URL`")
	flags.StringVar(&f.audience, "oauth-audience", "",
		"the `AUDIENCE` that access tokens must be for: best the address of the endpoint, such as https://tools.example.com/mcp")
	flags.StringVar(&f.scopePrefix, prefixFlag, "",
		"the `PREFIX` of the scopes read, write and exec, such as \"toolhost:\"")
}

func addTokens(flags *pflag.FlagSet, tokens *string) {
	flags.StringVar(tokens, "tokens", "", "the `FILE` of named tokens (default: tokens.json in the state directory)")
}

// tokensFile returns the path of the file of named tokens.
func tokensFile(named, stateDir string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	dir, err := (&hostFlags{stateDir: stateDir}).stateDirectory()
	return filepath.Join(dir, "tokens.json"), err
}

// literally returns a pattern that matches this path only. White space at the end of a rule counts only in brackets.
func literally(path string) string {
	var b strings.Builder
	for path != "" {
		r, n := utf8.DecodeRuneInString(path) // a name need not be UTF-8
		switch {
		case strings.ContainsRune(`\*?[`, r):
			b.WriteString(`\` + path[:n])
		case unicode.IsSpace(r):
			b.WriteString("[" + path[:n] + "]")
		default:
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

// protectFiles denies tools the files with secrets or permissions that flags name. Files in the state directory are
// out of reach of tools already.
func protectFiles(cfg *mcpserver.Config, files ...string) error {
	for _, file := range files {
		if file == "" {
			continue
		}
		abs, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		cfg.Obeyed = append(cfg.Obeyed, abs)
		cfg.Deny = append(cfg.Deny, "Read(/"+literally(filepath.ToSlash(abs))+")")
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			cfg.Deny = append(cfg.Deny, "Read(/"+literally(filepath.ToSlash(real))+")")
		}
	}
	return nil
}

// callers holds the authorized callers, and what is announced about them.
type callers struct {
	mcpserver.HTTPConfig
	token, file string // of the single token, if there is one
	made        bool
	close       func()
}

// open creates the verifiers that the flags configure. single returns the token with every right in a file.
func (f *authFlags) open(ctx context.Context, single func(file string) (string, string, bool, error),
	cfg mcpserver.Config) (*callers, error) {
	if f.issuer == "" && (f.audience != "" || f.scopePrefix != "") {
		return nil, usageError{errors.New("--oauth-audience and --oauth-scope-prefix say nothing without --oauth-issuer")}
	}
	var known auth.Any
	w := &callers{}
	if f.issuer == "" || f.tokenFile != "" {
		var err error
		if w.token, w.file, w.made, err = single(f.tokenFile); err != nil {
			return nil, err
		}
		owner, err := auth.NewStaticToken(w.token, mcpserver.TokenPrincipal)
		if err != nil {
			return nil, err
		}
		known, w.Warm = append(known, owner), mcpserver.TokenPrincipal
	}
	if f.issuer != "" {
		issuer, err := auth.NewOAuth(auth.OAuthConfig{Issuer: f.issuer, Audience: f.audience,
			ScopePrefix: f.scopePrefix})
		if err != nil {
			return nil, usageError{err} // no request was sent yet
		}
		metadata := issuer.Metadata()
		known, w.Metadata = append(known, issuer), &metadata
		go func() {
			if err := issuer.Ready(ctx); err != nil {
				cfg.Log.Warn("access tokens are refused until the issuer tells its keys: check --oauth-issuer", "error", err, "cause",
					errors.Unwrap(err))
			}
		}()
	}
	named, err := f.openTokens(cfg)
	if err != nil {
		return nil, err
	}
	w.Verifier, w.close = append(known, named), named.Close
	return w, nil
}

// openTokens opens the file of named tokens. A file that a flag names must exist; the default file may be created
// later.
func (f *authFlags) openTokens(cfg mcpserver.Config) (*auth.TokenFile, error) {
	path, err := tokensFile(f.tokens, cfg.StateDir)
	if err != nil {
		return nil, err
	}
	if f.tokens != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("--tokens: %w: make a token first, with toolhost token add NAME --tokens %s", err,
				path)
		}
	}
	return auth.OpenTokenFile(path, cfg.Log)
}
