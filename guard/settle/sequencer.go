package settle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/privatefile"
)

// sequencers are files in a directory of git that say how a rebase or cherry-pick goes on, by the last two elements
// of their paths. Such a file is protected while it names programs, because the person's own git rebase --continue
// would run them. The identity of the file is a digest of the lines that name programs: git changes the others with
// each step.
var sequencers = []struct {
	Name
	program func(line string) bool // whether a line names a program
}{
	{sequencer("rebase-merge/git-rebase-todo", "git rebase --continue runs its exec steps"), isExec},
	{sequencer("rebase-merge/strategy", "git rebase --continue runs the merge strategy that it names"), isForeignStrategy},
	{sequencer("sequencer/opts", "git cherry-pick --continue runs the merge strategy that it names"), setsForeignStrategy},
}

func sequencer(pattern, reason string) Name {
	return Name{Pattern: pattern, Class: Held, Agent: true, Reason: reason, Source: "git-scm.com/docs/git-rebase"}
}

// IsGitState reports whether a directory of git with this name has the state of an operation that goes on later.
func IsGitState(element string) bool {
	element = pathname.Folded.Of(element)
	return element == "rebase-merge" || element == "rebase-apply" || element == "sequencer"
}

// isSequencer reports whether a name is that of such a file.
func isSequencer(rel name) bool { return sequencerAt(filepath.ToSlash(string(rel))) >= 0 }

// sequencerAt returns the index of the row of a slashed path, or -1.
func sequencerAt(rel string) int {
	rel = "/" + pathname.Folded.Of(rel)
	for i := range sequencers {
		if strings.HasSuffix(rel, "/"+sequencers[i].Pattern) {
			return i
		}
	}
	return -1
}

func isExec(line string) bool {
	word, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	return word == "exec" || word == "x"
}

// ownStrategies are those of git itself. Of another one git runs the program git-merge-NAME, where a NAME with a slash
// is a path.
var ownStrategies = []string{"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"}

func isForeignStrategy(line string) bool { return !slices.Contains(ownStrategies, line) }

// setsForeignStrategy reports whether a line of settings names a strategy that is not git's.
func setsForeignStrategy(line string) bool {
	key, value, _ := strings.Cut(line, "=")
	key = strings.ToLower(strings.TrimSpace(key))
	return strings.Contains(key, "strategy") && key != "strategy-option" &&
		(key != "strategy" || isForeignStrategy(strings.TrimSpace(value)))
}

// maxSequencer bounds the file that is read, in bytes. A longer one counts as one that names programs.
const maxSequencer = 1 << 20

// programsOf returns the identity of the lines that name programs in a file of the sequencer, [absent] if there are
// none.
func programsOf(rel name, dir *os.Root, base string) (identity, stamp, error) {
	info, err := dir.Lstat(base)
	if missing(err) {
		return absent, stamp{}, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return identify(dir, base)
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if err != nil {
		return identify(dir, base)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSequencer+1))
	if err != nil || len(text) > maxSequencer {
		return identify(dir, base)
	}
	var steps []string // that name programs
	names := sequencers[sequencerAt(filepath.ToSlash(string(rel)))].program
	for line := range bytes.Lines(text) {
		if line := strings.TrimSpace(string(line)); names(line) {
			steps = append(steps, line)
		}
	}
	if len(steps) == 0 {
		return absent, stamp{}, nil
	}
	slices.Sort(steps)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(steps), "\n")))
	return identity("steps:" + hex.EncodeToString(sum[:])), stampOf(info), nil
}

// scanSequencer adds the files in a directory of git with the state of an operation that name programs.
func (s scan) scanSequencer(dir, state string) {
	for i := range sequencers {
		of, base := filepath.Split(filepath.FromSlash(sequencers[i].Pattern))
		path := filepath.Join(state, base)
		rel, err := filepath.Rel(dir, path)
		if err != nil || !strings.EqualFold(filepath.Base(state), filepath.Clean(of)) {
			continue
		}
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		_ = inDir(path, func(file side) error {
			id, st, err := programsOf(name(rel), file.dir, file.name)
			if id != absent {
				s.leaves[name(rel)] = st
			}
			return err
		})
	}
}
