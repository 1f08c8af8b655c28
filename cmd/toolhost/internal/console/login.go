package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	// SessionAge is the lifetime of a browser session.
	SessionAge = 12 * time.Hour
	// maxSessions is how many browsers can be logged in at once. Above it, the one that has been logged in longest is
	// logged out.
	maxSessions = 16
)

// errCode is the error for a code that does not open this console.
var errCode = errors.New("this code does not open the console: it was used already, or belongs to another host. Run " +
	"toolhost console to get a new link")

// A sessionStore holds the sessions of logged-in browsers, in memory only.
type sessionStore struct {
	cookie string            // its name, which differs from that of other consoles on this machine
	keep   func(code string) // stores a new code for its owner

	mu       sync.Mutex
	code     string
	sessions map[[sha256.Size]byte]session // by the digest of the cookie's value
}

// A session is a logged-in browser.
type session struct {
	token string // the token that its forms must contain
	made  time.Time
}

func newSessionStore(instance string, keep func(code string)) *sessionStore {
	d := &sessionStore{cookie: "toolhost-" + instance, keep: keep, sessions: map[[sha256.Size]byte]session{}}
	d.renewCode()
	return d
}

// renewCode creates a new code, of at least 128 random bits. The caller holds the lock, unless no other goroutine
// uses the store yet.
func (d *sessionStore) renewCode() {
	d.code = rand.Text()
	d.keep(d.code)
}

// login exchanges the code for a cookie, and replaces the code by a new one.
func (d *sessionStore) login(code string) (*http.Cookie, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	given, want := sha256.Sum256([]byte(code)), sha256.Sum256([]byte(d.code))
	if subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
		return nil, errCode
	}
	d.renewCode()
	value := rand.Text()
	d.sessions[sha256.Sum256([]byte(value))] = session{token: rand.Text(), made: time.Now()}
	d.expire()
	return &http.Cookie{
		Name: d.cookie, Value: value, Path: "/", MaxAge: int(SessionAge.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}, nil
}

// expire removes sessions that are too old, and the oldest ones if there are too many.
func (d *sessionStore) expire() {
	for {
		var oldest [sha256.Size]byte
		var made time.Time
		for key, s := range d.sessions {
			if time.Since(s.made) > SessionAge {
				delete(d.sessions, key)
			} else if made.IsZero() || s.made.Before(made) {
				oldest, made = key, s.made
			}
		}
		if len(d.sessions) <= maxSessions {
			return
		}
		delete(d.sessions, oldest)
	}
}

// session returns the session of a request.
func (d *sessionStore) session(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(d.cookie)
	if err != nil {
		return session{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[sha256.Sum256([]byte(cookie.Value))]
	return s, ok && time.Since(s.made) <= SessionAge
}

// logout ends the session of a request.
func (d *sessionStore) logout(r *http.Request) {
	if cookie, err := r.Cookie(d.cookie); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.sessions, sha256.Sum256([]byte(cookie.Value)))
	}
}

// hasToken reports whether a form carries the token of its session.
func (s session) hasToken(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(s.token)) == 1
}
