package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestQuarantine(t *testing.T) {
	f := newFixture(t)
	if err := os.Symlink("src", f.ws+"/.vscode"); err != nil {
		t.Fatal(err)
	}
	p := f.policy()
	write(t, f.ws+"/plain", "a file")
	p.ReadOnly = append(p.ReadOnly, f.ws+"/.mcp.json", f.ws+"/.vscode", f.ws+"/.toolhost", "/etc/absent-for-sure", f.ws+
		"/plain/rules")
	s := start1(t, p)
	if got, err := Quarantine(s.guarded); got != nil || err != nil {
		t.Fatalf("before anything: %v, %v", got, err)
	}
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `echo evil > .mcp.json; rm plain; mkdir -p plain; echo evil > plain/rules; mkdir -p absent/.claude .toolhost/deep; echo evil > absent/.claude/settings.json; rm .vscode; mkdir .vscode; ln -s "$OUT" .toolhost/out`)
	got, err := Quarantine(s.guarded)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, i := range got {
		rel, _ := filepath.Rel(f.ws, i.Path)
		paths = append(paths, rel)
		if _, err := os.Lstat(i.Moved); err != nil {
			t.Errorf("%s was not kept: %v", i.Path, err)
		}
	}
	slices.Sort(paths)
	want := ".mcp.json .toolhost .vscode absent/.claude plain/rules"
	if s.Report().Backend == Namespaces {
		want = strings.Replace(want, " .vscode", "", 1) // a mount keeps the link in its place
	}
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	for _, name := range []string{".mcp.json", ".toolhost", "absent/.claude"} {
		if _, err := os.Lstat(filepath.Join(f.ws, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if link, _ := os.Readlink(f.ws + "/.vscode"); link != "src" {
		t.Errorf("the symbolic link says %q", link)
	}
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `rm .vscode; echo again > .mcp.json`)
	if got, err := Quarantine(s.guarded); len(got) != 1 || err != nil {
		t.Errorf("second time: %v, %v", got, err)
	}
	if link, _ := os.Readlink(f.ws + "/.vscode"); link != "src" {
		t.Errorf("the symbolic link says %q", link)
	}
	if got, err := Quarantine(s.guarded); got != nil || err != nil {
		t.Errorf("third time: %v, %v", got, err)
	}
}

// A link in the way does not make us rename something outside.
func TestQuarantineStaysInside(t *testing.T) {
	f := newFixture(t)
	p := f.policy()
	p.ReadOnly = []string{f.ws + "/sub/profile"}
	s := start1(t, p)
	if err := os.WriteFile(f.out+"/profile", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `ln -s "$OUT" sub`)
	if got, err := Quarantine(s.guarded); err != nil || len(got) != 1 || filepath.Dir(got[0].Moved) != f.ws {
		t.Errorf("moved %v, %v; want the link alone", got, err)
	}
	if b, err := os.ReadFile(f.out + "/profile"); err != nil || string(b) != "mine" {
		t.Errorf("outside: %q, %v", b, err)
	}
}

// A command that takes away the right to write keeps nothing in place.
func TestQuarantineMendsRights(t *testing.T) {
	f := newFixture(t)
	p := f.policy()
	p.ReadOnly = append(p.ReadOnly, f.ws+"/.mcp.json")
	s := start1(t, p)
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `echo evil > .mcp.json; for i in $(seq 120); do : > .mcp.json.quarantined-$i; done; chmod 555 .`)
	if got, err := Quarantine(s.guarded); len(got) != 1 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Lstat(f.ws + "/.mcp.json"); err == nil {
		t.Error("the protected file is still there")
	}
	os.Chmod(f.ws, 0o755)
}

// An allowed socket stays reachable.
func TestAllowedSocket(t *testing.T) {
	f := newFixture(t)
	f.serve(t)
	p := f.policy()
	p.Sockets = []string{f.out + "/daemon.sock"}
	s := start1(t, p)
	r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `$ATTACK connect unix "$SOCKET"`)
	if !strings.Contains(r.output, breach) {
		t.Errorf("got %q", r.output)
	}
}

// An allowed socket is reached although its directory is hidden by one of the commands' own,
// and nothing else there.
func TestAllowedSocketUnderPrivate(t *testing.T) {
	f := newFixture(t)
	f.serve(t)
	other := listen(t, "unix", f.out+"/other.sock")
	defer other.Close()
	if err := os.Mkdir(f.base+"/private", 0o700); err != nil {
		t.Fatal(err)
	}
	p := f.policy()
	p.Private = []Private{{Name: f.out, Dir: f.base + "/private"}}
	p.Sockets = []string{f.out + "/daemon.sock"}
	s := startOn(t, Namespaces, p)
	r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c",
		`ls -A "$OUT"; $ATTACK connect unix "$SOCKET"; $ATTACK connect unix "$OUT/../out/other.sock"`)
	if strings.Count(r.output, breach) != 1 || strings.HasPrefix(r.output, "daemon") ||
		!strings.Contains(r.output, "other.sock: connect: no such file") {
		t.Errorf("got %q", r.output)
	}
}
