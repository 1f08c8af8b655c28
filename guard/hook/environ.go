package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// projectDir is the variable that tells a hook the project's directory.
const projectDir = "CLAUDE_PROJECT_DIR"

// environ derives the environment of hooks from base. The server's own variables
// hold its tokens. Those of bash would run or define something before the hook.
func environ(base []string, dir string) []string {
	var env []string
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		switch upper := strings.ToUpper(name); { // Windows does not tell them apart
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

// findShell returns the shell that reads the commands of hooks.
func findShell(configured string) (string, error) {
	if configured != "" {
		if !filepath.IsAbs(configured) {
			return "", fmt.Errorf("the shell for hooks is not an absolute path: %q", configured)
		}
		return configured, nil
	}
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
