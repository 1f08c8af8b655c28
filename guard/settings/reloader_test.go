package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

func rules(allow, deny string) string {
	list := func(s string) string {
		if s == "" {
			return "[]"
		}
		return `["` + strings.ReplaceAll(s, ",", `","`) + `"]`
	}
	return fmt.Sprintf(`{"permissions": {"allow": %s, "deny": %s}}`, list(allow), list(deny))
}

// run is a session whose clock the test moves.
type run struct {
	*reloader
	clock time.Time
	last  *Settings
}

func (p *place) start() *run {
	r := &run{reloader: newReloader(p.cfg), clock: time.Now()}
	r.now = func() time.Time { return r.clock }
	r.last = r.read()
	return r
}

func (r *run) next() *Settings {
	if s := r.read(); s != nil {
		r.last = s
	}
	return r.last
}

// A file that is empty at the start may be one that an editor is just writing: what
// it forbids must not be missed. An old empty file forbids nothing.
func TestEmptyAtTheStart(t *testing.T) {
	p := newPlace(t)
	p.write(projectFile, "")
	r := p.start()
	if len(r.last.Broken) != 1 {
		t.Fatalf("just emptied: broken %v", r.last.Broken)
	}
	p.write(projectFile, rules("", "x"))
	if s := r.next(); len(s.Broken) != 0 || texts(s.Deny) != "x" {
		t.Errorf("written: broken %v, deny %s", s.Broken, texts(s.Deny))
	}
	p.write(projectFile, "")
	r = p.start()
	r.clock = r.clock.Add(2 * racyWindow)
	if s := r.next(); len(s.Broken) != 0 {
		t.Errorf("empty for long: broken %v", s.Broken)
	}
}

// What a running server takes over from each kind of file.
func TestRunningTakesTighteningOnly(t *testing.T) {
	type state struct{ allow, deny string }
	for _, tt := range []struct {
		name, file    string
		before, after string // "" is no file
		want          state
	}{
		{"deny added to a project file", projectFile, rules("a", "x"), rules("a", "x,y"), state{"a", "x,y"}},
		{"deny taken out of a project file", projectFile, rules("a", "x,y"), rules("a", "y"), state{"a", "y,x"}},
		{"allow added to a project file", projectFile, rules("a", "x"), rules("a,b", "x"), state{"a", "x"}},
		{"allow taken out of a project file", projectFile, rules("a,b", "x"), rules("b", "x"), state{"b", "x"}},
		{"allow and deny swapped", projectFile, rules("a", "x"), rules("x", "a"), state{"", "a,x"}},
		{"project file deleted", projectFile, rules("a", "x"), "", state{"", "x"}},
		{"project file appears", projectFile, "", rules("a", "x"), state{"", "x"}},
		{"local file appears", localFile, "", rules("a", "x"), state{"", "x"}},
		{"our own project file appears", ownProject, "", rules("a", "x"), state{"", "x"}},
		{"project file broken", projectFile, rules("a", "x"), `{"permissions": {`, state{"", "x"}},
		{"project file emptied", projectFile, rules("a", "x"), " ", state{"a", "x"}},
		{"deny list replaced by nonsense", projectFile, rules("a", "x"), `{"permissions": {"deny": 1}}`, state{"", "x"}},
		{"carve-out added", projectFile, rules("", "Read(*.env)"), rules("", "Read(*.env),Read(!a.env)"), state{"", "Read(*.env)"}},
		{"carve-out taken out", projectFile, rules("", "Read(*.env),Read(!a.env)"), rules("", "Read(*.env)"), state{"", "Read(*.env)"}},
		{"carve-out kept", projectFile, rules("", "Read(*.env),Read(!a.env)"), rules("", "Read(*.env),Read(!a.env),Edit"), state{"", "Read(*.env),Read(!a.env),Edit"}},
		{"carve-out moved behind", projectFile, rules("", "Read(!a.env),Read(*.env)"), rules("", "Read(*.env),Read(!a.env)"), state{"", "Read(*.env)"}},
		{"a shell negation is no carve-out", projectFile, rules("", "Bash(! true)"), rules("", "Bash(! false)"), state{"", "Bash(! false),Bash(! true)"}},
		{"carve-out of an allow taken out", projectFile, rules("Edit(*),Edit(!s)", ""), rules("Edit(*)", ""), state{"", ""}},
		{"carve-out of an allow moved", projectFile, rules("Edit(*),Edit(!s)", ""), rules("Edit(!s),Edit(*)", ""), state{"", ""}},
		{"allow with a carve-out kept", projectFile, rules("Edit(*),Edit(!s)", ""), rules("Edit(*),Edit(!s)", "x"), state{"Edit(*),Edit(!s)", "x"}},
		{"user file loosened", userFile, rules("a", "x,y"), rules("a,b", "x"), state{"a,b", "x"}},
		{"user file appears", userFile, "", rules("a", "x"), state{"a", "x"}},
		{"managed file loosened", managedFile, rules("a", "x,y"), rules("b", "y"), state{"b", "y"}},
		{"drop-in appears", dropInA, "", rules("a", "x"), state{"a", "x"}},
		{"our own user file broken", ownUser, rules("a", "x"), "{", state{"a", "x"}},
		{"file of the command line loosened", "given.json", rules("a", "x"), rules("a,b", ""), state{"a", "x"}},
	} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		if tt.file == "given.json" {
			p.cfg.Files = []string{p.path(tt.file)}
		}
		if tt.before != "" {
			p.write(tt.file, tt.before)
		}
		r := p.start()
		if len(r.last.Broken) != 0 {
			t.Errorf("%s: broken at the start: %v", tt.name, r.last.Broken)
		}
		if tt.after == "" {
			p.remove(tt.file)
		} else {
			p.write(tt.file, tt.after)
		}
		s := r.next()
		if got := (state{texts(s.Allow), texts(s.Deny)}); got != tt.want || len(s.Broken) != 0 {
			t.Errorf("%s: got %+v, broken %v, want %+v", tt.name, got, s.Broken, tt.want)
		}
		if again := r.read(); again != nil {
			t.Errorf("%s: read again without a change: %+v", tt.name, again)
		}
	}
}

