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
		PYTHONPATH PYTHONHOME PYTHONUSERBASE NODE_PATH PERL5LIB PERLLIB RUBYLIB GEM_HOME GEM_PATH CLASSPATH
		OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES GIO_MODULE_DIR GTK_PATH QT_PLUGIN_PATH ZDOTDIR GNUPGHOME
		GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
		XDG_CONFIG_HOME XDG_DATA_HOME XDG_DATA_DIRS XDG_CONFIG_DIRS`)
	// lines hold command lines, options or the path of a file to run.
	lines = strings.Fields(`BASH_ENV ENV NODE_OPTIONS PERL5OPT PERL5DB RUBYOPT PYTHONSTARTUP BUNDLE_GEMFILE
		JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS LUA_INIT LUA_PATH LUA_CPATH
		SHELL BROWSER EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS
		GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND
		GIT_CONFIG_PARAMETERS`)
	// numbered is the prefix of variables whose names end in a number. Programs expect all of them, so that the value
	// of one is emptied and the variable stays.
	numbered = "GIT_CONFIG_VALUE_"
)

// Clean returns an environment for a program that the host starts outside of the sandbox: PATH and the variables that
// make programs run or load files have no place in which tools or commands can write.
func Clean(env []string) []string {
	w := nowWritable()
	clean := make([]string, 0, len(env))
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		switch {
		case name == "PATH":
			kept, _ := w.entries(value)
			entry = entry[:len("PATH=")] + strings.Join(kept, string(filepath.ListSeparator))
		case slices.Contains(lists, name):
			split := func(r rune) bool { return r == filepath.ListSeparator || r == ' ' && name == "LD_PRELOAD" }
			kept := slices.DeleteFunc(strings.FieldsFunc(value, split), w.isPlanted)
			if len(kept) == 0 {
				continue
			}
			entry = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
		case slices.Contains(lines, name) && w.namesPlanted(value):
			continue
		case strings.HasPrefix(name, numbered) && w.namesPlanted(value):
			entry = name + "="
		}
		clean = append(clean, entry)
	}
	return clean
}

// namesPlanted reports whether a word of a command line is a path for which [writable.isPlanted] is true.
func (w writable) namesPlanted(line string) bool {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n=,;'\"", r) })
	return slices.ContainsFunc(words,
		func(word string) bool { return strings.ContainsAny(word, `/\`) && w.isPlanted(word) })
}

// isPlanted reports whether commands may decide where a path in a variable leads. A relative path depends on the
// working directory. An option such as -I/ws/lib counts from its first separator.
func (w writable) isPlanted(path string) bool {
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
	return !filepath.IsAbs(path) || w.exposed(path) != ""
}
