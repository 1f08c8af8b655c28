package guard

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/gitrepo"
)

// gitPlaces are the variables that lead git to another repository, or to parts of one,
// than the one its directory lies in.
var gitPlaces = []string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_INDEX_FILE"}

// gitReads reports whether git, told only to read in any of the directories, runs
// nothing but itself.
func (l *commandJudge) gitReads(dirs []Path) bool {
	elsewhere := func(name string) bool {
		_, set := os.LookupEnv(name)
		return set || slices.ContainsFunc(l.data.environment, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	for _, dir := range dirs {
		switch gitrepo.At(dir.real) {
		case gitrepo.Unusual:
			return false
		case gitrepo.Bare:
			l.bare = true
		}
	}
	return !slices.ContainsFunc(gitPlaces, elsewhere)
}

// gitPrelude returns what a line whose commands all only read is to begin with if git
// is among them, so that git runs nothing even if a look at the repository missed
// something. The values change no answer of a repository that was found harmless. Settings
// in the environment win over those in files, and reach what git starts in submodules.
func (l *commandJudge) gitPrelude() string {
	isGit := func(s command.Simple) bool { return s.Name == "git" }
	if !slices.ContainsFunc(l.analysis.Commands, isGit) || slices.ContainsFunc(l.analysis.Commands, command.Simple.ShowsGitSettings) {
		return ""
	}
	settings := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}}
	if !l.bare {
		settings = append(settings, [2]string{"safe.bareRepository", "explicit"})
	}
	var b strings.Builder
	// No protocol is allowed: a repository that fetches what it lacks would run a program for it.
	fmt.Fprintf(&b, "export GIT_ALLOW_PROTOCOL= GIT_NO_LAZY_FETCH=1 GIT_CONFIG_COUNT=$((${GIT_CONFIG_COUNT:-0}+%d)); export", len(settings))
	for i, s := range settings { // after those that the user's environment has
		fmt.Fprintf(&b, " GIT_CONFIG_KEY_$((GIT_CONFIG_COUNT-%[1]d))=%[2]s GIT_CONFIG_VALUE_$((GIT_CONFIG_COUNT-%[1]d))=%[3]s", i+1, s[0], s[1])
	}
	return b.String() + "; "
}
