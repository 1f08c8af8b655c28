package main

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// ensureHome sets the home directory of the process if its environment names none that can be used, as in a service,
// or under a client that passes few variables. The host finds the user's rules in the home directory, and hides the
// keys there from commands; without it, both would silently be left out. A relative path in a variable of the XDG
// base directories is ignored, as their specification demands: os.UserConfigDir would return an error for it.
func ensureHome(lookup func() (*user.User, error)) {
	if runtime.GOOS == "windows" {
		return // on Windows the system sets %USERPROFILE%
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		if dir := os.Getenv(name); dir != "" && !filepath.IsAbs(dir) {
			os.Unsetenv(name)
		}
	}
	if filepath.IsAbs(os.Getenv("HOME")) {
		return
	}
	os.Unsetenv("HOME")
	if u, err := lookup(); err == nil && filepath.IsAbs(u.HomeDir) {
		os.Setenv("HOME", u.HomeDir)
	}
}
