package main

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// ensureHome gives the process a home directory where its environment names none that can be used, as that of a service
// or of a client that passes little on. The user's rules are found from it, and so are the keys that commands must not
// see: without it both would silently be left out. A relative path in a variable of the XDG base directories is no
// path ("must be absolute", says their specification), and os.UserConfigDir would find no directory for it.
func ensureHome(lookup func() (*user.User, error)) {
	if runtime.GOOS == "windows" {
		return // there %USERPROFILE% is the system's
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
