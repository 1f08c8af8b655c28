package mcpserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// TokenPrincipal is the principal of the host's single token.
const TokenPrincipal = "token"

// isOperator reports whether a principal is the owner of the machine: what is remembered for it applies to all callers.
func isOperator(principal string) bool {
	return principal == LocalPrincipal || principal == TokenPrincipal
}

// ReadToken reads the token that a file holds.
func ReadToken(file string) (string, error) { return auth.ReadToken(file) }

// Token returns the bearer token in a file, and the path of the file. Without a name it uses the file in the state
// directory. If the file does not exist, Token creates it, readable only by its owner, with a token of 128 random bits,
// and made is true.
func (h *Host) Token(file string) (token, path string, made bool, err error) {
	if err = h.stateDirErr; file != "" || err == nil {
		token, path, made, err = KeptToken(h.cfg.StateDir, file)
	}
	if err != nil && file == "" {
		return "", "", false, fmt.Errorf("the token in the state directory cannot be used: %w: name another directory with "+
			"--state-dir, or a file with --token-file", err)
	}
	if err != nil || made {
		return token, path, made, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		h.log.Warn("other users can access the token file: chmod 600 it", "file", path)
	}
	return token, path, false, nil
}

// KeptToken is [Host.Token] for a state directory.
func KeptToken(stateDir, file string) (token, path string, made bool, err error) {
	if file == "" {
		file = filepath.Join(stateDir, "token")
		if err := os.MkdirAll(stateDir, 0o700); err != nil {
			return "", "", false, fmt.Errorf("the state directory: %w", err)
		}
	}
	token, err = auth.ReadToken(file)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := rand.Text()
		err = privatefile.Create(file, []byte(fresh+"\n"))
		if err == nil {
			return fresh, file, true, nil
		}
		if errors.Is(err, fs.ErrExist) {
			token, err = auth.ReadToken(file)
		}
	}
	if err != nil {
		return "", "", false, err
	}
	return token, file, false, nil
}
