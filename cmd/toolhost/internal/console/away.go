package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/settings"
)

// A person who is away from the console gets the first line of a question and a link to it, through a webhook or a
// topic of ntfy. Anyone who can read the message can open the link, so the link alone does not allow an answer: a
// browser can answer only after a person has typed in, once, the code that the console shows. The link is signed,
// valid until its question ends, and bound to one browser. No GET changes anything, because programs that preview the
// links in a chat send GETs.

const (
	// linkAge is how long the link to a question without an end is valid.
	linkAge = 15 * time.Minute
	// awayDelay is how long to wait with the announcement of a question that a page shows.
	awayDelay = 15 * time.Second
	// sendTime bounds the sending of an announcement, and maxSending how many are sent at once.
	sendTime, maxSending = 10 * time.Second, 4
	// maxWrong is how many wrong codes close the link to a question.
	maxWrong = 5
	// browserAge is how long a browser need not type the code again.
	browserAge = 30 * 24 * time.Hour
	// secretName is the name of the file, in the state directory, with the secret that codes and cookies are derived
	// from.
	secretName = "away"
	// ntfyScheme marks the address of a topic of ntfy.
	ntfyScheme = "ntfy+"
)

// An away announces questions, and knows the browsers that may answer them.
type away struct {
	notify  string // where announcements go, without ntfyScheme
	ntfy    bool
	origin  *url.URL
	secret  []byte // kept in the state directory, so it outlives the host
	key     []byte // of this process, because each process numbers its questions from 1
	client  *http.Client
	sending chan struct{}
	log     *slog.Logger
}

// newAway checks the settings. It returns nil if they do not ask for announcements.
func newAway(set settings.Approvals, state string, log *slog.Logger) (*away, error) {
	if set == (settings.Approvals{}) {
		return nil, nil
	}
	if set.Notify == "" || set.Origin == "" || set.Listen == "" {
		return nil, errors.New("approvals.notify, approvals.origin and approvals.listen are needed together")
	}
	a := &away{key: make([]byte, sha256.Size), sending: make(chan struct{}, maxSending), log: log}
	_, _ = rand.Read(a.key) // crypto/rand never fails
	a.notify, a.ntfy = strings.CutPrefix(set.Notify, ntfyScheme)
	to, err := url.Parse(a.notify)
	if err != nil || to.Host == "" || to.Scheme != "https" && (to.Scheme != "http" || !isLoopbackHost(to.Host)) {
		return nil, errors.New("approvals.notify: expected the https:// address of a webhook, or ntfy+https://SERVER/TOPIC")
	}
	if a.origin, err = url.Parse(set.Origin); err != nil || !isOrigin(a.origin) {
		return nil, fmt.Errorf("approvals.origin: expected an address such as https://asks.example.com without a path, "+
			"got %q",
			set.Origin)
	}
	if err := loopbackOnly(set.Listen); err != nil || strings.HasSuffix(set.Listen, ":0") {
		return nil, fmt.Errorf("approvals.listen: expected a loopback address with a port, such as 127.0.0.1:8390, got %q",
			set.Listen)
	}
	if a.secret, err = privatefile.Secret(state, secretName); err != nil {
		return nil, err
	}
	a.client = &http.Client{
		Timeout: sendTime, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a, nil
}

// isOrigin reports whether an address consists of https and a host only.
func isOrigin(u *url.URL) bool {
	rest := strings.Trim(u.Path, "/") + u.RawQuery + u.Fragment
	return u.Scheme == "https" && u.Host != "" && rest == "" && u.User == nil
}

// sum returns a keyed digest of parts, which differs for each purpose.
func sum(key []byte, purpose string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s\x00", purpose)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// code returns the code that a person types in a new browser: 40 bits, as ABCD-EFGH.
func (a *away) code() string {
	text := base32.StdEncoding.EncodeToString(sum(a.secret, "code")[:5])
	return text[:4] + "-" + text[4:]
}

// isCode reports whether typed is the code.
func (a *away) isCode(typed string) bool {
	plain := func(s string) []byte {
		return sum(a.key, "typed", []byte(strings.NewReplacer("-", "", " ", "").Replace(strings.ToUpper(s))))
	}
	return hmac.Equal(plain(typed), plain(a.code()))
}

// link returns the token of the link to a question.
func (a *away) link(q *question) string {
	end := q.Until
	if end.IsZero() {
		end = q.Since.Add(linkAge)
	}
	raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, q.ID), uint64(end.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(raw, sum(a.key, "link", raw)...))
}

// errLink is the error for a link that does not open a question. It does not say more, because anyone may try.
var errLink = errors.New("this link opens no question: it was answered, has ended, or is not from this host")

// question returns the number of the question that a token opens at this time.
func (a *away) question(token string, now time.Time) (uint64, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != 16+sha256.Size || !hmac.Equal(raw[16:], sum(a.key, "link", raw[:16])) {
		return 0, errLink
	}
	if end := binary.BigEndian.Uint64(raw[8:]); uint64(now.Unix()) >= end {
		return 0, errLink
	}
	return binary.BigEndian.Uint64(raw), nil
}

// newBrowser returns a cookie value for a browser in which the code was typed.
func (a *away) newBrowser(now time.Time) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(now.Add(browserAge).Unix()))
	raw = append(raw, rand.Text()...)
	return base64.RawURLEncoding.EncodeToString(append(raw, sum(a.secret, "browser", raw)...))
}

