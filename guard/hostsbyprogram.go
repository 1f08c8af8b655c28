package guard

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/settings"
)

// sandbox.network.programs gives hosts to one program, and not to the programs that it starts. The program is the
// file that the kernel runs, as long as commands cannot change it. For an interpreter, its arguments tell which
// installed script it runs. A script can claim to be another script of the same interpreter; it could as well start
// that script with its own code in it.

// ProgramName returns the name by which sandbox.network.programs knows a program; "" if the program is not known, or
// commands can change it.
func (c Commands) ProgramName(p connectgate.Program) string {
	if p.Path == "" || hostprogram.Exposed(p.Path) {
		return ""
	}
	name := filepath.Base(p.Path)
	if whole := execKnown().parts[name]; whole != "" {
		return whole
	}
	if ends, ok := execKnown().runs[family(name)]; ok && len(p.Args) > 0 {
		if script := scriptOf(p, ends); script != "" {
			return script
		}
	}
	return name
}

// scriptOf returns the name of the installed script that an interpreter runs, or "". ends are the options after which
// there is none.
func scriptOf(p connectgate.Program, ends []string) string {
	// A program may write a title in the place of its arguments: "npm install".
	title, _, _ := strings.Cut(p.Args[0], " ")
	if title = filepath.Base(title); family(title) != family(filepath.Base(p.Path)) &&
		installedScript(title, "", p.Path) {
		return title
	}
	for i, arg := range p.Args[1:] {
		switch {
		case slices.Contains(ends, arg):
			return ""
		case strings.HasPrefix(arg, "-"):
			continue
		}
		name := filepath.Base(arg)
		if other := execKnown().scripts[name]; other != "" {
			name = other
		}
		if filepath.IsAbs(arg) && installedScript(name, arg, p.Path) {
			return name
		}
		if !strings.HasPrefix(p.Args[i], "-") { // the argument may be the value of the option before it
			return ""
		}
	}
	return ""
}

// installedScript reports whether a script of this name is installed that the interpreter runs, where commands cannot
// change it. If file is not "", the script is that file.
func installedScript(name, file, interpreter string) bool {
	runs := func(path string) bool {
		return slices.ContainsFunc(hostprogram.Interpreters(path), func(named string) bool {
			a, err := os.Stat(named)
			b, errB := os.Stat(interpreter)
			return err == nil && errB == nil && os.SameFile(a, b)
		})
	}
	real, err := filepath.EvalSymlinks(file)
	return (file == "" || err == nil) && slices.ContainsFunc(installed.programs(name), func(f program) bool {
		return (file == "" || f.path == real) && !hostprogram.Exposed(f.path) && runs(f.path)
	})
}

// ProgramReaches reports whether sandbox.network.programs lets a program connect to a host that no other list names.
// Versions of a program are one: python3 is python3.13. In plan mode it lets none.
func (c Commands) ProgramReaches(p connectgate.Program, host, port string) bool {
	entries := c.p.data.sandbox.Network.Programs
	if len(entries) == 0 || c.Discard() {
		return false
	}
	name := c.ProgramName(p)
	return name != "" && slices.ContainsFunc(entries, func(e settings.Entry) bool {
		program, pattern := settings.CutProgramHost(e.Text)
		return family(program) == family(name) && matchesHost(pattern, host, port)
	})
}

// matchesHost reports whether a pattern names a host. A wildcard stands for names of the Internet alone.
func matchesHost(pattern, host, port string) bool {
	_, err := netip.ParseAddr(host)
	if strings.HasPrefix(pattern, "*") && (err == nil || host == "localhost") {
		return false
	}
	return proxy.MatchesAny([]string{pattern}, host, port)
}

// checkProgramHosts returns warnings about entries of sandbox.network.programs that name no host.
func checkProgramHosts(entries []settings.Entry) (warnings []string) {
	for _, e := range entries {
		program, pattern := settings.CutProgramHost(e.Text)
		if err := proxy.Validate([]string{pattern}); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: sandbox.network.programs: %s reaches no further host: %v", e.Where(),
				program, err))
		}
	}
	return warnings
}
