package fault

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