// Taking a guard hook out of a project file loosens; taking out one that only
// watches does not.
func TestRunningHooks(t *testing.T) {
	const both = `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "guard"}]}], "PostToolUse": [{"hooks": [{"type": "command", "command": "fmt"}]}]}}`
	p := newPlace(t)
	p.write(projectFile, both)
	if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
		t.Fatal(err)
	}
	r := p.start()
	check := func(when string, pre, post int) {
		t.Helper()
		s := r.next()
		if got := [2]int{len(s.Hooks[PreToolUse]), len(s.Hooks[PostToolUse])}; got != [2]int{pre, post} {
			t.Errorf("%s: %v hooks, want %d and %d", when, got, pre, post)
		}
	}
	check("at the start", 1, 1)
	p.write(projectFile, "{}")
	check("taken out", 1, 0)
	p.write(projectFile, strings.ReplaceAll(both, "guard", "evil"))
	check("another brought", 1, 0)
	p.write(projectFile, both)
	check("as trusted again", 1, 1)
	p.write(projectFile, "{}")
	check("taken out again", 1, 0)
	if err := Revoke(p.cfg, p.cfg.Roots[0]); err != nil {
		t.Fatal(err)
	}
	check("revoked", 0, 0)
}

// An allow that was taken out does not come back without trust.
func TestRunningAllowStaysOut(t *testing.T) {
	p := newPlace(t)
	p.cfg.TrustWorkspace = true
	p.write(projectFile, rules("a,b", ""))
	r := p.start()
	p.write(projectFile, rules("b", ""))
	r.next()
	p.write(projectFile, rules("a,b,c", ""))
	if s := r.next(); texts(s.Allow) != "b" || s.Trusted {
		t.Errorf("allow %s, trusted %v", texts(s.Allow), s.Trusted)
	}
	if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
		t.Fatal(err)
	}
	if s := r.next(); texts(s.Allow) != "a,b,c" || !s.Trusted {
		t.Errorf("after trust: allow %s, trusted %v", texts(s.Allow), s.Trusted)
	}
}

