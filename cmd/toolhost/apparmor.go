package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/sandbox"
)

const (
	apparmorFile   = "/etc/apparmor.d/toolhost"
	apparmorSwitch = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	// apparmorPath is searched for the parser first, because the PATH of root may lack these directories.
	apparmorPath = "/usr/sbin:/sbin:/usr/bin:/bin:"
)

var (
	apparmorPrograms = regexp.MustCompile(`(?m)^@\{toolhost\} \+?= (.+)\n`)
	// apparmorSpecial matches characters that have a meaning in a path of a profile. apparmorEscaped matches an
	// escaped character, which stands for itself.
	apparmorSpecial = regexp.MustCompile(`[\\"*?{}^,\[\]]`)
	apparmorEscaped = regexp.MustCompile(`\\(.)`)
)

// apparmorProfile returns the profile for programs, each as its line names it.
func apparmorProfile(programs ...string) string {
	lines := "@{toolhost} = " + strings.Join(programs, "\n@{toolhost} += ") + "\n"
	return apparmorPrograms.ReplaceAllLiteralString(sandbox.AppArmorProfile, lines)
}

// apparmorName returns the path of a program as a profile names it.
func apparmorName(program string) (string, error) {
	if strings.ContainsFunc(program, unicode.IsControl) {
		return "", fmt.Errorf("the path %q contains control characters, which a profile cannot name: "+
			"move the program to another directory", program)
	}
	return `"` + apparmorSpecial.ReplaceAllString(program, `\$0`) + `"`, nil
}

// An apparmor installs the profile. Tests replace all of it.
type apparmor struct {
	root    string // of the file system
	program string // the path of this program, without links
	user    int    // the effective user
	// find returns the path of the parser. load runs the parser on a file.
	find func() (string, error)
	load func(parser, file string) error
}

// newAppArmor returns the AppArmor of this system.
func newAppArmor(ctx context.Context, program string) apparmor {
	return apparmor{
		root: "/", program: program, user: os.Geteuid(),
		find: func() (string, error) {
			return hostprogram.FindIn("apparmor_parser", apparmorPath+os.Getenv("PATH"))
		},
		load: func(parser, file string) error {
			out, err := hostprogram.Command(ctx, parser, "--replace", "--skip-cache", file).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s could not load the profile: %w: %s", parser, err, strings.TrimSpace(string(out)))
			}
			return nil
		},
	}
}

// install writes the profile for this program, loads it, and reports what it did. If the profile cannot be loaded,
// the file is restored.
func (a apparmor) install(w io.Writer) error {
	if runtime.GOOS != "linux" {
		return errors.New("AppArmor is part of Linux, and nothing is to be installed here")
	}
	if a.user != 0 {
		return fmt.Errorf("only root can install the profile: run %s", sandbox.InstallCommand())
	}
	parser, err := a.find()
	if err != nil {
		return fmt.Errorf("%w; it loads profiles. Install AppArmor first, then the profile: sudo apt install apparmor && %s",
			err, sandbox.InstallCommand())
	}
	file := filepath.Join(a.root, apparmorFile)
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := a.profile(string(old))
	if err != nil {
		return err
	}
	if err := a.replace(file, []byte(text)); err != nil {
		return err
	}
	if err := a.load(parser, file); err != nil {
		return errors.Join(err, a.replace(file, old))
	}
	fmt.Fprintf(w, "%s is written for %s and loaded by %s: what is started from there may make user namespaces.\n",
		file, sanitized(a.program), parser)
	if is, _ := os.ReadFile(filepath.Join(a.root, apparmorSwitch)); strings.TrimSpace(string(is)) != "1" {
		fmt.Fprintln(w, "This system does not restrict user namespaces by AppArmor now, so nothing changes yet.")
	}
	_, err = fmt.Fprintf(w, "Start your client again, then see toolhost doctor. To remove the profile:\n"+
		"sudo apparmor_parser --remove %[1]s && sudo rm %[1]s\n", apparmorFile)
	return err
}

// replace replaces a file that everyone may read. Without text it removes the file.
func (a apparmor) replace(file string, text []byte) error {
	if len(text) == 0 {
		return os.Remove(file)
	}
	if err := privatefile.Replace(file, text); err != nil {
		return err
	}
	return os.Chmod(file, 0o644)
}

// profile returns the profile for this program and for those programs of the installed profile that still exist.
func (a apparmor) profile(installed string) (string, error) {
	name, err := apparmorName(a.program)
	if err != nil {
		return "", err
	}
	var names []string
	for _, line := range apparmorPrograms.FindAllStringSubmatch(installed, -1) {
		names = append(names, line[1])
	}
	if installed != "" && names == nil {
		return "", fmt.Errorf("toolhost did not write %[1]s. If nothing else needs it, remove it and repeat: sudo rm %[1]s "+
			"&& %[2]s",
			apparmorFile, sandbox.InstallCommand())
	}
	if slices.ContainsFunc(names, func(n string) bool { return n == name || a.covers(n) }) {
		return installed, nil
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		quoted, found := strings.CutPrefix(n, `"`)
		if !found {
			return false
		}
		_, err := os.Stat(filepath.Join(a.root, apparmorEscaped.ReplaceAllString(strings.TrimSuffix(quoted, `"`), "$1")))
		return errors.Is(err, fs.ErrNotExist) // an earlier version, or one that has moved
	})
	return apparmorProfile(append(names, name)...), nil
}

// covers reports whether the patterns of a profile's line match this program.
func (a apparmor) covers(patterns string) bool {
	return !strings.HasPrefix(patterns, `"`) && slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		ok, err := path.Match(p, a.program)
		return ok && err == nil
	})
}
