package fault

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
)

// The tests of this package break what a host stands on and look at what is left: no torn file, no acknowledged write lost, no process, no
// temporary file.

// A ground is a host.Ground that can tell whether it was left whole.
type ground struct{ *host.Ground }

func newGround(t *testing.T) *ground { return &ground{host.NewGround(t)} }

// start starts a host, which ends with the test if not before.
func (g *ground) start(s host.Setting, flags ...string) *session {
	g.T.Helper()
	return &session{g.Start(s, flags...)}
}

// A session is a host.Session with the calls of these tests.
type session struct{ *host.Session }

// fresh puts the files there that changesAll changes, and returns what stands there.
func (g *ground) fresh() map[string]string {
	g.T.Helper()
	entries, err := os.ReadDir(g.WS)
	host.Must(g.T, err)
	for _, e := range entries {
		host.Must(g.T, os.RemoveAll(g.Path(e.Name())))
	}
	g.Put("a", "1\n")
	g.Put("d/b", "2\n")
	g.Put("x", "3\n")
	host.Must(g.T, os.Symlink("a", g.Path("l")))
	return g.stands()
}

// last is the ID of the last call in the history.
func (g *ground) last() string {
	if ids := g.ids(); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return ""
}

// covered waits until the base has been read.
func (s *session) covered() {
	s.T.Helper()
	for strings.Contains(s.MustCall("Bash", host.Args{"command": "true"}), "had been read") {
	}
}

// gone waits until none of the processes runs that a host had started. They end after it.
func gone(t *testing.T, started []int) {
	t.Helper()
	host.Eventually(t, func() string {
		for _, pid := range started {
			if parent, state := host.ParentOf(pid); parent != 0 && state != 'Z' {
				return fmt.Sprintf("process %d, which the host had started, still runs", pid)
			}
		}
		return ""
	})
}

// rewind rewinds to before a call, and compares. See tidy for why it may take more than one try.
func (g *ground) rewind(id string, want map[string]string) {
	g.T.Helper()
	host.Eventually(g.T, func() string {
		out, err := g.Run("rewind", id, "--yes")
		if diff := cmp.Diff(want, g.stands()); err != nil || diff != "" {
			return fmt.Sprintf("%v %s\n(-want +got)\n%s", err, out, diff)
		}
		return ""
	})
}

// ids are those of the calls in the history, oldest first.
func (g *ground) ids(flags ...string) []string {
	g.T.Helper()
	raw, err := g.Run("history", append(flags, "--json")...)
	host.Must(g.T, err)
	var calls []struct{ ID string }
	host.Must(g.T, json.Unmarshal(raw, &calls))
	var ids []string
	for _, c := range slices.Backward(calls) {
		ids = append(ids, c.ID)
	}
	return ids
}

// stands is what stands in the root: of each path its mode, and its content or target.
func (g *ground) stands() map[string]string {
	g.T.Helper()
	all := map[string]string{}
	host.Must(g.T, filepath.WalkDir(g.WS, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == g.WS || strings.HasPrefix(d.Name(), ".toolhost-") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if info.Mode()&fs.ModeSymlink != 0 {
			var target string
			target, err = os.Readlink(path)
			content = []byte(target)
		} else if info.IsDir() {
			err = nil
		}
		all[path[len(g.WS)+1:]] = fmt.Sprintf("%v %q", info.Mode(), content)
		return err
	}))
	return all
}
