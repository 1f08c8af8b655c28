package shell

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// stripped are the variables (path.Match patterns) that do not reach commands.
var stripped = []string{
	// The server's own settings and tokens.
	"TOOLHOST_*",

	// These change how bash reads a command, so that it would differ from what
	// was judged: start-up files, exported functions (BASH_FUNC_name%%), options,
	// prompts that are executed, and variables that redirect cd and globbing.
	"BASH*", "ENV", "SHELLOPTS", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS0", "PS4",
	"CDPATH", "GLOBIGNORE", "EXECIGNORE",

	// Libraries that a launcher has injected into the server. LD_LIBRARY_PATH
	// stays: programs in unusual places need it.
	"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES",

	// These contradict NO_COLOR and TERM=dumb (node warns about both), or
	// describe the server's process rather than the command's.
	"FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "PWD", "OLDPWD", "SHLVL", "_",
}

// forced are the variables that every command gets. They make programs fail at
// once that would otherwise wait for input at a terminal or in a window.
var forced = []string{
	"TERM=dumb", "NO_COLOR=1",
	"PAGER=cat", "GIT_PAGER=cat",
	"EDITOR=false", "VISUAL=false", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false",
	"GIT_TERMINAL_PROMPT=0",
	// ssh and git would open a window to ask. GIT_ASKPASS is not changed: it
	// names a program that answers by itself.
	"SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never",
	// Python would keep the output to a pipe back until it ends.
	"PYTHONUNBUFFERED=1",
	// apt and dpkg ask by default, even without a terminal.
	"DEBIAN_FRONTEND=noninteractive",
}

// fallbackPath is the PATH of a server that was started without one.
const fallbackPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// derive derives the environment of commands from base, usually os.Environ(). It removes the server's own variables
// (TOOLHOST_*), everything that changes how bash reads a command (BASH_ENV, ENV, exported functions, SHELLOPTS, PS4,
// CDPATH and the like) and injected libraries (LD_PRELOAD). It sets an editor and a pager that do not wait, a terminal
// without capabilities, and PATH and HOME if they are missing. Relative entries of PATH are dropped, because an agent
// can write there. The variables in set are added last, except those that derive removes; the PATH in set may refer to
// variables. Other secrets of the user stay: commands are expected to work with the user's credentials, and the sandbox
// guards files.
func derive(base, set []string) []string {
	var env []string
	for _, entry := range base {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.Contains(entry, "\x00") {
			continue
		}
		if !matchAny(stripped, name) {
			env = append(env, entry)
		}
	}
	for _, entry := range forced {
		env = setVar(env, entry)
	}
	for _, entry := range set {
		if name, _, ok := strings.Cut(entry, "="); ok && name != "" && !strings.Contains(entry, "\x00") &&
			!matchAny(stripped, name) {
			if name == "PATH" {
				entry = expandPath(entry, env)
			}
			env = setVar(env, entry)
		}
	}
	if path := mergePath(lookup(env, "PATH"), ""); path != "" {
		env = setVar(env, "PATH="+path)
	} else {
		env = setVar(env, "PATH="+fallbackPath)
	}
	if lookup(env, "HOME") == "" {
		if u, err := user.Current(); err == nil && u.HomeDir != "" {
			env = setVar(env, "HOME="+u.HomeDir)
		}
	}
	return env
}

// expandPath replaces the variables in a PATH, such as $PATH, by their values: taken literally, "/opt/bin:$PATH"
// would leave commands without any program. A variable that is not set stays, and is dropped later as a relative
// entry.
func expandPath(entry string, env []string) string {
	return os.Expand(entry, func(name string) string {
		if v := lookup(env, name); v != "" {
			return v
		}
		return "$" + name
	})
}

// Without returns env without the named variables.
func Without(env, names []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

func matchAny(patterns []string, name string) bool {
	// A "*" does not match a slash, but bash imports functions named a/b.
	name = strings.ReplaceAll(name, "/", "_")
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // patterns have been checked
		return ok
	})
}

// lookup returns the value of a variable, "" if it is not set.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// setVar returns a copy of env with one variable set.
func setVar(env []string, entry string) []string {
	name, _, _ := strings.Cut(entry, "=")
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			out = append(out, e)
		}
	}
	return append(out, entry)
}

// bashPlaces are tried in order.
var bashPlaces = []string{
	"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash",
	"/run/current-system/sw/bin/bash", // NixOS
	`C:\Program Files\Git\bin\bash.exe`,
}

// findBash finds bash. PATH is examined last, and only directories that no user
// but root can write: an agent must not be able to supply the shell.
func findBash(env []string) (string, error) {
	places := slices.Clone(bashPlaces)
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		if filepath.IsAbs(dir) && rootOnly(dir) {
			places = append(places, filepath.Join(dir, "bash"))
		}
	}
	for _, p := range places {
		if _, err := exec.LookPath(p); err == nil && filepath.IsAbs(p) {
			return p, nil
		}
	}
	return "", errors.New("bash was not found (looked in /bin, /usr/bin, /usr/local/bin and the root-owned directories " +
		"of PATH): " +
		"commands are judged as Bash and are not run by another shell; install bash or set its path")
}

// loginShell returns the user's login shell if it is set and exists, else bash.
func loginShell(env []string, bash string) string {
	sh := lookup(env, "SHELL")
	if !filepath.IsAbs(sh) {
		return bash
	}
	if info, err := os.Stat(sh); err != nil || !info.Mode().IsRegular() {
		return bash
	}
	return sh
}
