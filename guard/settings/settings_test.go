package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a whole machine in a temporary directory.
type place struct {
	t   testing.TB
	dir string
	cfg Config
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir, cfg: Config{
		Roots: []string{filepath.Join(dir, "work")}, Home: filepath.Join(dir, "home"),
		UserConfigDir: filepath.Join(dir, "home", ".config"), StateDir: filepath.Join(dir, "state"),
		ManagedDir: filepath.Join(dir, "etc"),
	}}
	for _, d := range []string{"work", "home", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// Where the sources lie in a place.
var (
	managedFile = filepath.Join("etc", claudeManagedName, "managed-settings.json")
	dropInA     = filepath.Join("etc", claudeManagedName, "managed-settings.d", "10-a.json")
	dropInB     = filepath.Join("etc", claudeManagedName, "managed-settings.d", "20-b.json")
	ownManaged  = "etc/toolhost/toolhost.json"
	localFile   = "work/.claude/settings.local.json"
	ownLocal    = "work/.toolhost/toolhost.local.json"
	projectFile = "work/.claude/settings.json"
	ownProject  = "work/.toolhost/toolhost.json"
	userFile    = "home/.claude/settings.json"
	ownUser     = "home/.config/toolhost/toolhost.json"
	allSources  = []string{managedFile, dropInA, dropInB, ownManaged, localFile, ownLocal, projectFile, ownProject,
		userFile, ownUser}
	projectFiles = []string{localFile, ownLocal, projectFile, ownProject}
)

func (p *place) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(name string) {
	p.t.Helper()
	if err := os.RemoveAll(p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// link makes a link between two names of the place.
func (p *place) link(target, name string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(p.path(target), p.path(name)); err != nil {
		p.t.Skip("no links here: ", err)
	}
}

func texts(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Text)
	}
	return strings.Join(all, ",")
}

func warnings(s *Settings) string {
	var all []string
	for _, w := range s.Warnings {
		all = append(all, w.Text)
	}
	return strings.Join(all, "\n")
}
