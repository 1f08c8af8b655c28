package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// An Env is what the places of files depend on. It is a value so that the paths of every platform can be
// worked out, and tested, on any of them.
type Env struct {
	// OS is the platform in Go's terms: "linux", "darwin", "windows".
	OS string
	// Home is the home directory of the user.
	Home string
	// Getenv looks up an environment variable.
	Getenv func(name string) string
	// Exists reports whether there is a file or directory of that path.
	Exists func(path string) bool
	// Glob expands a pattern to the paths that exist.
	Glob func(pattern string) []string
	// LookPath finds a program; "" when there is none.
	LookPath func(program string) string
}

// System is the Env of this process.
func System() (Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Env{}, err
	}
	return Env{
		OS: runtime.GOOS, Home: home, Getenv: os.Getenv,
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		Glob: func(pattern string) []string {
			found, _ := filepath.Glob(pattern) // fails for a malformed pattern only
			return found
		},
		LookPath: func(program string) string {
			path, err := exec.LookPath(program)
			if err != nil {
				return ""
			}
			return path
		},
	}, nil
}

// join puts a path together as the platform writes it.
func (e Env) join(elements ...string) string {
	separator := "/"
	if e.OS == "windows" {
		separator = `\`
	}
	return strings.Join(elements, separator)
}

// dir is the directory of path.
func (e Env) dir(path string) string {
	if i := strings.LastIndexAny(path, e.separators()); i > 0 {
		return path[:i]
	}
	return path
}

func (e Env) separators() string {
	if e.OS == "windows" {
		return `\/`
	}
	return "/"
}

// home is a path below the home directory.
func (e Env) home(elements ...string) string {
	return e.join(append([]string{e.Home}, elements...)...)
}

// or is the directory that a variable names, or else the given one.
func (e Env) or(variable, path string) string {
	if v := e.Getenv(variable); v != "" {
		return strings.TrimRight(v, e.separators())
	}
	return path
}

// config is a path below the directory for configuration: $XDG_CONFIG_HOME or ~/.config.
func (e Env) config(elements ...string) string {
	return e.join(append([]string{e.or("XDG_CONFIG_HOME", e.home(".config"))}, elements...)...)
}

// support is a path below where desktop programs keep their files: %APPDATA%, ~/Library/Application Support,
// or the directory for configuration.
func (e Env) support(elements ...string) string {
	switch e.OS {
	case "windows":
		return e.join(append([]string{e.or("APPDATA", e.home("AppData", "Roaming"))}, elements...)...)
	case "darwin":
		return e.home(append([]string{"Library", "Application Support"}, elements...)...)
	}
	return e.config(elements...)
}