func TestRunningScalars(t *testing.T) {
	mode := func(m string) string { return `{"permissions": {"defaultMode": "` + m + `"}}` }
	for _, tt := range []struct{ name, user, before, after, want string }{
		{"stricter", "{}", mode("default"), mode("plan"), ModePlan},
		{"laxer", "{}", mode("plan"), mode("default"), ModePlan},
		{"taken out", "{}", mode("plan"), "{}", ModePlan},
		{"shadowed by the user's laxer one", mode("bypassPermissions"), mode("default"), "{}", ModeDefault},
		{"forbidden one taken out", `{"disableBypassPermissionsMode": "disable"}`, mode("bypassPermissions"), "{}", ModeDefault},
		{"lax one taken out", mode("default"), mode("bypassPermissions"), "{}", ModeDefault},
	} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		p.write(userFile, tt.user)
		p.write(projectFile, tt.before)
		r := p.start()
		p.write(projectFile, tt.after)
		if got := r.next().DefaultMode; got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}

	p := newPlace(t)
	p.write(projectFile, `{"permissions": {"disableBypassPermissionsMode": "disable"}}`)
	r := p.start()
	p.remove(projectFile)
	if s := r.next(); !s.DisableBypass {
		t.Error("a project file was deleted and bypassPermissions became possible")
	}
}

// Editors that replace a file in two steps leave a moment without it.
func TestUserFileVanishes(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, rules("a", "x"))
	p.write(dropInA, rules("b", "y"))
	r := p.start()
	p.remove(userFile)
	p.remove(dropInA)
	if s := r.next(); texts(s.Deny) != "y,x" || texts(s.Allow) != "" || r.due.IsZero() {
		t.Errorf("at once: deny %s allow %s due %v", texts(s.Deny), texts(s.Allow), r.due)
	}
	r.clock = r.clock.Add(vanishGrace)
	if s := r.next(); texts(s.Deny) != "" || !r.due.IsZero() {
		t.Errorf("after the grace: deny %s due %v", texts(s.Deny), r.due)
	}
	p.write(userFile, rules("a", "z"))
	if s := r.next(); texts(s.Deny) != "z" || texts(s.Allow) != "a" {
		t.Errorf("back again: deny %s allow %s", texts(s.Deny), texts(s.Allow))
	}
	p.remove(userFile)
	r.next()
	p.write(userFile, rules("a", "z"))
	if s := r.next(); texts(s.Allow) != "a" || !r.due.IsZero() {
		t.Errorf("back within the grace: allow %s due %v", texts(s.Allow), r.due)
	}
}

func TestBrokenAtStart(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		make       func(*place)
	}{
		{"syntax", ":2:3: ", func(p *place) { p.write(ownUser, "{\n  x") }},
		{"too large", "larger than 1048576 bytes", func(p *place) { p.write(projectFile, "{}"+strings.Repeat(" ", maxFileSize)) }},
		{"a directory", "not a regular file", func(p *place) { p.write(projectFile+"/x", "") }},
		{"a loop of links", "cannot be read", func(p *place) {
			p.write(localFile, "{}")
			if err := os.Symlink(p.path(projectFile), p.path(projectFile)); err != nil {
				p.t.Skip(err)
			}
		}},
		{"a link that leads nowhere", "does not exist", func(p *place) { p.link("none.json", projectFile) }},
		{"--settings names nothing", "does not exist", func(p *place) { p.cfg.Files = []string{p.path("none.json")} }},
		{"relative root", "not an absolute path", func(p *place) { p.cfg.Roots = []string{"work"} }},
		{"a drop-in is a directory", "not a regular file", func(p *place) { p.write("etc/"+claudeManagedName+"/managed-settings.d/10-a.json/x", "") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(userFile, rules("", "x"))
			tt.make(p)
			s := Load(p.cfg)
			if err := errors.Join(s.Broken...); err == nil || !strings.Contains(err.Error(), tt.want) ||
				len(s.Broken) != 1 {
				t.Errorf("broken %v, want %s", s.Broken, tt.want)
			}
			if texts(s.Deny) != "x" {
				t.Errorf("the other files are not in force: %s", texts(s.Deny))
			}
		})
	}
}

