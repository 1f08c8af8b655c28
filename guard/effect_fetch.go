package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/settings"
)

// Fetch fetches a URL, or searches the web. The rules on URLs are those of WebFetch, by domain, and
// the domains of sandbox.network. The zero Fetch is refused.
type Fetch struct {
	// URL is the address without credentials, its host in ASCII.
	URL string
	// Host is the canonical host, and Port its port, in digits.
	Host, Port string
	// Own says that a task of the caller listens on the port, in its own network.
	Own bool
	// Query is the search text, for a provider that the settings name. The other fields are then
	// empty.
	Query string
}

// maxURL is the longest URL that is fetched, in bytes.
const maxURL = 2048

// usualPorts need no approval of their own.
var usualPorts = []string{"80", "443", "8080", "8443"}

// FetchOf returns the effect of fetching a URL. It refuses URLs that parsers read differently.
func FetchOf(u *url.URL) (Fetch, error) {
	switch {
	case len(u.String()) > maxURL:
		return Fetch{}, fmt.Errorf("url: expected at most %d characters, got %d", maxURL, len(u.String()))
	case u.Scheme != "http" && u.Scheme != "https":
		return Fetch{}, fmt.Errorf("url: expected http or https, got the scheme %q", u.Scheme)
	case u.User != nil:
		return Fetch{}, errors.New("url: credentials in a URL are not sent; leave out the part before the @")
	case u.Opaque != "" || u.Host == "":
		return Fetch{}, fmt.Errorf("url: expected a host, as in https://example.org/, got %q", u.Redacted())
	}
	host, err := asciiHost(u.Hostname())
	if err != nil {
		return Fetch{}, err
	}
	port := u.Port()
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return Fetch{}, fmt.Errorf("url: expected a port from 1 to 65535, got %q", port)
	} else if port != "" {
		port = strconv.FormatUint(n, 10)
	}
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	plain := *u
	plain.Host = host
	if strings.Contains(host, ":") {
		plain.Host = "[" + host + "]"
	}
	if port == "" {
		port = usual
	}
	if port != usual {
		plain.Host += ":" + port
	}
	return Fetch{URL: plain.String(), Host: host, Port: port}, nil
}

// asciiHost returns the canonical form of a host: a name in lower case and ASCII, or an address.
func asciiHost(host string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if _, isAddress := netip.ParseAddr(host); isAddress == nil {
		ascii, err = host, nil
	} else if err != nil && isASCII(host) { // names with _ are in use
		ascii, err = host, nil
	}
	if ascii = proxy.CanonicalHost(ascii); err != nil || ascii == "" {
		return "", fmt.Errorf("url: %q is not a host name", host)
	}
	last := ascii[strings.LastIndexByte(ascii, '.')+1:]
	_, isAddress := netip.ParseAddr(ascii)
	if _, number := strconv.ParseUint(last, 0, 64); isAddress != nil &&
		(number == nil || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")) {
		return "", fmt.Errorf("url: %q is an address in an unusual form; write it as 192.0.2.1", host)
	}
	return ascii, nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e || r <= ' ' })
}

// Judge implements [Effect].
func (e Fetch) Judge(j Judgment) {
	switch {
	case e.Query != "":
		j.Decide(Subject{What: "search the web for " + e.Query, ReadOnly: true, Rule: j.Tool(), AlwaysAllow: true})
		return
	case e.Host == "":
		return
	}
	s := Subject{
		What: "fetch " + e.URL, Form: "WebFetch", ReadOnly: true, Rule: "WebFetch(domain:" + e.Host + ")",
		AlwaysAllow: true,
		Matches:     e.matches,
		loosely:     func(specifier string) bool { return pathname.Text(domainOf(specifier), e.Host) },
	}
	data := j.judge.data
	if r := e.listed(data.sandbox.Network.DeniedDomains); r != nil {
		j.Add(Part{What: s.What, Action: Deny, Rule: "sandbox.network.deniedDomains", Source: r.Where(), Final: true,
			Reason: "The host " + e.Host + " is denied by sandbox.network.deniedDomains.",
			Remedy: "Do not look for a way around it. " + stopAndAsk})
	}
	allowed := e.listed(data.sandbox.Network.AllowedDomains)
	if e.Own {
		allowed = &settings.Entry{File: builtIn}
	}
	if allowed != nil && j.strict(data.deny, s) == nil && j.strict(data.ask, s) == nil {
		p := Part{What: s.What, Action: Allow, Rule: "sandbox.network.allowedDomains", Source: allowed.Where(),
			Reason: "The settings allow the host."}
		if e.Own {
			p.Rule, p.Reason = ruleOwnPort, "A task of this caller listens there."
		}
		j.Add(p)
	} else {
		j.Decide(s)
	}
	if !e.Own && !slices.Contains(usualPorts, e.Port) && data.mode != settings.ModeBypass &&
		!data.web.opened(e.Host, e.Port) {
		j.Add(Part{What: s.What, Action: Ask, Rule: rulePort, Source: builtIn, Final: true, Reason: "Port " + e.Port +
			" is not a usual port of web pages.",
			Remedy: "A person can agree, or add " + strconv.Quote(e.Host+":"+e.Port) +
				" to web.allowPrivate of the user settings."})
	}
}

// Rules of this host on fetches.
const (
	ruleOwnPort = "port of a task"
	rulePort    = "unusual port"
)

func (e Fetch) matches(specifier string) bool {
	domain := domainOf(specifier)
	return domain != "" && proxy.MatchesAny([]string{domain}, e.Host, e.Port)
}

// listed returns the first entry that names the host, nil if none does.
func (e Fetch) listed(entries []settings.Entry) *settings.Entry {
	for i := range entries {
		if proxy.MatchesAny([]string{asciiPattern(entries[i].Text)}, e.Host, e.Port) {
			return &entries[i]
		}
	}
	return nil
}

// domainOf returns the pattern of domain:pattern, "" for another specifier.
func domainOf(specifier string) string {
	name, domain, _ := strings.Cut(specifier, ":")
	if strings.TrimSpace(name) != "domain" {
		return ""
	}
	return asciiPattern(domain)
}

// asciiPattern returns a pattern of hosts in the form that canonical hosts are compared with.
func asciiPattern(pattern string) string {
	pattern = strings.ToLower(strings.TrimSpace(pattern))
	name, wild := strings.CutPrefix(pattern, "*.")
	if ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, ".")); err == nil && !isASCII(name) {
		name = ascii
	}
	if wild {
		return "*." + name
	}
	return name
}

// Permission implements [Effect].
func (Fetch) Permission() Permission { return ToExec }

// Record implements [Effect].
func (e Fetch) Record() (field, value string) {
	if e.Query != "" {
		return "search", e.Query
	}
	return "fetch", e.URL
}

// HookResponse returns the response that hooks get, with Claude Code's names.
func (Fetch) HookResponse(text string) map[string]any { return map[string]any{"result": text} }

func (e Fetch) describe() Description {
	what := "fetch " + e.URL
	if e.Query != "" {
		what = "search the web for " + e.Query
	}
	return Description{Items: []Item{{What: what, danger: reaches}}}
}

func (e Fetch) summary() string { return "" }
