package gitrepo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// maxConfig is the most that is read of a git configuration, in bytes. Real
// ones have a few KiB.
const maxConfig = 1 << 20

// runsNothing reports whether nothing in a directory of git makes git run a
// program when it only reads. The work tree that its settings may name is work.
func runsNothing(git, work string) bool {
	// git runs the hook when it refreshes the index, which git status does.
	if found(git, filepath.Join("hooks", "post-index-change")) {
		return false
	}
	settings, ok := configOf(git)
	return ok && !slices.ContainsFunc(settings, func(s Setting) bool {
		if s.Key == "core.worktree" {
			to, ok := follow(git, s.Value)
			return !ok || to != work
		}
		return steers(s)
	})
}

// configOf returns the settings of a directory of git. The second file counts
// only if an extension is on; it is read in any case. What is not understood is
// not ok.
func configOf(git string) (settings []Setting, ok bool) {
	for _, name := range []string{"config", "config.worktree"} {
		raw, err := realpath.ReadSmall(filepath.Join(git, name), maxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false
		}
		list, err := Parse(raw)
		if err != nil {
			return nil, false
		}
		settings = append(settings, list...)
	}
	return settings, true
}

// namesWorkTree reports whether the settings name a work tree, as those of a
// submodule do.
func namesWorkTree(settings []Setting) bool {
	return slices.ContainsFunc(settings, func(s Setting) bool { return s.Key == "core.worktree" })
}

// steering are the settings of git-config(1), by section and name, that make a
// command run a program that only reads, or read somewhere else; "*" is every
// name. Pagers are not among them: there is no terminal. Neither are transports:
// nothing is fetched without a promisor.
var steering = map[string]string{
	"core":       "hookspath alternaterefscommand virtualfilesystem",
	"diff":       "external command textconv submodule", // submodule = diff runs git diff in any directory that history names
	"extensions": "partialclone",
	"filter":     "*",
	"gpg":        "program",
	"hook":       "*",
	"include":    "*",
	"includeif":  "*",
	"lfs":        "path args clean smudge process standalonetransferagent", // obeyed by the filter that the user may have
	"merge":      "driver",                                                 // git log --remerge-diff merges
	"remote":     "promisor partialclonefilter",
	"status":     "submodulesummary",
}

func steers(s Setting) bool {
	section, sub, name := s.Split()
	switch {
	case s.Key == "core.fsmonitor":
		return !IsBool(s.Value) // true is a part of git
	case section == "alias": // newer versions let it take the place of this command
		return strings.EqualFold(name, "whatchanged") || strings.EqualFold(sub, "whatchanged")
	}
	return slices.ContainsFunc(strings.Fields(steering[section]), func(n string) bool { return n == "*" || n == name })
}
