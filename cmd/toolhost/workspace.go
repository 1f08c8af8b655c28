package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/mcpserver"
)

// onFiles opens a host on the workspaces of changed files. Their rules apply then, and other names of a file are
// looked for there. A host on the whole machine would not read their settings, and would search the machine for the
// names of each file that has several.
func (f *hostFlags) onFiles(changed func(stateDir string) ([]string, error), do func(*mcpserver.Host) error) error {
	state, err := f.ownState()
	if err != nil {
		return err
	}
	paths, err := changed(state)
	if err != nil {
		return err
	}
	if len(paths) == 0 { // no file is examined, but a host must say so
		paths = []string{filepath.Join(state, "history")}
	}
	home, _ := os.UserHomeDir() // without one no directory is taken for it
	return f.with(workspaces(paths, home), do)
}

// marks are the entries that mark the top directory of a workspace.
var marks = []string{".git", ".claude", ".toolhost"}

// workspaces returns the workspaces of files, without those that lie in another one.
func workspaces(paths []string, home string) []string {
	var all []string
	seen := map[string]bool{} // directories
	for _, path := range paths {
		if dir := filepath.Dir(path); !seen[dir] {
			seen[dir] = true
			all = append(all, workspaceOf(path, home))
		}
	}
	slices.Sort(all)
	var outer []string
	for _, dir := range all {
		if len(outer) == 0 || !isBelow(dir, outer[len(outer)-1]) {
			outer = append(outer, dir)
		}
	}
	return outer
}

// workspaceOf returns the nearest directory above a file that is marked as a workspace, or the directory of the file.
// The home directory and the directories above it are never a workspace, whatever they contain.
func workspaceOf(path, home string) string {
	nearest := ""
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		there := err == nil && info.IsDir()
		if there && nearest == "" {
			nearest = dir
		}
		if dir == filepath.Dir(dir) || home != "" && isBelow(home, dir) {
			break
		}
		if there &&
			slices.ContainsFunc(marks,
				func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }) {
			return dir
		}
	}
	return nearest
}

// isBelow reports whether path is dir or within it.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