// A link whose target appears is read, and one whose target goes takes nothing out of force.
func TestLinkLeadsNowhere(t *testing.T) {
	p := newPlace(t)
	p.link("dotfiles.json", userFile)
	r := p.start()
	if s := r.next(); len(s.Broken) != 1 {
		t.Errorf("nothing there: broken %v", s.Broken)
	}
	p.write("dotfiles.json", rules("", "x"))
	if s := r.next(); len(s.Broken) != 0 || texts(s.Deny) != "x" {
		t.Errorf("there now: broken %v, deny %s", s.Broken, texts(s.Deny))
	}
	p.remove("dotfiles.json")
	for range 2 {
		if s := r.next(); len(s.Broken) != 0 || texts(s.Deny) != "x" ||
			!strings.Contains(warnings(s), "stays in force") {
			t.Errorf("gone: broken %v, deny %s\n%s", s.Broken, texts(s.Deny), warnings(s))
		}
	}
	p.write("dotfiles.json", rules("", "y"))
	if s := r.next(); texts(s.Deny) != "y" || warnings(s) != "" {
		t.Errorf("back: deny %s\n%s", texts(s.Deny), warnings(s))
	}

	p = newPlace(t)
	p.link("none", filepath.Dir(projectFile))
	if s := Load(p.cfg); len(s.Broken) != 2 { // settings.json and settings.local.json
		t.Errorf("a directory that leads nowhere: broken %v", s.Broken)
	}
}

// A workspace file that does not parse stops no call. It loosens nothing, and what its last good content denies stays denied.
func TestWorkspaceFileDoesNotParse(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, rules("", "u"))
	p.write(projectFile, "{\n  x")
	p.cfg.TrustWorkspace = true
	r := p.start()
	if s := r.last; len(s.Broken) != 0 || texts(s.Deny) != "u" ||
		!strings.Contains(warnings(s), "does not count until it can be read") {
		t.Errorf("at the start: %v, deny %s\n%s", s.Broken, texts(s.Deny), warnings(s))
	}
	p.write(projectFile, rules("a", "x"))
	if s := r.next(); len(s.Broken) != 0 || texts(s.Allow) != "" || texts(s.Deny) != "x,u" {
		t.Errorf("repaired: %v, allow %s, deny %s: content that came after the start may not allow anything", s.Broken,
			texts(s.Allow), texts(s.Deny))
	}

	p = newPlace(t)
	p.write(projectFile, rules("a", "x"))
	if err := trustNow(p.cfg, p.cfg.Roots[0]); err != nil {
		t.Fatal(err)
	}
	r = p.start()
	if s := r.last; texts(s.Allow) != "a" || texts(s.Deny) != "x" {
		t.Fatalf("trusted: allow %s, deny %s", texts(s.Allow), texts(s.Deny))
	}
	for range 2 {
		p.write(projectFile, "{")
		if s := r.next(); texts(s.Allow) != "" || texts(s.Deny) != "x" || strings.Count(warnings(s), "\n") > 0 {
			t.Errorf("broken: allow %s, deny %s\n%s", texts(s.Allow), texts(s.Deny), warnings(s))
		}
		p.write(projectFile, rules("a", "x"))
		if s := r.next(); texts(s.Allow) != "a" || texts(s.Deny) != "x" || warnings(s) != "" {
			t.Errorf("repaired: allow %s, deny %s\n%s", texts(s.Allow), texts(s.Deny), warnings(s))
		}
	}
	p.write(projectFile, "{")
	r.next()
	p.write(projectFile, rules("a,b", ""))
	if s := r.next(); texts(s.Allow) != "a" || texts(s.Deny) != "x" {
		t.Errorf("repaired with other rules: allow %s, deny %s", texts(s.Allow), texts(s.Deny))
	}
}