// isBrowser reports whether a cookie value is one that newBrowser has returned, and has not expired.
func (a *away) isBrowser(value string, now time.Time) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || len(raw) < 8+sha256.Size {
		return false
	}
	body, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	return hmac.Equal(mac, sum(a.secret, "browser", body)) && uint64(now.Unix()) < binary.BigEndian.Uint64(body)
}

// formToken returns the token in the form of a link, for one browser.
func (a *away) formToken(token, browser string) string {
	return base64.RawURLEncoding.EncodeToString(sum(a.key, "form", []byte(token), []byte{0}, []byte(browser)))
}

// bind binds the link of a question to the first browser in which a person presses a button. It reports an error for
// any other browser.
func (c *Console) bind(id uint64, browser string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.waits(id)
	switch {
	case q == nil || q.wrong >= maxWrong:
		return errLink
	case q.browser != "" && q.browser != browser:
		return errors.New("this link was opened in another browser, and only that one can answer. " +
			"If that was not you, answer at the console, and take a new topic or webhook")
	}
	q.browser = browser
	return nil
}

// tried counts a wrong code.
func (c *Console) tried(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.waits(id); q != nil {
		q.wrong++
	}
}

// announce sends the first line of a question and its link in the background.
func (c *Console) announce(ctx context.Context, q *question) {
	c.mu.Lock()
	a, watched := c.away, c.pages > 0
	c.mu.Unlock()
	if a == nil {
		return
	}
	go func() {
		if watched {
			select {
			case <-time.After(awayDelay):
			case <-ctx.Done():
				return
			}
		}
		select {
		case a.sending <- struct{}{}:
			defer func() { <-a.sending }()
		case <-ctx.Done():
			return
		}
		if err := a.send(ctx, q); err != nil && ctx.Err() == nil {
			a.log.Warn("a question could not be announced", "error", err)
		}
	}()
}

// send sends an announcement. Its errors do not contain the address, which is a secret.
func (a *away) send(ctx context.Context, q *question) error {
	link := a.origin.Scheme + "://" + a.origin.Host + address("q", a.link(q))
	first := unlinked(cmp.Or(q.Asked.Gist, q.Asked.Tool+" asks"))
	body, kind := []byte(first), "text/plain; charset=utf-8"
	if !a.ntfy {
		text := "`" + first + "`\n" + link
		body, _ = json.Marshal(map[string]string{"text": text, "content": text, "link": link}) // strings always encode
		kind = "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.notify, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used")
	}
	req.Header.Set("Content-Type", kind)
	if a.ntfy {
		req.Header.Set("Title", "An agent asks")
		req.Header.Set("Click", link)
		req.Header.Set("Cache", "no")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<10) // only the status matters
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s", req.URL.Host, resp.Status)
	}
	return nil
}

// unlinked returns a line in which chat programs find neither links nor markup: an agent has written a part of it.
func unlinked(line string) string {
	return strings.NewReplacer("://", "[:]//", "`", "'", "<", "‹", ">", "›", "@", "(at)").Replace(line)
}
