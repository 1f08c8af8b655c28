package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCheckAddress(t *testing.T) {
	hosts := []string{"claude.ai", "*.chatgpt.com", "*"}
	for text, ok := range map[string]bool{
		"https://claude.ai/oauth/authorize?redirect_uri=http%3A%2F%2Flocalhost%3A5454": true,
		"https://auth.chatgpt.com/": true,
		"https://chatgpt.com/":      false,
		"https://evilchatgpt.com/":  false,
		"http://claude.ai/":         false,
		"file:///etc/passwd":        false,
		"https://me@claude.ai/":     false,
		"https://claude.ai.evil/":   false,
		"-V":                        false,
		"":                          false,
	} {
		if err := checkAddress(text, hosts); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCallbackPort(t *testing.T) {
	for text, want := range map[string]int{
		"https://x.com/?redirect_uri=http%3A%2F%2Flocalhost%3A5454%2Fback":  5454,
		"https://x.com/?a=1&callback=http%3A%2F%2F127.0.0.1%3A1455%2Fback":  1455,
		"https://x.com/?redirect_uri=http%3A%2F%2F%5B%3A%3A1%5D%3A7000%2F":  7000,
		"https://x.com/?redirect_uri=http%3A%2F%2Fexample.com%3A5454%2F":    0,
		"https://x.com/?redirect_uri=http%3A%2F%2Flocalhost.evil%3A5454%2F": 0,
		"https://x.com/?redirect_uri=http%3A%2F%2Flocalhost%2F":             0,
		"https://x.com/": 0,
	} {
		if got := callbackPort(text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestPages: how many pages a client opens, and which of them publish a port.
func TestPages(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var opened, published []string
	p := &pageOpener{hosts: []string{"login.example"}, now: func() time.Time { return now },
		open: func(address string) error { opened = append(opened, address); return nil },
		publish: func(port int) error {
			if port == 7000 {
				return errors.New("2 login ports are published already")
			}
			published = append(published, strconv.Itoa(port))
			return nil
		}}
	const login = "https://login.example/?redirect_uri=http%3A%2F%2Flocalhost%3A"
	for _, tt := range []struct {
		after   time.Duration
		address string
		says    string // "": it is opened
	}{
		{0, "https://other.example/", "--allow-host other.example"},
		{0, login + "5454", ""},
		{openEvery - time.Millisecond, login + "5455", "less than 2s ago"},
		{time.Millisecond, login + "5455", ""},
		{openEvery, login + "7000", "2 login ports are published already"},
		{openEvery, "https://login.example/help", ""},
		{-time.Hour, "https://login.example/help", "less than 2s ago"}, // a clock that was set back
	} {
		now = now.Add(tt.after)
		before := len(opened)
		err := p.page(tt.address)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) ||
			(len(opened) > before) != (tt.says == "") {
			t.Errorf("%s after %v: %v, opened %q", tt.address, tt.after, err, opened[before:])
		}
	}
	for now = now.Add(2 * time.Hour); p.page("https://login.example/more") == nil; now = now.Add(openEvery) {
	}
	if len(opened) != maxOpened-1 { // one place was that of the page that could not return
		t.Errorf("%d pages were opened", len(opened))
	}
	if !slices.Equal(published, []string{"5454", "5455"}) {
		t.Errorf("published: %v", published)
	}
}
