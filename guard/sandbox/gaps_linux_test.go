package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox/internal/landlock"
	"github.com/toolhost/toolhost/integration/testenv"
)

// The gaps the package documentation names. A test that fails here is good
// news, and the documentation wants changing.
func TestKnownGaps(t *testing.T) {
	f := newFixture(t)
	if err := os.Link(f.ws+"/.env", f.out+"/other-name"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.ws+"/copy", []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	testenv.NeedsProgram(t, "git")
	os.RemoveAll(f.ws + "/.git")
	cmd := exec.Command("bash", "-c", "git init -q && git add -f .env && git -c user.name=x -c user.email=x@example.com commit -qm x")
	cmd.Dir, cmd.Env = f.ws, f.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := start1(t, f.policy())
	for name, script := range map[string]string{
		"hard link outside of the writable paths": `cat "$OUT/other-name"`,
		"copy":              `cat copy`,
		"version control":   `git show HEAD:.env`,
		"deferred commands": `echo "echo ` + secret + `" > build.sh; cat build.sh`,
	} {
		if r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", script); !strings.Contains(r.output, secret) {
			t.Errorf("%s: no gap any more: %q", name, r.output)
		}
	}
}

// A descriptor that was opened before stays open.
func TestKnownGapOpenDescriptor(t *testing.T) {
	testenv.NeedsNamespaces(t)
	f := newFixture(t)
	s := start1(t, f.policy())
	late := f.ws + "/late"
	if err := os.WriteFile(late, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c",
		"exec 3< late; touch up; until [ -e go ]; do :; done; cat <&3"}, Dir: f.ws, Env: f.env, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the command", func() bool { _, err := os.Stat(f.ws + "/up"); return err == nil })
	if err := s.Deny(late); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(f.ws+"/go", nil, 0o644)
	buf := make([]byte, 100)
	n, _ := r.Read(buf)
	p.Wait()
	p.Kill()
	if !strings.Contains(string(buf[:n]), secret) {
		t.Errorf("no gap any more: %q", buf[:n])
	}
}

// Commands of one sandbox reach each other: one can write into what another says, and
// end it.
func TestKnownGapNeighbours(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := s.Spawn(Spec{Argv: []string{"/bin/sleep", "1000"}, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	runIn(t, s, f.ws, f.env, "/bin/bash", "-c", `for p in /proc/[0-9]*; do [ "$(tr '\0' ' ' < $p/cmdline)" = "/bin/sleep 1000 " ] && echo forged > $p/fd/1 && kill ${p#/proc/}; done`)
	if st, err := p.Wait(); err != nil || st.Signal != "SIGTERM" {
		t.Skipf("no gap here, or not any more: %+v, %v", st, err)
	}
	buf := make([]byte, 100)
	if n, _ := r.Read(buf); string(buf[:n]) != "forged\n" {
		t.Errorf("no gap any more: %q", buf[:n])
	}
}

// Places inside each other: the deeper one decides, and denied always wins.
func TestNesting(t *testing.T) {
	f := newFixture(t)
	for path, text := range map[string]string{
		"state/tmp/x": "", "state/tmp/hidden/k": secret, "state/tmp/hidden/open/k": "open\n", "ws/src/denied/deep/k": secret,
		"home/file-secret": secret,
	} {
		write(t, f.base+"/"+path, text)
	}
	p := f.policy()
	p.Writable = append(p.Writable, f.base+"/state/tmp", f.ws+"/src")
	p.Masked = append(p.Masked, f.base+"/state/tmp/hidden", f.home+"/file-secret", f.home+"/missing")
	p.Shown = append(p.Shown, f.base+"/state/tmp/hidden/open")
	p.Denied = append(p.Denied, f.ws+"/src/denied", f.ws+"/src/denied/deep")
	r := runIn(t, startOn(t, Namespaces, p), f.ws, f.env, "/bin/bash", "-c", `
		echo y > "$STATE/tmp/y" && cat "$STATE/tmp/y" "$STATE/tmp/hidden/open/k" "$STATE/results/own/1"
		echo no > "$STATE/tmp/hidden/open/k" || echo read-only
		echo no > "$STATE/new" || echo closed
		cat "$STATE/tmp/hidden/k" src/denied/deep/k "$HOME/file-secret"; ls "$STATE/tmp/hidden" "$STATE"
		rm -rf "$STATE/tmp/hidden" src/denied; mv src/denied src/d; mv "$STATE/tmp/hidden" "$STATE/tmp/h"; cat src/d/deep/k "$STATE/tmp/h/k"`)
	for _, want := range []string{"y\n", "open\n", "my own result\n", "read-only\n", "closed\n"} {
		if !strings.Contains(r.output, want) {
			t.Errorf("%q is missing in\n%s", want, r.output)
		}
	}
	if strings.Contains(r.output, secret) {
		t.Errorf("got through:\n%s", r.output)
	}
}

// A writable directory as a whole may be kept as it is, and what lies around one may
// be hidden.
func TestAroundWritable(t *testing.T) {
	f := newFixture(t)
	write(t, f.base+"/beside", secret)
	write(t, f.out+"/beside", secret)
	closed, around := f.policy(), f.policy()
	closed.ReadOnly = append(closed.ReadOnly, f.ws)
	around.Masked = append(around.Masked, f.base)
	for what, c := range map[string]struct {
		policy Policy
		script string
	}{
		"read-only":   {closed, `echo x > new; echo x >> go.mod; rm -f go.mod; mkdir -p src/d; mv src s; cat go.mod > /dev/null && echo x > "$TMPDIR/new" && cat "$TMPDIR/new" && ls`},
		"mask around": {around, `cat ../beside ../out/beside 2> /dev/null; echo x > made && cat made`},
	} {
		r := runIn(t, startOn(t, Namespaces, c.policy), f.ws, append(f.env, "TMPDIR="+f.tmp), "/bin/bash",
			"-c", c.script)
		if !strings.Contains(r.output, "x\n") || strings.Contains(r.output, "new\n") ||
			strings.Contains(r.output, secret) {
			t.Errorf("%s: %s", what, r.output)
		}
	}
	if _, err := os.Stat(f.ws + "/new"); err == nil {
		t.Error("a file was made")
	}
}

// probeArg makes the test binary print what it finds out about the machine.
const probeArg = "__probe"

// Where namespaces are refused, which is what the inside of a sandbox is like,
// the next best means is used and the reason given.
func TestFallBack(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	r := runIn(t, s, f.ws, f.env, os.Args[0], probeArg)
	t.Log(r.output)
	want := "backend: " + string(backendLandlock) + "\n"
	if landlock.Version() < landlock.Minimum {
		want = "backend: \n"
	}
	for _, want := range []string{want, "namespaces: "} {
		if !strings.Contains(r.output, want) {
			t.Errorf("%q is missing in\n%s", want, r.output)
		}
	}
}

func printProbe() {
	r := Probe(context.Background(), false)
	fmt.Printf("backend: %s\n%s\n", r.Backend, strings.Join(r.Why, "\n"))
}
