package hostprogram

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Variables that decide what programs run or load. A user's shell may have set them to places in a workspace, as it
// does with PATH.
var (
	// lists hold directories or files to load from.
	lists = strings.Fields(`LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT GCONV_PATH
		DYLD_LIBRARY_PATH DYLD_FRAMEWORK_PATH DYLD_INSERT_LIBRARIES
		PYTHONPATH PYTHONHOME NODE_PATH PERL5LIB PERLLIB RUBYLIB
		GIT_EXEC_PATH GIT_TEMPLATE_DIR XDG_DATA_DIRS XDG_CONFIG_DIRS`)
	// lines hold command lines, options or the path of a file to run.
	lines = strings.Fields(`BASH_ENV ENV NODE_OPTIONS PERL5OPT RUBYOPT PYTHONSTARTUP JAVA_TOOL_OPTIONS
		SHELL BROWSER EDITOR VISUAL PAGER LESSOPEN LESSCLOSE SSH_ASKPASS
		GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND`)
)

// Clean returns an environment for a program that the host starts outside of the sandbox: PATH and the variables that
// make programs run or load files have no place in which tools or commands can write.
func Clean(env []string) []string {
	clean := make([]string, 0, len(env))
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		switch {
		case name == "PATH":
			kept, _ := Split(value)
			entry = entry[:len("PATH=")] + kept
		case slices.Contains(lists, name):
			split := func(r rune) bool { return r == filepath.ListSeparator || r == ' ' && name == "LD_PRELOAD" }
			kept := slices.DeleteFunc(strings.FieldsFunc(value, split), isPlanted)
			if len(kept) == 0 {
				continue
			}
			entry = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
		case slices.Contains(lines, name):
			words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n=,'\"", r) })
			planted := func(word string) bool { return strings.ContainsAny(word, `/\`) && isPlanted(word) }
			if slices.ContainsFunc(words, planted) {
				continue
			}
		}
		clean = append(clean, entry)
	}
	return clean
}

// isPlanted reports whether commands may decide what a path of a variable leads to. A relative one depends on the
// working directory. An option such as -I/ws/lib counts from its first separator.
func isPlanted(path string) bool {
	if strings.HasPrefix(path, "-") {
		if i := strings.IndexAny(path, `/\`); i > 0 {
			path = path[i:]
		}
	}
	if rest, ok := strings.CutPrefix(path, "file://"); ok { // NODE_OPTIONS=--import=file:///x
		path = rest
	}
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
		path = filepath.Join(home, path[2:])
	}
	return !filepath.IsAbs(path) || exposed(path) != ""
}
