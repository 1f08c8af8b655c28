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
