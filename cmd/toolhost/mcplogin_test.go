package main

import (
	"fmt"
	"testing"
)

// TestOpeners: what opens the page of a login.
func TestOpeners(t *testing.T) {
	for _, tt := range []struct{ system, browser, want string }{
		{"linux", "", "[[xdg-open A]]"},
		{"linux", "/usr/bin/firefox", "[[/usr/bin/firefox A] [xdg-open A]]"},
		{"linux", "/usr/bin/w3m -dump %s:/usr/bin/lynx", "[[/usr/bin/w3m -dump A] [/usr/bin/lynx A] [xdg-open A]]"},
		{"linux", "::", "[[xdg-open A]]"},
		{"darwin", "/usr/bin/firefox", "[[open A]]"},
		{"windows", "", "[[rundll32 url.dll,FileProtocolHandler A]]"},
	} {
		if got := fmt.Sprint(openers(tt.system, tt.browser, "A")); got != tt.want {
			t.Errorf("%s, BROWSER=%q: got %s, want %s", tt.system, tt.browser, got, tt.want)
		}
	}
}
