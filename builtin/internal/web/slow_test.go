package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/guard"
)

// TestSlow: a server that sends a byte now and then, or nothing, ends with the time of a fetch.
func TestSlow(t *testing.T) {
	for name, first := range map[string]string{
		"silent": "", "headers": "HTTP/1.1 200 OK\r\nX-A: ", "body": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", "chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := policyOf(t, "allow WebFetch")
			synctest.Test(t, func(t *testing.T) {
				c := NewClient("toolhost/test")
				u, _ := Parse("http://localhost:3000/")
				stop := make(chan struct{})
				began := time.Now()
				_, err := c.Fetch(t.Context(), Request{URL: u, Caller: "a", Web: p.Web(), May: func(guard.Fetch) error { return nil },
					OwnPort: func(string) bool { return true },
					Own: func(context.Context, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						go func() {
							defer theirs.Close()
							theirs.Read(make([]byte, 4096)) // the request: a server does not answer before it
							go io.Copy(io.Discard, theirs)
							io.WriteString(theirs, first)
							for {
								select {
								case <-stop:
									return
								case <-time.After(time.Second):
								}
								drop := "a"
								if name == "chunks" {
									drop = "1\r\na\r\n"
								}
								if name != "silent" {
									if _, err := io.WriteString(theirs, drop); err != nil {
										return
									}
								}
							}
						}()
						return ours, nil
					}})
				close(stop)
				if err == nil || !strings.Contains(err.Error(), "within 20s, the limit of this host") {
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took != Timeout {
					t.Errorf("it took %v", took)
				}
				synctest.Wait()
			})
		})
	}
}

// TestHostLimit: four requests run at one host at once, and two begin each second.
func TestHostLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hosts
		began := time.Now()
		for i := range 6 {
			done, err := h.wait(t.Context(), "a.example")
			if err != nil {
				t.Fatal(err)
			}
			done()
			if i == 1 && time.Since(began) != 0 {
				t.Errorf("the first two took %v", time.Since(began))
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("six requests took %v", took)
		}
		if _, err := h.wait(t.Context(), "b.example"); err != nil || time.Since(began) != 2*time.Second {
			t.Error("another host waits")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range atOnce {
			if _, err := h.wait(ctx, "c.example"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.wait(ctx, "c.example"); err == nil {
			t.Error("a fifth request runs")
		}
	})
}

// TestRobots: what robots.txt says counts, wherever it redirects to; what it redirects to is guarded too.
func TestRobots(t *testing.T) {
	robots, redirectTo := "", ""
	var fetched []string
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		fetched = append(fetched, r.Host+r.URL.Path)
		if r.URL.Path == "/robots.txt" {
			switch {
			case redirectTo != "" && r.Host == "example.com":
				http.Redirect(w, r, redirectTo, http.StatusFound)
			case robots == "":
				http.NotFound(w, r)
			default:
				io.WriteString(w, robots)
			}
			return
		}
		hello(w, r)
	})
	p := policyOf(t, "allow WebFetch")
	for _, tt := range []struct {
		robots, path string
		allowed      bool
	}{
		{"", "/x", true},
		{"User-agent: *\nDisallow: /", "/x", false},
		{"User-agent: *\nDisallow: /x", "/y", true},
		{"User-agent: *\nDisallow: /x\nAllow: /x/y", "/x/y/z", true},
		{"User-agent: *\nDisallow: /x\nAllow: /x/y", "/x/z", false},
		{"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow:", "/x", true},
		{"user-agent: ToolHost\ndisallow: /x\n\nUser-agent: *\nDisallow: /", "/y", true},
		{"User-agent: toolhost/1.0\nUser-agent: other\nDisallow: /x", "/x", false},
		{"User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", false},
		{"User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", true},
		{"User-agent: *\nDisallow: /*/private/", "/a/private/b", false},
		{"User-agent: *\nDisallow: /a%20b", "/a b", false},
		{"User-agent: *\nDisallow: /a%2Fb", "/a/b", false},
		{"# comment\nUser-agent: * # all\nDisallow: /x # no", "/x", false},
		{"\xef\xbb\xbfUser-agent: *\r\nDisallow: /x\r\n", "/x", false},
		{"Disallow: /", "/x", true},
		{"User-agent: *\nDisallow: /x?q", "/x?q=1", false},
		{"<html>not found</html>", "/x", true},
		{strings.Repeat("# filler\n", maxRobots/9) + "User-agent: *\nDisallow: /", "/x", true},
	} {
		robots, w.robots = tt.robots, robotsCache{}
		if _, err := w.fetch(t, p, "https://example.com"+tt.path); (err == nil) != tt.allowed || err != nil &&
			!strings.Contains(err.Error(), `"robots": "ignore"`) {
			t.Errorf("%.60q %s: %v", tt.robots, tt.path, err)
		}
		w.cache = cache{}
	}
	robots = "User-agent: *\nDisallow: /"
	if _, err := w.fetch(t, policyOf(t, "allow WebFetch", "robots"), "https://example.com/x"); err != nil {
		t.Error(err)
	}
	for to, allowed := range map[string]bool{"https://other.example/robots.txt": false, "http://169.254.169.254/": true,
		"https://denied.example/robots.txt": true, "/robots.txt": true} {
		w.robots, w.cache, fetched, redirectTo = robotsCache{}, cache{}, nil, to
		w.names["denied.example"] = []string{"93.184.216.34"}
		if _, err := w.fetch(t, policyOf(t, "allow WebFetch", "deny WebFetch(domain:denied.example)"),
			"https://example.com/x"); (err == nil) != allowed {
			t.Errorf("robots.txt redirects to %s: %v", to, err)
		}
		for _, f := range fetched {
			if strings.HasPrefix(f, "denied") || strings.HasPrefix(f, "169") {
				t.Errorf("robots.txt redirects to %s: %s was fetched", to, f)
			}
		}
	}
}
