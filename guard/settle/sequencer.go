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

	"github.com/toolhost/toolhost/guard/privatefile"
)

// sequencer is the list of the steps that are left of a rebase. It is protected while it has steps that run programs:
// the person's own git rebase --continue would run them. Its identity is that of these steps, because each step of a
// rebase that goes on changes the list.
var sequencer = Name{Pattern: ".git/rebase-merge/git-rebase-todo", Class: Held, Agent: true,
	Reason: "git rebase --continue runs its exec steps", Source: "git-scm.com/docs/git-rebase"}

var sequencerName = name(filepath.FromSlash(sequencer.Pattern))

// maxSequencer bounds the list that is read, in bytes. A longer one is taken for one that runs programs.
const maxSequencer = 1 << 20

// stepsOf returns the identity of the steps of a list in a directory that run programs, [absent] if there are none.
func stepsOf(dir *os.Root, base string) (identity, stamp, error) {
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
	var steps []string
	for line := range bytes.Lines(text) {
		word, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(string(line)), "\t", " "), " ")
		if word == "exec" || word == "x" {
			steps = append(steps, string(bytes.TrimSpace(line)))
		}
	}
	if len(steps) == 0 {
		return absent, stamp{}, nil
	}
	slices.Sort(steps)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(steps), "\n")))
	return identity("steps:" + hex.EncodeToString(sum[:])), stampOf(info), nil
}

// scanSequencer adds the list of steps of the repository in a directory, if it runs programs.
func (s scan) scanSequencer(dir string) {
	path := filepath.Join(dir, string(sequencerName))
	if _, err := os.Lstat(path); err != nil {
		return
	}
	_ = inDir(path, func(file side) error {
		id, st, err := stepsOf(file.dir, file.name)
		if id != absent {
			s.leaves[sequencerName] = st
		}
		return err
	})
}
