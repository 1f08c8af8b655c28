package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard"
)

// Limits of robots.txt.
const (
	maxRobots    = 512 << 10 // bytes that are read of it
	robotsTime   = time.Hour // it is kept for
	robotsWait   = Timeout / 4
	maxRobotsKey = 1000 // sites whose rules are kept
)

// robotsCache holds the rules of sites.
type robotsCache struct {
	mu   sync.Mutex
	all  map[string]robotsRules
	till map[string]time.Time
}

// robotsAllow returns an error if the robots.txt of the site disallows a hop.
func (c *Client) robotsAllow(ctx context.Context, r *Request, f guard.Fetch, u *url.URL) error {
	if f.Own || r.Web.IgnoresRobots() || u.Path == "/robots.txt" {
		return nil
	}
	site := u.Scheme + "://" + u.Host
	c.robots.mu.Lock()
	rules, known := c.robots.all[site]
	known = known && time.Now().Before(c.robots.till[site])
	c.robots.mu.Unlock()
	if !known {
		rules = c.fetchRobots(ctx, r, u)
		if ctx.Err() != nil {
			return c.failure(ctx, f, ctx.Err())
		}
		c.robots.mu.Lock()
		if c.robots.all == nil || len(c.robots.all) >= maxRobotsKey {
			c.robots.all, c.robots.till = map[string]robotsRules{}, map[string]time.Time{}
		}
		c.robots.all[site], c.robots.till[site] = rules, time.Now().Add(robotsTime)
		c.robots.mu.Unlock()
	}
	if rules.allow(u) {
		return nil
	}
	return fmt.Errorf("robots.txt of %s does not want %s to be fetched by programs, which this host respects. A person "+
		"can change that: \"web\": {\"robots\": \"ignore\"} in the user settings",
		f.Host, u.EscapedPath())
}

// fetchRobots fetches the rules of a site, and follows redirects. If they cannot be fetched, there are no rules.
func (c *Client) fetchRobots(ctx context.Context, r *Request, u *url.URL) robotsRules {
	ctx, cancel := context.WithTimeout(ctx, robotsWait)
	defer cancel()
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	for range maxRedirects + 1 {
		hop, to, err := r.Hop(at)
		if err != nil || hop.Own || r.May(hop) != nil {
			return nil
		}
		resp := &Response{}
		if err := c.exchange(ctx, r, hop, to, resp); err != nil {
			return nil
		}
		if at = redirect(resp); at == nil {
			if resp.Status != http.StatusOK {
				return nil
			}
			agent, _, _ := strings.Cut(c.userAgent(r), "/")
			return parseRobots(resp.Body[:min(len(resp.Body), maxRobots)], agent)
		}
	}
	return nil
}

// robotsRules are the rules of a site for this client, as RFC 9309 defines them.
type robotsRules []robotsRule

type robotsRule struct {
	path  string
	allow bool
}

// parseRobots returns the rules for agent: those of all groups that name it. If none does, it returns those for every
// program.
func parseRobots(text []byte, agent string) robotsRules {
	var own, others robotsRules
	named, every, inGroup, found := false, false, false, false
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	lines.Buffer(nil, maxRobots+1)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		field, value, ok := strings.Cut(line, ":")
		field, value = strings.ToLower(strings.TrimSpace(field)), strings.TrimSpace(value)
		if !ok {
			continue
		}
		switch field {
		case "user-agent":
			if inGroup {
				named, every, inGroup = false, false, false
			}
			product, _, _ := strings.Cut(value, "/")
			named = named || strings.EqualFold(product, agent)
			every = every || value == "*"
			found = found || named
		case "allow", "disallow":
			inGroup = true
			if value == "" {
				continue
			}
			rule := robotsRule{normalPath(value), field == "allow"}
			if named {
				own = append(own, rule)
			}
			if every {
				others = append(others, rule)
			}
		}
	}
	if found {
		return own
	}
	return others
}

// normalPath returns a path or pattern without escapes, so that different spellings of a path compare equal.
func normalPath(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// allow reports whether a URL may be fetched: the longest rule that matches decides.
func (rules robotsRules) allow(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	path = normalPath(path)
	longest, allowed := -1, true
	for _, r := range rules {
		if n := len(r.path); (n > longest || n == longest && r.allow) && robotsMatch(r.path, path) {
			longest, allowed = n, r.allow
		}
	}
	return allowed
}

// robotsMatch reports whether a path begins with a pattern. In the pattern * matches anything, and a $ at the end
// matches the end of the path.
func robotsMatch(pattern, path string) bool {
	pattern, whole := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(path, parts[0]) {
		return false
	}
	path = path[len(parts[0]):]
	for i, part := range parts[1:] {
		if whole && i == len(parts)-2 {
			return strings.HasSuffix(path, part)
		}
		at := strings.Index(path, part)
		if at < 0 {
			return false
		}
		path = path[at+len(part):]
	}
	return !whole || path == ""
}
