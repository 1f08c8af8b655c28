package clients

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// An Env is the environment that file locations depend on. It is a value so that the paths of every platform can be
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
	// LookPath finds a program and returns "" if there is none.
	LookPath func(program string) string
}

// System is the Env of this process.
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
			found, _ := filepath.Glob(pattern) // fails for a malformed pattern only
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

// paths are the paths of the table on this platform. A * stands for what is there.
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

// path is a path of the table on this platform, with what its variables stand for.
func (e Env) path(template string) string {
	if e.OS == "windows" {
		template = strings.ReplaceAll(template, "/", `\`)
	}
	return os.Expand(template, e.variable)
}

// variable is $HOME, $CONFIG, the directory for configuration, $SUPPORT, where desktop programs keep their files, or
// what an environment variable names.
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
