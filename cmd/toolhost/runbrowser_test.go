package main

import "testing"

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
