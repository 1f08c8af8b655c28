//go:build slow

package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// overBubblewrap are the classes whose rows are run with bubblewrap as well.
var overBubblewrap = []string{"process escapes", "own rules"}

// TestAttackBubblewrap attacks commands that bubblewrap contains, as on systems where other programs may make no
// namespaces: what they see is settled when their shell is started, which is before they come.
func TestAttackBubblewrap(t *testing.T) {
	t.Parallel()
	program := withBubblewrapOnly(t)
	for _, class := range overBubblewrap {
		t.Run(strings.ReplaceAll(class, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			w.program = program
			if os.Geteuid() == 0 { // whom no limit of processes would hold
				w.giveTo(t, ordinaryUser)
			}
			h := w.host(t, host.StdioModern, profileFlags(w, "kernel")...)
			rows := slices.DeleteFunc(attacks(t), func(a attack) bool { return a.class != class })
			for _, a := range samples.Of(rows, 3) {
				w.attack(t, h, a, true)
			}
			w.end(t, h)
		})
	}
	user := 0
	if os.Geteuid() == 0 {
		user = ordinaryUser
	}
	wrapped := controlBackend{name: "control", program: program, user: user}
	wrapped.attack(t, 4)
	t.Run("control late", func(t *testing.T) { attackControlLate(t, wrapped) })
	t.Run("audit log", func(t *testing.T) { attackAuditLog(t, wrapped) })
	t.Run("renewed", func(t *testing.T) {
		w := newWorld(t)
		w.program = program
		attackRenewed(t, w)
	})
	t.Run("late", func(t *testing.T) {
		w := newWorld(t)
		w.program = program
		attackLate(t, w)
	})
	t.Run("leftovers", func(t *testing.T) { attackLeftover(t, program, 0, 12) })
	t.Run("stray links", func(t *testing.T) {
		w := newWorld(t)
		w.program = program
		attackStrayLink(t, w)
	})
	t.Run("sockets", func(t *testing.T) {
		w := newWorld(t)
		w.program = program
		attackSocket(t, w)
	})
}

// attackLate reads denied files that have appeared, or were replaced, since the last command, and looks for their names.
func attackLate(t *testing.T, w *world) {
	h := w.host(t, host.StdioModern, append(profileFlags(w, "kernel"), "--deny", "Read(*.late)")...)
	h.call(t, "Bash", `{"command":"true"}`, "first")
	for i, name := range []string{".env", "a.late", "src/b.late", "secrets/new"} {
		path := filepath.Join(w.ws, name)
		if err := os.WriteFile(path+".next", []byte(canaryKey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
		args := fmt.Sprintf(`{"command":"f=$(printf %%s '%s'); cat \"$f\"; cp \"$f\" copy%d; cat copy%d"}`, path, i, i)
		if said := h.call(t, "Bash", args, name); said.ok || w.leaks(said.raw, args) != "" {
			t.Errorf("%s is shown: %s", name, said.text)
		}
	}
	for _, where := range []string{"cmdline", "environ", "mountinfo", "mounts", "maps"} {
		said := h.call(t, "Bash", fmt.Sprintf(`{"command":"tr '\\0' '\\n' < /proc/1/%s"}`, where), where)
		if strings.Contains(said.raw, ".late") && (where == "cmdline" || where == "environ") {
			t.Errorf("%s names what is denied: %s", where, said.text)
		}
	}
	w.before = w.snapshot()
	w.end(t, h)
}

// withBubblewrapOnly returns a host that does not try its own namespaces first.
func withBubblewrapOnly(t *testing.T) string {
	t.Helper()
	program, err := buildBubblewrapOnly()
	if err != nil {
		t.Fatal(err)
	}
	doctor := exec.Command(program, "doctor", "--root", host.TempDir(t))
	doctor.Env = host.CleanEnv(host.TempDir(t))
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "bubblewrap: writes stay in the workspace") {
		t.Skipf("bubblewrap does not hold commands here:\n%s", out)
	}
	return program
}

// buildBubblewrapOnly builds the host of withBubblewrapOnly, once.
var buildBubblewrapOnly = sync.OnceValues(func() (string, error) {
	source, err := filepath.Abs("../../guard/sandbox/start_linux.go")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	const all = "[]Backend{Namespaces, backendBubblewrap, backendLandlock}"
	if !strings.Contains(string(text), all) {
		return "", fmt.Errorf("%s does not list the backends as %s", source, all)
	}
	dir := filepath.Dir(host.Binary)
	changed, overlay, program := filepath.Join(dir, "start_linux.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "toolhost-bubblewrap")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		return "", err
	}
	for name, content := range map[string]string{overlay: string(list), changed: strings.Replace(string(text), all, "[]Backend{backendBubblewrap}", 1)} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", program, host.Module+"cmd/toolhost")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return program, nil
})
