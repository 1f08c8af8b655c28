package main

import (
	"errors"
	"os"
	"os/user"
	"runtime"
	"testing"
)

func TestSettleHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the home directory of Windows is the system's")
	}
	known := func() (*user.User, error) { return &user.User{HomeDir: "/home/known"}, nil }
	nobody := func() (*user.User, error) { return nil, errors.New("no such user") }
	for _, c := range []struct {
		name, home, config   string
		lookup               func() (*user.User, error)
		wantHome, wantConfig string
	}{
		{"as it is", "/home/me", "/etc/me", nobody, "/home/me", "/etc/me"},
		{"none", "", "", known, "/home/known", ""},
		{"relative", "me", "", known, "/home/known", ""},
		{"relative, of nobody", "me", "", nobody, "", ""},
		{"none, of nobody", "", "", nobody, "", ""},
		{"configuration nowhere", "/home/me", "config", nobody, "/home/me", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("HOME", c.home)
			t.Setenv("XDG_CONFIG_HOME", c.config)
			ensureHome(c.lookup)
			if got := os.Getenv("HOME"); got != c.wantHome {
				t.Errorf("HOME is %q, want %q", got, c.wantHome)
			}
			if got := os.Getenv("XDG_CONFIG_HOME"); got != c.wantConfig {
				t.Errorf("XDG_CONFIG_HOME is %q, want %q", got, c.wantConfig)
			}
		})
	}
}