// A user's file that was broken at the start is read for the first time when repaired.
func TestBrokenThenRepaired(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, "{")
	r := p.start()
	p.write(userFile, "{{")
	if s := r.next(); len(s.Broken) != 1 {
		t.Errorf("still broken, yet %v", s.Broken)
	}
	p.write(userFile, rules("a", "x"))
	if s := r.next(); len(s.Broken) != 0 || texts(s.Allow) != "a" || texts(s.Deny) != "x" {
		t.Errorf("repaired: %v, allow %s, deny %s", s.Broken, texts(s.Allow), texts(s.Deny))
	}
	p.write(userFile, "{")
	s := r.next()
	if len(s.Broken) != 0 || texts(s.Deny) != "x" ||
		!strings.Contains(warnings(s), "last good content stays in force") {
		t.Errorf("broken again: %v %s\n%s", s.Broken, texts(s.Deny), warnings(s))
	}
	p.write(userFile, rules("a", "x"))
	if s := r.next(); warnings(s) != "" {
		t.Errorf("repaired again, yet %s", warnings(s))
	}

	p = newPlace(t)
	p.write(userFile, "{")
	r = p.start()
	p.remove(userFile)
	if s := r.next(); len(s.Broken) != 0 {
		t.Errorf("removed, yet %v", s.Broken)
	}
}

// An edit that leaves size and time as they were is seen while stamps are young.
func TestSameStamp(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, rules("", "x"))
	info, err := os.Stat(p.path(userFile))
	if err != nil {
		t.Fatal(err)
	}
	r := p.start()
	p.write(userFile, rules("", "y"))
	if err := os.Chtimes(p.path(userFile), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if s := r.next(); texts(s.Deny) != "y" {
		t.Errorf("got %s", texts(s.Deny))
	}
}

// Nor does a modification time that was set back hide an edit, however old the stamp is.
func TestTimeSetBack(t *testing.T) {
	p := newPlace(t)
	p.write(userFile, rules("", "x"))
	before, err := os.Stat(p.path(userFile))
	if _, told := realpath.Of(before); err != nil || !told {
		t.Skipf("this system does not tell when a file was changed (%v)", err)
	}
	s := newReloader(p.cfg)
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	s.read()
	for now := before; changedAt(now).Equal(changedAt(before)); now, err = os.Stat(p.path(userFile)) {
		if err != nil {
			t.Fatal(err)
		}
		p.write(userFile, rules("", "y")) // until the kernel's clock has gone on
		if err := os.Chtimes(p.path(userFile), before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.read(); got == nil || texts(got.Deny) != "y" {
		t.Errorf("the edit was not seen: %+v", got)
	}
}

// The user's own file is not a project's because the home directory is a root.
func TestHomeIsARoot(t *testing.T) {
	p := newPlace(t)
	p.cfg.Roots = []string{p.cfg.Home}
	p.write(userFile, rules("a", "x"))
	if s := Load(p.cfg); texts(s.Allow) != "a" || s.Allow[0].Kind != User || !s.Trusted {
		t.Errorf("got %+v, trusted %v", s.Allow, s.Trusted)
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{Managed: "managed", commandLine: "command line", Local: "local",
		Project: "project", User: "user", 9: "Kind(9)"} {
		if got := k.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// usual is what a developer who uses Claude Code has.
func usual(t testing.TB) *place {
	p := newPlace(t)
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("Bash(command-%d *)", i))
	}
	for _, name := range []string{localFile, projectFile, userFile, ownUser} {
		p.write(name, rules(strings.Join(many, ","), "Read(.env),Read(./secrets/**)"))
	}
	return p
}

func BenchmarkLoad(b *testing.B) {
	p := usual(b)
	for b.Loop() {
		Load(p.cfg)
	}
}

func BenchmarkReload(b *testing.B) {
	p := usual(b)
	w, err := Watch(p.cfg, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	w.reloader.now = func() time.Time { return time.Now().Add(time.Hour) } // so late that stamps prove content
	w.Reload()
	for b.Loop() {
		w.Reload()
	}
}
