package clients

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// An Env is the environment that file locations depend on. It is a value, so that the paths of every platform can be
// determined, and tested, on any of them.
type Env struct {
	// OS is the platform in Go's terms: "linux", "darwin", "windows".
	OS string
	// Home is the home directory of the user.
	Home string
	// Getenv looks up an environment variable.
	Getenv func(name string) string
	// Exists reports whether a path exists.
	Exists func(path string) bool
	// Glob returns the existing paths that match a pattern.
	Glob func(pattern string) []string
	// LookPath returns the path of a program, or "" if there is none.
	LookPath func(program string) string
}

// System returns the Env of this process.
func System() (Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Env{}, err
	}
	hostprogram.DistrustWorkspace()
	return Env{
		OS: runtime.GOOS, Home: home, Getenv: os.Getenv,
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		Glob: func(pattern string) []string {
			found, _ := filepath.Glob(pattern) // fails only for a malformed pattern
			return found
		},
		LookPath: func(program string) string {
			path, err := hostprogram.Find(program)
			if err != nil {
				return ""
			}
			return path
		},
	}, nil
}

// dir returns the directory of a path.
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

// paths returns the paths for templates of the table on this platform. A * is replaced by each match that exists.
func (e Env) paths(templates []string) (paths []string) {
	for _, t := range templates {
		head, tail, some := strings.Cut(e.path(t), "*")
		if !some {
			paths = append(paths, head)
			continue
		}
		for _, found := range e.Glob(head + "*") {
			paths = append(paths, found+tail)
		}
	}
	return paths
}

// path returns the path for a template of the table on this platform, with its variables replaced.
func (e Env) path(template string) string {
	if e.OS == "windows" {
		template = strings.ReplaceAll(template, "/", `\`)
	}
	return os.Expand(template, e.variable)
}

// variable returns the value of a variable in a template: $HOME, $CONFIG (the directory for configuration), $SUPPORT
// (the directory for the files of desktop programs), or an environment variable.
func (e Env) variable(name string) string {
	name, other, _ := strings.Cut(name, ":-")
	switch {
	case name == "HOME":
		return e.Home
	case name == "SUPPORT" && e.OS == "windows":
		name, other = "APPDATA", "$HOME/AppData/Roaming"
	case name == "SUPPORT" && e.OS == "darwin":
		return e.path("$HOME/Library/Application Support")
	case name == "SUPPORT", name == "CONFIG":
		name, other = "XDG_CONFIG_HOME", "$HOME/.config"
	}
	if v := e.Getenv(name); v != "" {
		return strings.TrimRight(v, e.separators())
	}
	return e.path(other)
}
