package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Validate reports the first pattern that never matches: a denial by it would not deny.
func Validate(patterns []string) error {
	for _, p := range patterns {
		if err := validate(p); err != nil {
			return fmt.Errorf("%q: %w", p, err)
		}
	}
	return nil
}

func validate(pattern string) error {
	if strings.Contains(pattern, "/") {
		return errors.New("give a host name, not a URL")
	}
	host, port := splitPattern(pattern)
	if port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a port", port)
		}
	}
	if host == "*" {
		return nil
	}
	host = strings.TrimPrefix(host, "*.")
	switch {
	case strings.Contains(host, "*"):
		return errors.New(`a wildcard is "*" or the first part, as in "*.example.com"`)
	case CanonicalHost(host) == "":
		return errors.New(`is not a host name; names with other letters than a–z are written in their "xn--" form`)
	}
	return nil
}

// splitPattern separates the port, if there is one.
func splitPattern(pattern string) (host, port string) {
	if _, err := netip.ParseAddr(pattern); err == nil {
		return pattern, "" // the colons are the address's
	}
	if host, port, err := net.SplitHostPort(pattern); err == nil {
		return host, port
	}
	return strings.Trim(pattern, "[]"), ""
}

// CanonicalHost returns host as patterns are compared with: in lower case,
// without a final dot, addresses in their shortest form. It is empty if host is
// neither a name in ASCII nor an address.
func CanonicalHost(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > 253 {
		return ""
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return ""
		}
		for _, c := range []byte(label) {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return ""
			}
		}
	}
	return host
}

// MatchesAny reports whether a canonical host and its port match one of the patterns.
func MatchesAny(patterns []string, host, port string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, host, port) })
}

// matches reports whether a canonical host and its port match pattern.
func matches(pattern, host, port string) bool {
	want, wantPort := splitPattern(pattern)
	if wantPort != "" && wantPort != port {
		return false
	}
	if want == "*" {
		return true
	}
	if parent, ok := strings.CutPrefix(want, "*."); ok {
		_, err := netip.ParseAddr(host)
		return err != nil && strings.HasSuffix(host, "."+CanonicalHost(parent))
	}
	return host == CanonicalHost(want)
}
