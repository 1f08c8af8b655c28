package gateway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hostprogram"
)

// HostCommands returns the command lines that entries have the host run outside of the sandbox.
func HostCommands(entries []*Entry, roots []string) (all []guard.HostCommand) {
	for _, e := range entries {
		e, err := e.expanded()
		if err != nil || e.Refused != "" {
			continue
		}
		switch {
		case e.Type == typeHTTP && e.HeadersHelper != "" && e.Trust != Project:
			all = append(all, helperCommand(e, roots))
		case e.Type == typeStdio && !e.sandboxed():
			if command, err := e.program(); err == nil {
				all = append(all, hostCommand(e, command, e.workDir(roots)))
			}
		}
	}
	return all
}

// hostCommand returns the command line of a server.
func hostCommand(e *Entry, command, dir string) guard.HostCommand {
	return guard.HostCommand{Args: append([]string{command}, e.Args...), Dir: orRoot(dir)}
}

// helperCommand returns the command line of a headersHelper. It starts in the workspace only if it names a file there.
func helperCommand(e *Entry, roots []string) guard.HostCommand {
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = "/"
	}
	if len(roots) > 0 && namesFileIn(roots[0], strings.Fields(e.HeadersHelper)) {
		dir = roots[0]
	}
	return guard.HostCommand{Text: e.HeadersHelper, Dir: dir}
}

// orRoot returns dir, or the root directory if dir is empty, which means that the server gets a directory of its own.
// In the root directory no word names a file of the workspace.
func orRoot(dir string) string {
	if dir == "" {
		return string(filepath.Separator)
	}
	return dir
}

// program returns the path of the command of an entry. For a server outside of the sandbox it does not look in
// directories that commands can write to.
func (e *Entry) program() (string, error) {
	if strings.ContainsRune(e.Command, filepath.Separator) {
		return filepath.Abs(e.Command)
	}
	if e.sandboxed() {
		path, err := exec.LookPath(e.Command)
		if err != nil {
			return "", fmt.Errorf("its command %s was not found in PATH: install it, or use an absolute path",
				e.Command)
		}
		return path, nil
	}
	path, err := hostprogram.Find(e.Command)
	if err != nil && len(hostprogram.Skipped(err)) == 0 {
		return "", fmt.Errorf("its command %s was not found in PATH: install it, or give its absolute path in your own "+
			"settings", e.Command)
	}
	if err != nil {
		return "", fmt.Errorf("its command cannot be used: %w, or give its absolute path in your own settings", err)
	}
	return path, nil
}

// workDir returns the directory that a server starts in, or "" if it gets a directory of its own. A server outside of
// the sandbox starts in the workspace only if its entry says so, or if its command line names a file there.
func (e *Entry) workDir(roots []string) string {
	if e.Cwd == "" && e.workspace() && len(roots) > 0 &&
		(e.sandboxed() || namesFileIn(roots[0], append([]string{e.Command}, e.Args...))) {
		return roots[0]
	}
	return e.Cwd
}

// namesFileIn reports whether a relative word names a file below a directory, or is the path of a directory there.
func namesFileIn(dir string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		word = strings.Trim(word, `"'`)
		if word == "" || filepath.IsAbs(word) || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "~") {
			return false
		}
		info, err := os.Stat(filepath.Join(dir, word))
		return err == nil && (!info.IsDir() || strings.HasPrefix(word, ".") || strings.ContainsRune(word, '/'))
	})
}
