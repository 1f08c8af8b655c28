package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	// maxTokenFile bounds a tokens file, in bytes: [maxTokens] of some 250 bytes each.
	maxTokenFile = 1 << 20
)

// AddToken makes a token, notes it in the file, and returns it: it cannot be had again. A lifetime of zero has no
// end. Root is the directory that its bearer works in; "": the roots of the host. Servers are the other servers that
// it may use; nil: all of them. The file is made if need be, for its owner only.
func AddToken(file, name string, rights Rights, lifetime time.Duration, root string, servers ...string) (bearer string,
	t Token, err error) {
	if lifetime < 0 {
		return "", t, fmt.Errorf("a token cannot live for %s", lifetime)
	}
	bearer = newToken()
	sum := sha256.Sum256([]byte(bearer))
	now := time.Now().UTC().Truncate(time.Second)
	t = Token{Name: name, SHA256: hex.EncodeToString(sum[:]), Rights: rights, Created: now, Root: root,
		Servers: servers}
	if lifetime > 0 {
		t.Expires = now.Add(lifetime)
	}
	if err := t.check(); err != nil {
		return "", t, err
	}
	err = editTokens(file, func(all []Token) ([]Token, error) {
		if slices.ContainsFunc(all, func(o Token) bool { return o.Name == name }) {
			return nil, fmt.Errorf("there is a token named %s: revoke it first, or choose another name", name)
		}
		if len(all) >= maxTokens {
			return nil, fmt.Errorf("%s holds %d tokens, which are the most: revoke some", file, len(all))
		}
		return append(all, t), nil
	})
	if err != nil {
		return "", t, err
	}
	return bearer, t, nil
}

// RevokeToken removes a token from the file.
func RevokeToken(file, name string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) { // nothing is made on the way to nothing
		return fmt.Errorf("there is no token named %q, because there is no file %s: toolhost token add %s makes one",
			name, file, name)
	}
	return editTokens(file, func(all []Token) ([]Token, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(t Token) bool { return t.Name == name })
		if len(left) == len(all) {
			return nil, fmt.Errorf("there is no token named %q in %s", name, file)
		}
		return left, nil
	})
}

// ListTokens returns the tokens of the file by name, including expired ones. Without a file there are none.
func ListTokens(file string) ([]Token, error) {
	all, err := readTokens(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// readTokens reads a tokens file and refuses one that others than its owner could have written.
func readTokens(file string) ([]Token, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|privatefile.NoWait, 0)
	if err != nil {
		return nil, fmt.Errorf("the tokens file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("the tokens file: %w", err)
	}
	if err := private(file, info, os.Geteuid()); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, fmt.Errorf("the tokens file: %w", err)
	}
	if len(text) > maxTokenFile {
		return nil, fmt.Errorf("the tokens file %s is longer than %d bytes", file, maxTokenFile)
	}
	tokens, err := parseTokens(text)
	if err != nil {
		return nil, fmt.Errorf("the tokens file %s cannot be used: %w", file, err)
	}
	return tokens, nil
}

// private refuses a file that others than a user and root could have written or could read. A group may read what root
// gives it.
func private(file string, info fs.FileInfo, user int) error {
	others := fs.FileMode(0o077)
	if privatefile.GivenByRoot(info, user) {
		others = 0o037
	}
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("the tokens file %s is not a file", file)
	case os.PathSeparator != '/': // access lists are not examined
		return nil
	case info.Mode().Perm()&others != 0:
		return fmt.Errorf("the tokens file %s can be used by others (mode %04o): run chmod 600 on it", file,
			info.Mode().Perm())
	case !privatefile.Ours(info):
		return fmt.Errorf("the tokens file %s belongs to another user: make it yours with chown, or name another file",
			file)
	}
	return nil
}

// resolveLinks returns the file to replace when a tokens file is changed. Replacing a link, or one of several hard
// links, would leave the old tokens where a host may read them under another name: revoked tokens would stay valid.
func resolveLinks(file string) (string, error) {
	if _, err := os.Lstat(file); err != nil {
		return file, nil // the caller makes the file, or reads it and reports this error
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", fmt.Errorf("the tokens file %s is a link that leads nowhere: %w", file, err)
	}
	if info, err := os.Lstat(real); err == nil && info.Mode().IsRegular() && linkCount(info) > 1 {
		return "", fmt.Errorf("the tokens file %s has %d names (hard links), and a host that reads it by another one would "+
			"not see the change: leave only one", real, linkCount(info))
	}
	return real, nil
}

// editTokens changes the file while no other process does. Readers need no lock: they see the old content or the new.
func editTokens(file string, edit func([]Token) ([]Token, error)) (err error) {
	if file, err = resolveLinks(file); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("the directory of the tokens file: %w", err)
	}
	return privatefile.Hold(privatefile.NewLock(file+".lock"), func() error {
		all, err := readTokens(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if all, err = edit(all); err != nil {
			return err
		}
		text, err := json.MarshalIndent(tokenList{Tokens: all}, "", "  ")
		if err != nil {
			return fmt.Errorf("the tokens file: %w", err)
		}
		return privatefile.Replace(file, append(text, '\n'))
	})
}
