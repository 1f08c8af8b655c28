// Package hostprogram finds the programs that the host itself starts outside of the sandbox: git, a shell, the opener
// of pages. It is the only way to find one, so that the host never runs what a tool or a command has put into a
// directory of PATH.
//
// An entry of PATH is skipped if it is empty or relative, or if the way to it leads through a directory that tools or
// commands write: see [Distrust]. So is a program that such a way leads to, whose interpreter does, or that has a
// second name there. Programs get the same PATH: see [Clean].
//
// Its Go API is not stable.
package hostprogram

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// A program is one that was found.
type program struct {
	path    string
	file    fs.FileInfo
	changed time.Time
}

// found are the programs by name and PATH. A program is looked for again when its file has changed: an upgrade of the
// system must not end a host, and a command cannot write where a program was found.
var found = struct {
	sync.Mutex
	by map[[2]string]program
}{by: map[[2]string]program{}}

// Find returns the absolute path of a program for the host to start, found in the PATH of this process. A name with a
// separator is a path of the user's own and only made absolute. An error matches [exec.ErrNotFound], and
// [fs.ErrPermission] if a program was skipped.
func Find(name string) (string, error) { return FindIn(name, os.Getenv("PATH")) }

// FindIn is Find in another PATH.
func FindIn(name, path string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		return filepath.Abs(name)
	}
	found.Lock()
	defer found.Unlock()
	key := [2]string{name, path}
	if was, ok := found.by[key]; ok && was.current() {
		return was.path, nil
	}
	now, err := search(name, path)
	if err != nil {
		delete(found.by, key)
		return "", err
	}
	found.by[key] = now
	return now.path, nil
}

// Command returns a command like [exec.CommandContext], with the program that [Find] finds and a clean environment. If
// there is no such program, starting the command returns the error.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path, err := Find(name)
	if err != nil {
		path = name
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0], cmd.Env = name, Clean(os.Environ())
	if err != nil {
		cmd.Path, cmd.Err = "", err
	}
	return cmd
}

// current reports whether the program is the file that was found, and commands still cannot write it.
func (p program) current() bool {
	info, err := os.Stat(p.path)
	return err == nil && os.SameFile(info, p.file) && changeTime(info).Equal(p.changed) && !Exposed(p.path)
}

// changeTime is when a file or its names last changed. No program can set it, where the system reports it.
func changeTime(info fs.FileInfo) time.Time {
	if t, ok := realpath.Of(info); ok {
		return t
	}
	return info.ModTime()
}

// search looks for a program in PATH.
func search(name, path string) (program, error) {
	w := nowWritable()
	kept, dropped := w.entries(path)
	var skipped []string
	for _, dir := range dropped {
		if file, err := executable(dir, name); err == nil {
			skipped = append(skipped, file)
		}
	}
	for _, dir := range kept {
		file, err := executable(dir, name)
		if err != nil {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		if !w.isSafe(file, info, maxScripts) {
			skipped = append(skipped, file)
			continue
		}
		return program{path: file, file: info, changed: changeTime(info)}, nil
	}
	return program{}, &notFoundError{name, skipped}
}

// A notFoundError is the error for a program that is not in PATH, or only where it is skipped.
type notFoundError struct {
	name    string
	skipped []string
}

func (e *notFoundError) Error() string {
	if len(e.skipped) == 0 {
		return e.name + " was not found on the PATH"
	}
	return fmt.Sprintf("%s was not found on the PATH; skipped, because tools and commands can write there: %s. "+
		"Install it outside of the workspace", e.name, strings.Join(e.skipped, ", "))
}

// Skipped returns the paths of the programs that were skipped, in the order of PATH, from an error of [Find].
func Skipped(err error) []string {
	if e := (*notFoundError)(nil); errors.As(err, &e) {
		return e.skipped
	}
	return nil
}

// Is implements the contract of [errors.Is].
func (e *notFoundError) Is(target error) bool {
	return target == exec.ErrNotFound || target == fs.ErrPermission && len(e.skipped) > 0
}

// executable returns the path of a program in a directory. A relative directory is that of this process.
func executable(dir, name string) (string, error) {
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = filepath.Abs(dir); err != nil { // "" is the working directory
			return "", err
		}
	}
	separator := string(filepath.Separator)
	// The path is not cleaned, because ".." may follow a link. LookPath looks at this file only, on Windows with the
	// usual suffixes.
	return exec.LookPath(strings.TrimRight(dir, separator) + separator + name)
}

// entries returns the entries of a PATH for programs of the host, and those that are skipped. kept is never empty:
// without PATH a shell looks in places of its own.
func (w writable) entries(path string) (kept, skipped []string) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || w.exposed(dir) != "" {
			skipped = append(skipped, dir)
		} else {
			kept = append(kept, dir)
		}
	}
	if len(kept) > 0 {
		return kept, skipped
	}
	for _, dir := range []string{"/usr/bin", "/bin"} {
		if w.exposed(dir) == "" {
			kept = append(kept, dir)
		}
	}
	if len(kept) == 0 {
		kept = []string{os.DevNull}
	}
	return kept, skipped
}
