package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// trustFile is the trust store, in the state directory. It is replaced by
// rename, so that readers need no lock.
const trustFile = "trust.json"

// A trusted workspace is one whose loosening content its user has accepted.
type trusted struct {
	Root string `json:"root"` // symbolic links resolved
	// SHA256 is over the accepted content.
	SHA256 string    `json:"sha256"`
	Since  time.Time `json:"since"`
}

// trustStore is the content of trustFile.
type trustStore struct {
	Workspaces map[string]trusted `json:"workspaces"` // by root
	// Files are the digests of files that the host runs outside of the sandbox and a person agreed to, by name; Lines
	// the command lines that named them, by hash, with the time when each was first seen: see [CheckFiles].
	Files map[string]string    `json:"files,omitempty"`
	Lines map[string]time.Time `json:"lines,omitempty"`
}

// equal reports whether both trust the same content.
func (t *trustStore) equal(other *trustStore) bool {
	return maps.EqualFunc(t.Workspaces, other.Workspaces, func(a, b trusted) bool { return a.SHA256 == b.SHA256 })
}

// A review is the loosening content of one workspace, or a file that the host runs outside of the sandbox.
type review struct {
	Root string
	File bool // Root is a file, not a directory
	// Entries is what trust would let take effect; Text holds key and value.
	Entries []Entry

	// Digest identifies the loosening content, whatever its order, its comments and the files that contain it: SHA-256 in
	// hexadecimal.
	Digest string
	cfg    Config
}

// Inspect reads the loosening content of root's files, for its user to look at
// before trusting it.
func Inspect(cfg Config, root string) (*review, error) {
	if info, err := os.Stat(root); err != nil {
		return nil, fmt.Errorf("workspace %s: %w", root, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("workspace %s is not a directory", root)
	}
	r := &review{Root: canonical(root), cfg: cfg}
	cfg.Roots = []string{r.Root}
	words := newKeySet()
	for _, src := range cfg.sources() {
		if src.workspace == "" {
			continue
		}
		text, _, err := readRegular(src.file)
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("settings file: %w", err)
		}
		l, err := parse(src, words, text)
		if err != nil && src.servers {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, l.loosening(words)...)
	}
	r.Digest = itemsOf(r.Entries).digest()
	return r, nil
}

// Trust accepts exactly the content that was read, whatever the files contain now.
func (r *review) Trust() error {
	if r.File {
		return r.trustFile()
	}
	return editTrust(r.cfg, func(store *trustStore) error {
		store.Workspaces[r.Root] = trusted{Root: r.Root, SHA256: r.Digest,
			Since: time.Now().UTC().Truncate(time.Second)}
		return nil
	})
}

// Revoke withdraws the trust in root. It returns an error if there was none.
func Revoke(cfg Config, root string) error {
	root = canonical(root)
	return editTrust(cfg, func(store *trustStore) error {
		if _, ok := store.Workspaces[root]; !ok {
			return fmt.Errorf("workspace %s is not trusted: nothing to revoke", root)
		}
		delete(store.Workspaces, root)
		return nil
	})
}

// ListTrusted returns the trusted workspaces by name.
func ListTrusted(cfg Config) ([]trusted, error) {
	store, err := readTrust(cfg, readRegular)
	if err != nil {
		return nil, err
	}
	var list []trusted
	for _, root := range slices.Sorted(maps.Keys(store.Workspaces)) {
		list = append(list, store.Workspaces[root])
	}
	return list, nil
}

// digest identifies a set of loosening content, whatever its order, its
// comments and the files that contain it.
func (a items) digest() string {
	sum := sha256.New()
	for _, text := range slices.Sorted(maps.Keys(a)) {
		fmt.Fprintf(sum, "%d:%s\n", len(text), text) // the length keeps entries apart
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// readTrust reads the store; one that is absent is empty.
func readTrust(cfg Config, read func(string) ([]byte, os.FileInfo, error)) (*trustStore, error) {
	store := &trustStore{Workspaces: map[string]trusted{}}
	if cfg.StateDir == "" {
		return store, nil
	}
	file := filepath.Join(cfg.StateDir, trustFile)
	text, info, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return store, nil
	}
	if err != nil {
		return nil, fmt.Errorf("trust store: %w", err)
	}
	if !privatefile.Ours(info) {
		return nil, fmt.Errorf("trust store %s belongs to another user: remove it and trust your workspaces again", file)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("trust store %s can be written by other users: run chmod 600 on it", file)
	}
	if err := json.Unmarshal(text, store); err != nil {
		return nil, fmt.Errorf("trust store %s is damaged (%w): remove it and trust your workspaces again", file, err)
	}
	if store.Workspaces == nil {
		store.Workspaces = map[string]trusted{}
	}
	return store, nil
}

// editTrust changes the store under its lock.
func editTrust(cfg Config, edit func(*trustStore) error) error {
	if cfg.StateDir == "" {
		return errors.New("no state directory is configured: trust cannot be remembered")
	}
	file := filepath.Join(cfg.StateDir, trustFile)
	return underLock(file, func() error {
		store, err := readTrust(cfg, readRegular)
		if err != nil {
			return err
		}
		if err := edit(store); err != nil {
			return err
		}
		text, err := json.MarshalIndent(store, "", "  ")
		if err != nil {
			return fmt.Errorf("trust store: %w", err)
		}
		return privatefile.Replace(file, append(text, '\n'))
	})
}

// underLock runs f while no other process changes file, whose directory it
// makes if need be. The lock is a file of its own: file is replaced by rename.
func underLock(file string, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make directory for %s: %w", file, err)
	}
	return privatefile.Locked(strings.TrimSuffix(file, ".json")+".lock", f)
}
