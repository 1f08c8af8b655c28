package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/settings"
)

// projectDir is the variable that tells a hook the project's directory.
const projectDir = "CLAUDE_PROJECT_DIR"

// environ derives the environment of hooks from base. The server's own variables
// hold its tokens. Those of bash would run or define something before the hook.
func environ(base []string, dir string) []string {
	var env []string
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		switch upper := strings.ToUpper(name); { // Windows ignores case in names of variables
		case !ok || name == "" || upper == projectDir:
		case strings.HasPrefix(upper, "TOOLHOST_") || strings.HasPrefix(name, "BASH_FUNC_"):
		case slices.Contains([]string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"}, name):
		case upper == "PATH":
			env = append(env, name+"="+absolute(value))
		default:
			env = append(env, entry)
		}
	}
	return append(env, projectDir+"="+dir)
}

// absolute drops the relative entries of a PATH: hooks run in the project, where
// an agent can write.
func absolute(path string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return !filepath.IsAbs(d) })
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// argv returns the program and the arguments of a command hook. look finds a program in a PATH.
func (r *Runner) argv(h settings.Hook, env []string, look func(name, path string) (string, error)) ([]string, error) {
	path := variable(env, "PATH")
	if h.Args != nil {
		return r.program(h.Command, h.Args, func(name string) (string, error) { return look(name, path) })
	}
	switch h.Shell {
	case "", "bash":
		shell, err := findShell()
		return []string{shell, "-c", h.Command}, err
	case "powershell":
		for _, name := range []string{"pwsh", "powershell"} {
			if path, err := look(name, path); err == nil {
				return []string{path, "-NoProfile", "-NonInteractive", "-Command", h.Command}, nil
			}
		}
		return nil, errors.New("PowerShell was not found on the PATH to run it")
	}
	return nil, fmt.Errorf("its shell is %q; bash or powershell is expected", h.Shell)
}

// program returns a command with its arguments, with references to the project's directory replaced, because no shell
// reads them.
func (r *Runner) program(command string, args []string, look func(name string) (string, error)) ([]string, error) {
	replace := strings.NewReplacer("${"+projectDir+"}", r.dir).Replace
	name := replace(command)
	argv := []string{name}
	for _, arg := range args {
		argv = append(argv, replace(arg))
	}
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			argv[0] = filepath.Join(r.dir, name)
		}
		info, err := os.Stat(argv[0])
		if err == nil && runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
			err = fmt.Errorf("%s is not executable", argv[0])
		}
		return argv, err
	}
	var err error
	argv[0], err = look(name)
	return argv, err
}

// lookPath finds a program in a PATH, for a contained hook.
func lookPath(name, path string) (string, error) {
	names := []string{name}
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		names = []string{name + ".exe", name + ".cmd", name + ".bat"}
	}
	for _, dir := range filepath.SplitList(path) {
		for _, name := range names {
			file := filepath.Join(dir, name)
			info, err := os.Stat(file)
			if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s was not found on the PATH", name)
}

// variable returns the value of a variable in an environment, "" if it is not set.
func variable(env []string, name string) string {
	for _, entry := range env {
		if key, value, _ := strings.Cut(entry, "="); key == name || runtime.GOOS == "windows" &&
			strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// references matches references to variables in a header.
var references = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// expand replaces the references in a header by the values of the variables that allowed names.
func expand(header string, allowed, env []string) string {
	return references.ReplaceAllStringFunc(header, func(ref string) string {
		name := strings.Trim(ref, "${}")
		if !slices.Contains(allowed, name) {
			return ""
		}
		return variable(env, name)
	})
}

// findShell returns the shell that reads the commands of hooks.
func findShell() (string, error) {
	for _, path := range []string{
		"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
		"/run/current-system/sw/bin/bash", // NixOS
		"/bin/sh",
		`C:\Program Files\Git\bin\bash.exe`,
	} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", errors.New("neither bash nor sh was found in its usual place to run it")
}
