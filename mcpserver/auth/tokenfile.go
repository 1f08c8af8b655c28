package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// watchEvery is how soon the open streams of a revoked token are closed. New requests notice at once.
	watchEvery = time.Second
	// settleTime is how long after its modification a file is read again even if it looks the same: two changes within
	// one tick of the file system's clock look like one.
	settleTime = 100 * time.Millisecond
)

// A TokenFile verifies the tokens in a file, which may change at any time: each request checks whether it has (a stat,
// about 2 µs). A missing file holds no tokens. If the file is invalid, the last valid state stays in force.
type TokenFile struct {
	path string
	log  *slog.Logger

	mu        sync.Mutex
	lastInfo  fs.FileInfo // the file at the last check; nil: missing
	problem   error       // why it was invalid then
	recent    bool        // it had just been changed
	complaint string      // the last logged problem
	entries   []tokenEntry

	watch   sync.Once
	closing chan struct{}
	closed  sync.Once
	watcher sync.WaitGroup
}

// tokenEntry is a token in force.
type tokenEntry struct {
	Token
	sum    [sha256.Size]byte
	valid  context.Context
	revoke context.CancelFunc
}

// OpenTokenFile reads a tokens file. It returns an error if the file is malformed, or if others than its owner can read
// or change it. Close it when no more requests will come.
func OpenTokenFile(path string, log *slog.Logger) (*TokenFile, error) {
	f := &TokenFile{path: path, log: log, closing: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Verify implements [Verifier].
func (f *TokenFile) Verify(_ context.Context, bearer string) (Identity, error) {
	if bearer == "" {
		return Identity{}, refuse(Missing, "no token was sent")
	}
	sum := sha256.Sum256([]byte(bearer))
	var found *tokenEntry
	all := f.current()
	for i := range all { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare(sum[:], all[i].sum[:]) == 1 {
			found = &all[i]
		}
	}
	if found == nil {
		return Identity{}, refuse(Invalid, unknownToken)
	}
	if found.Expired(time.Now()) {
		return Identity{}, refuse(expiredToken, "the token %q expired at %s", found.Name,
			found.Expires.UTC().Format(time.RFC3339))
	}
	f.watch.Do(f.startWatch)
	return Identity{Principal: tokenPrincipal(found.Name), Rights: found.Rights, Servers: found.Servers,
		Root: found.Root, Expires: found.Expires, Valid: found.valid}, nil
}

// Close ends the watch of the file.
func (f *TokenFile) Close() {
	f.watch.Do(func() {}) // nothing starts any more
	f.closed.Do(func() { close(f.closing) })
	f.watcher.Wait()
}

// startWatch checks the file even when no request arrives, once there can be a stream that must end.
func (f *TokenFile) startWatch() {
	f.watcher.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.current()
			case <-f.closing:
				return
			}
		}
	})
}

// current returns the tokens that are now in force.
func (f *TokenFile) current() []tokenEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.reload()
	switch {
	case err == nil:
		f.complaint = ""
	case err.Error() != f.complaint:
		f.complaint = err.Error()
		f.log.Error("the tokens file cannot be believed, what it said last stays in force", "error", err)
	}
	return f.entries
}

// reload reads the file if it has changed. On an error the state is unchanged. The caller holds the lock.
func (f *TokenFile) reload() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if f.lastInfo != nil {
			f.log.Warn("the tokens file is gone, and with it every token in it", "file", f.path)
		}
		f.replace(nil)
		f.lastInfo, f.problem = nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("the tokens file: %w", err)
	}
	if !f.recent && same(info, f.lastInfo) {
		return f.problem
	}
	tokens, err := readTokens(f.path)
	// The file may be newer than info by now. The next check then finds that it has changed, and reads it again.
	f.lastInfo, f.problem, f.recent = info, err, time.Since(info.ModTime()) < settleTime
	if err != nil {
		return err
	}
	f.replace(tokens)
	return nil
}

// same reports whether a file is unchanged.
func same(now, then fs.FileInfo) bool {
	return then != nil && now.ModTime().Equal(then.ModTime()) && now.Size() == then.Size() &&
		now.Mode() == then.Mode() && os.SameFile(now, then)
}

func sameServers(a, b []string) bool { return slices.Equal(a, b) && (a == nil) == (b == nil) }

// replace puts tokens in force. The streams of unchanged tokens continue; those of all others end.
func (f *TokenFile) replace(tokens []Token) {
	old := f.entries
	f.entries = make([]tokenEntry, 0, len(tokens)) // a new one: the old is in use without the lock
	kept := map[context.Context]bool{}
	for _, t := range tokens {
		h := tokenEntry{Token: t}
		_, _ = hex.Decode(h.sum[:], []byte(t.SHA256)) // it was checked
		for _, o := range old {
			if o.SHA256 == t.SHA256 && o.Name == t.Name && o.Rights == t.Rights && sameServers(o.Servers, t.Servers) &&
				o.Root == t.Root && o.Expires.Equal(t.Expires) {
				h.valid, h.revoke = o.valid, o.revoke
				kept[o.valid] = true
			}
		}
		if h.valid == nil {
			h.valid, h.revoke = context.WithCancel(context.Background())
		}
		f.entries = append(f.entries, h)
	}
	for _, o := range old {
		if !kept[o.valid] {
			o.revoke()
		}
	}
}
